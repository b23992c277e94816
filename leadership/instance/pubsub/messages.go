//go:build !regent_local

package pubsub

import (
	"context"
	"fmt"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// Messages is one instance's connection to a topic of messages that are not events: the sheets of
// members. They have no order and no attributes. Its methods may be called concurrently.
type Messages struct{ *connection }

// OpenMessages is Open for such a topic. There is no order to keep, so Config.PublishEndpoint is
// not needed.
func OpenMessages(ctx context.Context, c Config) (*Messages, error) {
	connection, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Messages{connection}, nil
}

// Publish sends a message of at most 10 MB to all instances, including this one, and blocks until
// Pub/Sub has acknowledged it, for at most 5 s. After an error it may have been sent nevertheless.
func (m *Messages) Publish(ctx context.Context, message []byte) error {
	if err := m.send(ctx, []*pubsubpb.PubsubMessage{{Data: message}}); err != nil {
		return fmt.Errorf("pubsub: publish a message of %d bytes: %w", len(message), err)
	}
	return nil
}

// Run is Bus.Run for messages: each comes at least once, and they may overtake each other.
// hear must not keep its argument.
func (m *Messages) Run(ctx context.Context, hear func([]byte), live func(bool)) error {
	return m.run(ctx, &hearing{what: "messages of members", tell: live, hear: func(message *pubsubpb.PubsubMessage) error {
		hear(message.GetData())
		return nil
	}})
}
