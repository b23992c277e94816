package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/httpapi"

	"github.com/stretchr/testify/require"
	metric "go.opentelemetry.io/otel/metric/noop"
	trace "go.opentelemetry.io/otel/trace/noop"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/telemetry"
	"regent/leadership/telemetry/export"
	"regent/store"
	"regent/store/memory"
	"regent/store/storetest"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener
}

func TestCallsThatTakeTooLongAreCutOff(t *testing.T) {
	t.Parallel()
	listener := listen(t)
	entered, over := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-over
	})}
	t.Cleanup(func() { close(over) })
	go server.Serve(listener)
	go http.Get("http://" + listener.Addr().String())
	<-entered
	if err := shutdown(server, func() {}, time.Millisecond, time.Millisecond); err == nil || !strings.Contains(err.Error(), "cut off after 2ms") {
		t.Errorf("%v; want that calls were cut off", err)
	}
}

func TestCallsThatHangInTheStoreAreAnsweredBeforeTheEnd(t *testing.T) {
	t.Parallel()
	listener, entered := listen(t), make(chan struct{})
	enters := sync.OnceFunc(func() { close(entered) })
	var log strings.Builder
	logger := newLog(&log)
	hanging := &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method != "Update" {
			return next(ctx)
		}
		enters()
		<-ctx.Done()
		return fmt.Errorf("hanging: %w: %w", leadership.OutcomeUnknown, ctx.Err())
	}}
	api := httpapi.New(httpapi.Config{Service: newTestInstance(t, instance.Config{Store: hanging}), Log: logger, RequestTimeout: time.Hour})
	server, hurry := newServer(api, nil, logger)
	go server.Serve(listener)
	answer := make(chan error, 1)
	go func() {
		agent, err := client.New(client.Config{Server: "http://" + listener.Addr().String()})
		if err == nil {
			_, err = agent.Acquire(t.Context(), leadership.AcquireRequest{Election: "e", CandidateID: "a"})
		}
		answer <- err
	}()
	<-entered
	if err := shutdown(server, hurry, time.Millisecond, time.Minute); err != nil {
		t.Errorf("shutdown: %v; want that all calls were answered", err)
	}
	var refusal *leadership.Error
	if err := <-answer; !errors.As(err, &refusal) || refusal.Code != leadership.OutcomeUnknown {
		t.Errorf("the call ends with %v; want the server's OUTCOME_UNKNOWN", err)
	}
	if !strings.Contains(log.String(), `"status":504`) {
		t.Errorf("the log says %s; want the status that was sent", log.String())
	}
}

// failed is a store that has failed for good.
type failed struct{ store.Store }

func (failed) Broken() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (failed) List(context.Context, string, leadership.Election, int) (rule.Listing, error) {
	return rule.Listing{}, fmt.Errorf("disk: %w: it is gone", leadership.StoreUnavailable)
}

func TestAStoreThatHasFailedForGoodEndsTheService(t *testing.T) {
	t.Parallel()
	c := newCLI(system{out: io.Discard, err: io.Discard})
	m := &measures{
		Metrics: newTestMetrics(t), log: slog.New(slog.DiscardHandler),
		pipeline: &export.Pipeline{Meters: metric.NewMeterProvider(), Tracers: trace.NewTracerProvider()},
	}
	err := c.serveStore(t.Context(), m, &access{measures: m}, "test", &endpoint{Listener: listen(t)}, serviceSettings{store: "fake:", events: noEvents, members: noMembers}, openedStore{Store: failed{memory.New(memory.Config{})}})
	if code := exitCode(err); code != exitUnreachable {
		t.Errorf("exit code %d, want %d", code, exitUnreachable)
	}
	if got, want := c.sentence(err), "the store has failed and has to be opened again: disk: STORE_UNAVAILABLE: it is gone"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// newTestMetrics returns metrics that are not exported.
func newTestMetrics(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m, err := telemetry.New(metric.NewMeterProvider(), trace.NewTracerProvider())
	require.NoError(t, err)
	return m
}
