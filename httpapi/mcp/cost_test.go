package mcp_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
	"regent/store/memory"
)

// counted is a store that counts what it is asked.
type counted struct {
	*memory.Store
	reads, updates, renewals, logs atomic.Int64
}

func (c *counted) Get(ctx context.Context, e leadership.Election) (leadership.Snapshot, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, e)
}

func (c *counted) Update(ctx context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) (leadership.Snapshot, error) {
	c.updates.Add(1)
	return c.Store.Update(ctx, e, decide)
}

func (c *counted) Renew(ctx context.Context, batch []leadership.Renewal) []leadership.Renewed {
	c.renewals.Add(int64(len(batch)))
	return c.Store.Renew(ctx, batch)
}

func (c *counted) Look(ctx context.Context, id leadership.LogID) (leadership.Log, error) {
	c.logs.Add(1)
	return c.Store.Look(ctx, id)
}

// cost is how often the store was asked since the last time.
type cost struct{ Reads, Updates, Renewals, Logs int64 }

func (c *counted) take() cost {
	return cost{c.reads.Swap(0), c.updates.Swap(0), c.renewals.Swap(0), c.logs.Swap(0)}
}

// Over HTTP each call with a handle is confirmed by the store. A process of its own asks it nothing
// but renewals.
func TestWhatCallsCostTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		store := &counted{Store: f.store.(*memory.Store)}
		f.store = store
		door := f.door()
		own, m := f.open(f.begin(f.api())), connect(t, door, ann())
		time.Sleep(time.Minute)
		store.take()

		led := m.must("lead", args{"election": "reports", "leaseDuration": "30s", "keep": "1h"})
		if got, want := store.take(), (cost{Updates: 1, Logs: 1}); got != want { // the log is the secret, once
			t.Errorf("lead: %+v; want %+v", got, want)
		}
		m.must("leading", args{"handle": led["handle"]})
		if got, want := store.take(), (cost{Reads: 1}); got != want {
			t.Errorf("leading over HTTP: %+v; want %+v", got, want)
		}
		own.must("lead", args{"election": "backups", "leaseDuration": "30s"})
		store.take()
		own.must("leading", args{"handle": "backups"})
		if got := store.take(); got != (cost{}) {
			t.Errorf("leading in a process of its own: %+v; want nothing", got)
		}
		time.Sleep(10 * time.Minute)
		// 2 leases of 30 s, each renewed after some 9 to 10 s
		if got := store.take(); got.Renewals < 118 || got.Renewals > 140 || got.Updates > 2 {
			t.Errorf("two leaders for ten minutes: %+v", got)
		}
	})
}
