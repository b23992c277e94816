//go:build regent_local

package export

import (
	"context"
	"errors"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

type dialOptions struct{}

var errLocal = errors.New("this regent, as make run builds it, is without OTLP; make build builds one with it")

func (settings) google() bool { return false }

func (settings) dialing(context.Context) (dialOptions, string, error) { return dialOptions{}, "", nil }

func spanExporter(context.Context, signal, dialOptions) (sdktrace.SpanExporter, error) {
	return nil, errLocal
}

func metricExporter(context.Context, signal, dialOptions) (sdkmetric.Exporter, error) {
	return nil, errLocal
}
