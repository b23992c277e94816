package hub_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
)

// BenchmarkPublishTo10000Watches publishes one event after another to 10,000 watches of one
// election. An operation ends when the last has it.
func BenchmarkPublishTo10000Watches(b *testing.B) {
	h := newHub(b, hub.Config{Store: nothing{}, Live: true})
	bench(b, h, crowd, func(ctx context.Context, got func()) {
		watch := h.Watch(jobs, 0)
		defer watch.Close()
		watch.Ready(ctx)
		for got(); ; got() {
			if _, err := watch.Next(ctx); err != nil {
				return
			}
		}
	})
}

// BenchmarkPublishTo1000Feeds publishes one event after another to 1,000 feeds of all elections.
func BenchmarkPublishTo1000Feeds(b *testing.B) {
	h := newHub(b, hub.Config{Store: nothing{}, Live: true})
	bench(b, h, 1000, func(ctx context.Context, got func()) {
		feed, err := h.Feed(ctx, "", hub.Cursor{})
		if err != nil {
			b.Error(err)
			return
		}
		defer feed.Close()
		for got(); ; got() {
			if _, err := feed.Next(ctx); err != nil {
				return
			}
		}
	})
}

// bench publishes to n readers, each of which says when it is there, and when it has got an event.
func bench(b *testing.B, h *hub.Hub, n int, read func(ctx context.Context, got func())) {
	ctx, cancel := context.WithCancel(b.Context())
	var readers, left sync.WaitGroup
	readers.Go(func() { h.Run(ctx) })
	left.Add(n)
	for range n {
		readers.Go(func() { read(ctx, left.Done) })
	}
	left.Wait()
	var publishing time.Duration
	e := leadership.Event{Election: jobs}
	for b.Loop() {
		left.Add(n)
		e.Revision, e.At = e.Revision+1, time.Now()
		start := time.Now()
		h.Publish(e)
		publishing += time.Since(start)
		left.Wait()
	}
	b.ReportMetric(float64(publishing.Microseconds())/float64(b.N), "µs/Publish")
	cancel()
	readers.Wait()
}

// nothing is a store in which nothing has happened.
type nothing struct{ hub.Store }

func (nothing) Events(context.Context, leadership.EventsRequest) ([]leadership.Event, error) {
	return nil, nil
}

func (nothing) Since(context.Context, time.Time) (leadership.Recent, error) {
	return leadership.Recent{Now: time.Now()}, nil
}

func (nothing) Now(context.Context) (time.Time, error) { return time.Now(), nil }
