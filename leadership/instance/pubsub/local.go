//go:build regent_local

package pubsub

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"regent/leadership"
)

// Config is a stand-in for the Config of a program with the client of Pub/Sub.
type Config struct {
	Topic, Instance, PublishEndpoint string
	Log                              *slog.Logger
}

// Bus and Messages are never opened.
type (
	Bus      struct{}
	Messages struct{}
)

var errLocal = errors.New("pubsub: this regent, as make run builds it, is without Pub/Sub; make build builds one with it")

// Open fails, because this program was built without the client of Pub/Sub.
func Open(context.Context, Config) (*Bus, error) { return nil, errLocal }

// OpenMessages fails as Open does.
func OpenMessages(context.Context, Config) (*Messages, error) { return nil, errLocal }

func (*Bus) Publish(context.Context, []leadership.Event) (int, error)      { return 0, errLocal }
func (*Bus) Run(context.Context, func(leadership.Event), func(bool)) error { return errLocal }
func (*Bus) Bound() time.Duration                                          { return 0 }
func (*Bus) Close() error                                                  { return nil }
func (*Messages) Publish(context.Context, []byte) error                    { return errLocal }
func (*Messages) Run(context.Context, func([]byte), func(bool)) error      { return errLocal }
func (*Messages) Bound() time.Duration                                     { return 0 }
func (*Messages) Close() error                                             { return nil }
