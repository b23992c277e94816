package mcp_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"regent/leadership"
	"regent/leadership/telemetry"
)

// A renewal is no part of the call that began the lease, which may be hours ago.
func TestWhatACallAsksTheStoreIsPartOfItsRequestsTrace(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		spans := tracetest.NewSpanRecorder()
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		m, err := telemetry.New(noop.NewMeterProvider(), tracers)
		if err != nil {
			t.Fatal(err)
		}
		f.store = struct {
			leadership.Store
			leadership.Journal
		}{m.Store(f.store), m.Journal(f.store)}
		door := f.door()
		model := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, span := tracers.Tracer("test").Start(r.Context(), "POST /mcp")
			defer span.End()
			door.ServeHTTP(w, r.WithContext(ctx))
		}), ann())
		asked := func(when string, want ...string) {
			t.Helper()
			var all []string
			requests := map[string]string{} // the request that a span belongs to
			for _, s := range spans.Ended() {
				if s.Name() == "POST /mcp" {
					requests[s.SpanContext().SpanID().String()] = s.SpanContext().TraceID().String()
				}
			}
			for _, s := range spans.Ended() {
				if s.Name() == "POST /mcp" {
					continue
				}
				all = append(all, s.Name())
				if requests[s.Parent().SpanID().String()] != s.SpanContext().TraceID().String() {
					t.Errorf("%s is no part of a request", s.Name())
				}
			}
			spans.Reset()
			if !slices.Equal(all, want) {
				t.Errorf("%s the store was asked for %v in a trace, want %v", when, all, want)
			}
		}
		led := model.must("lead", args{"election": "reports", "leaseDuration": "30s", "keep": "1h"})
		asked("by lead", "store update")
		time.Sleep(10 * time.Minute)
		asked("by renewals")
		model.must("leading", args{"handle": led["handle"]})
		asked("by leading", "store get")
	})
}
