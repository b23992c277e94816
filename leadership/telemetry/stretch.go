package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

const nameStretch = "regent.renewals.stretch"

// Stretch shows how far leaders are told to put their renewals off; now returns that, from 0 to 1.
func (m *Metrics) Stretch(now func() float64) error {
	b := newBuilder(m.meter)
	gauge := b.age(nameStretch)
	b.callback(func(_ context.Context, o metric.Observer) error {
		o.ObserveFloat64(gauge, now())
		return nil
	}, gauge)
	return errors.Join(b.failed...)
}
