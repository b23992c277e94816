package kubernetes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
)

// tallied counts the other calls of a store: those of lists and watches.
type tallied struct {
	leadership.Store
	lists, events, since atomic.Int64
}

func (t *tallied) List(ctx context.Context, prefix string, after leadership.Election, limit int) (leadership.Listing, error) {
	t.lists.Add(1)
	return t.Store.List(ctx, prefix, after, limit)
}

func (t *tallied) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	t.events.Add(1)
	return t.Store.Events(ctx, e, after, limit)
}

func (t *tallied) Since(ctx context.Context, after time.Time, limit int) (leadership.Recent, error) {
	t.since.Add(1)
	return t.Store.Since(ctx, after, limit)
}

// cost is how often the store was asked since the last time.
type cost struct{ Reads, Lists, Events, Since int64 }

func (f *fixture) take() cost {
	t := f.store.Store.(*tallied)
	return cost{f.store.calls.Swap(0), t.lists.Swap(0), t.events.Swap(0), t.since.Swap(0)}
}

func TestWatchesOfOneInstanceCostTheStoreWhatOneCosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.Store = &tallied{Store: f.store.Store}
	f.restart()
	l := f.want(201, "POST", leases, claim("ann"))
	f.want(200, "GET", leases, nil)
	f.take()
	f.want(200, "GET", leases, nil)
	if got, want := f.take(), (cost{Reads: 1, Lists: 1, Since: 1}); got != want {
		t.Errorf("a list: %+v, want %+v", got, want)
	}
	var watches []func() (string, object)
	for range 10 {
		watches = append(watches, f.stream("resourceVersion="+at(l, "metadata", "resourceVersion").(string)))
	}
	for _, next := range watches { // which begin further back
		if kind, o := next(); kind != "ADDED" || at(o, "spec", "holderIdentity") != "ann" {
			t.Errorf("got %s %v", kind, o)
		}
	}
	if got, want := f.take(), (cost{Reads: 2, Since: 2}); got != want {
		t.Errorf("ten watches that resume: %+v, want %+v", got, want)
	}
	f.want(200, "GET", leases, nil)
	if got, want := f.take(), (cost{Lists: 1}); got != want {
		t.Errorf("a list beside a watch: %+v, want %+v", got, want)
	}
	f.pass(time.Second)
	f.want(200, "PUT", one, by(l, ""))
	for _, next := range watches {
		if kind, o := next(); kind != "MODIFIED" && kind != "ADDED" || at(o, "spec", "holderIdentity") != "" {
			t.Errorf("got %s %v", kind, o)
		}
	}
	if got, most := f.take(), (cost{Reads: 4}); got.Reads > most.Reads || got.Lists+got.Events+got.Since > 0 {
		t.Errorf("a release of which ten watches hear: %+v, want %+v at most", got, most)
	}
}
