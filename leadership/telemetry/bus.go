package telemetry

import (
	"context"

	"regent/leadership"
)

// Bus carries events between the instances on one store; see package instance.
type Bus interface {
	Publish(ctx context.Context, events []leadership.Event) (acked int, err error)
	Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error
}

// Bus returns the bus with its events remembered: the gauges of elections include what other
// instances commit, the counters do not.
func (m *Metrics) Bus(inner Bus) Bus {
	if m.idle {
		return inner
	}
	return &bus{inner, m}
}

type bus struct {
	Bus
	m *Metrics
}

// Run implements Bus.
func (b *bus) Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error {
	return b.Bus.Run(ctx, func(e leadership.Event) {
		b.m.elections.hear(e)
		hear(e)
	}, live)
}
