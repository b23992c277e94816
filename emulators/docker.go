package emulators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/gcloud/firestore"
	"github.com/testcontainers/testcontainers-go/modules/gcloud/pubsub"
	"github.com/testcontainers/testcontainers-go/modules/gcloud/spanner"
)

type docker struct{ log io.Writer }

// container is the common part of the three modules.
type container interface {
	testcontainers.Container
	URI() string
}

func (d docker) lacks(ctx context.Context, _ Kind) (err error) {
	// testcontainers panics if it cannot find out how to reach an engine.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker engine answers: %v", r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider(testcontainers.WithLogger(d.logger()))
	if err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	defer provider.Close()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	return nil
}

func (d docker) start(ctx context.Context, kind Kind) (*emulator, error) {
	c, err := d.run(ctx, kind)
	if err == nil {
		err = awaitAnswer(ctx, kind, c.URI())
	}
	if err != nil {
		return nil, errors.Join(err, testcontainers.TerminateContainer(c))
	}
	stop := func(ctx context.Context) error {
		return testcontainers.TerminateContainer(c, testcontainers.StopContext(ctx))
	}
	return &emulator{kind: kind, host: c.URI(), stop: stop}, nil
}

// run starts the container. It may return one together with an error.
func (d docker) run(ctx context.Context, kind Kind) (container, error) {
	logger := testcontainers.WithLogger(d.logger())
	switch kind {
	case KindFirestore:
		return firestore.Run(ctx, kind.Image(), logger)
	case KindSpanner:
		return spanner.Run(ctx, kind.Image(), logger)
	default:
		return pubsub.Run(ctx, kind.Image(), logger)
	}
}

func (d docker) logger() *log.Logger {
	if d.log == nil {
		return log.New(io.Discard, "", 0)
	}
	return log.New(d.log, "[docker] ", 0)
}
