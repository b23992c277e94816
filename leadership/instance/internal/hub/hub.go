package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/view"
	"regent/leadership/rule"
)

// Store is the source of a Hub. A *service.Service is one. Its calls end with their context.
type Store interface {
	// Get reads an election, strongly: it sees every change that was reported as done before the
	// call.
	Get(context.Context, leadership.Election) (leadership.Lease, error)
	// Expire records that an election's lease has run out, if it has, and returns the election.
	Expire(context.Context, leadership.Election) (leadership.Lease, error)
	// Events and Since read the history, and Now the store's clock.
	Events(context.Context, leadership.EventsRequest) ([]leadership.Event, error)
	Since(context.Context, time.Time) (rule.Recent, error)
	Now(context.Context) (time.Time, error)
}

// How old a cached reading may be.
const (
	DefaultExpiry = 5 * time.Second
	MaxExpiry     = 10 * time.Second
)

// DefaultSize is how many elections are kept for readers.
const DefaultSize = 10_000

// Config says how to make a Hub. Store is required.
type Config struct {
	Store Store
	// Live says that the hub is told of every event, because no other process changes the store.
	Live bool
	// Expiry is how old a cached reading may be, and so how long a read of the store may take: at
	// most MaxExpiry; 0 for DefaultExpiry.
	Expiry time.Duration
	// Size is how many elections are kept for readers at most; 0 for DefaultSize. Those for which
	// there is no room are read from the store each time.
	Size int
	// Now is a clock that never goes back, that cannot be set, and that runs while the machine is
	// suspended; nil for boottime.Now.
	Now func() time.Duration
	// Log gets a line for each lease whose end could not be recorded; nil logs nothing.
	Log *slog.Logger
}

func (c Config) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("hub: Store is missing")
	case c.Expiry < 0 || c.Expiry > MaxExpiry:
		return fmt.Errorf("hub: the cache expiry is from 0s to %v, not %v", MaxExpiry, c.Expiry)
	case c.Size < 0:
		return fmt.Errorf("hub: the size of the cache is 0 or more, not %d", c.Size)
	}
	return nil
}

// Hub shares one process's knowledge of the elections. Its methods may be called concurrently.
type Hub struct {
	store  Store
	now    func() time.Duration
	log    *slog.Logger
	expiry time.Duration // of cached readings

	asks    chan struct{}   // holds one value for each look into the history in progress
	sooner  chan struct{}   // of one: Run has something to do earlier than planned
	life    context.Context // ends when the hub is closed
	end     context.CancelCauseFunc
	running sync.WaitGroup // reads and looks, which continue after their callers have left
	feeds   feeds

	hits, misses, shared atomic.Int64 // of reads

	mu       wakeMutex // guards all below
	view     *view.View
	landings map[leadership.Election]*landing
	looks    map[lookKey]*look
}

// New returns a hub. The error names an invalid part of the Config.
func New(c Config) (*Hub, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	h := &Hub{
		store:    c.Store,
		now:      c.Now,
		log:      cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		expiry:   cmp.Or(c.Expiry, DefaultExpiry),
		asks:     make(chan struct{}, maxAsks),
		sooner:   make(chan struct{}, 1),
		landings: make(map[leadership.Election]*landing),
		looks:    make(map[lookKey]*look),
	}
	if h.now == nil {
		h.now = boottime.Now
	}
	h.view = view.New(view.Config{
		Expiry: h.expiry, Size: cmp.Or(c.Size, DefaultSize), Live: c.Live, Jitter: rand.N[time.Duration],
	})
	h.feeds = feeds{hub: h, size: maxEntries, most: maxKnown, wake: make(chan struct{}, 1)}
	h.life, h.end = context.WithCancelCause(context.Background())
	return h, nil
}

// View calls do with the view, which is locked until do returns, and the time. Do must not block,
// nor call the hub.
func (h *Hub) View(do func(v *view.View, now time.Duration)) {
	h.mu.Lock()
	defer h.unlock()
	do(h.view, h.now())
}

// Hold keeps an election in the view until release is called.
func (h *Hub) Hold(name leadership.Election) (release func()) {
	var e *view.Election
	h.View(func(v *view.View, _ time.Duration) { e = v.Hold(name) })
	return func() { h.View(func(v *view.View, _ time.Duration) { v.Release(e) }) }
}

// Now is the hub's clock.
func (h *Hub) Now() time.Duration { return h.now() }

// unlock unlocks the mutex, wakes the watches of elections with a new report, and lets Run know if
// it has something to do sooner.
func (h *Hub) unlock() {
	for _, e := range h.view.Reported() {
		h.mu.wake(&e.News)
	}
	if h.view.Sooner() {
		backoff.Signal(h.sooner)
	}
	h.mu.Unlock()
}

// Learn remembers the store's answer about an election, to a call that began at asked. It does not
// block.
func (h *Hub) Learn(l *leadership.Lease, from view.Source, asked time.Duration) {
	h.View(func(v *view.View, now time.Duration) { h.learn(v, l, from, asked, now) })
}

// LearnAll is Learn for the results of a batch of renewals.
func (h *Hub) LearnAll(all []leadership.Result, asked time.Duration) {
	h.View(func(v *view.View, now time.Duration) {
		for i := range all {
			if all[i].Err == nil {
				h.learn(v, &all[i].Lease, view.Committed, asked, now)
			}
		}
	})
}

func (h *Hub) learn(v *view.View, l *leadership.Lease, from view.Source, asked, now time.Duration) {
	if v.Learn(l, from, asked, now) {
		wakeLines(v.Find(l.Election))
	}
}

// Follow arranges that the end of a lease that a reader is about to watch will be recorded; see
// view.View. It does not block.
func (h *Hub) Follow(l leadership.Lease) {
	h.View(func(v *view.View, now time.Duration) { v.Follow(l, now) })
}

// RenewedHere returns the leases that this instance has granted or renewed; see view.View.
func (h *Hub) RenewedHere() (all []view.Renewal) {
	h.View(func(v *view.View, now time.Duration) { all = v.RenewedHere(now) })
	return all
}

// RenewedElsewhere notes that another instance has renewed leases; see view.View.
func (h *Hub) RenewedElsewhere(all ...view.Renewal) {
	h.View(func(v *view.View, now time.Duration) {
		for _, r := range all {
			v.RenewedElsewhere(r.Election, r.Token, r.Left, now)
		}
	})
}

// Appended notes that the journal of an election has reached an index. It does not block.
func (h *Hub) Appended(name leadership.Election, i leadership.Index) {
	h.View(func(v *view.View, _ time.Duration) {
		if v.Appended(name, i) {
			backoff.Signal(v.Find(name).Appends)
		}
	})
}

// Publish passes events on, of this instance or another. It does not block. Events that are not
// newer than the last one heard are ignored.
func (h *Hub) Publish(events ...leadership.Event) {
	h.View(func(v *view.View, now time.Duration) {
		for _, e := range events {
			if !v.Heard(e, now) {
				continue
			}
			h.wake(e.Election)
			if e.Election == leadership.HaltsElection { // a halt concerns the lines of other elections
				for other := range v.All() {
					wakeLines(other)
				}
			}
		}
	})
	h.feeds.hear(events)
}

// MembersChanged wakes the watches of an election, to ask for changes of its members. It does not
// block.
func (h *Hub) MembersChanged(name leadership.Election) {
	h.View(func(v *view.View, _ time.Duration) {
		if e := v.Find(name); e != nil {
			h.mu.wake(&e.News)
		}
	})
}

// SetLive sets whether the hub is told of every event from now on. Every call wakes all listeners.
// If live, the hub looks into the history once, because some events may have been missed before; if
// not, it looks every view.Poll.
func (h *Hub) SetLive(live bool) {
	h.View(func(v *view.View, now time.Duration) {
		v.SetLive(live, now)
		for e := range v.All() {
			h.wakeAll(e)
		}
	})
	h.feeds.doubt()
}

// Live reports whether the hub is told of every event.
func (h *Hub) Live() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.view.Live()
}

// Current reports whether r is known, without a look, to be the election's newest revision: the
// election is watched, and r is its last known revision.
func (h *Hub) Current(e leadership.Election, r leadership.Revision) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.view.Current(e, r)
}

// wake wakes all listeners of an election. Call this and all methods below with the mutex held.
func (h *Hub) wake(name leadership.Election) {
	if e := h.view.Find(name); e != nil {
		h.wakeAll(e)
	}
}

func (h *Hub) wakeAll(e *view.Election) {
	wakeLines(e)
	h.mu.wake(&e.News)
}

// wakeLines wakes the lines of an election; of none if e is nil.
func wakeLines(e *view.Election) {
	if e == nil {
		return
	}
	for line := range e.Lines {
		backoff.Signal(line)
	}
}

// Close ends all present and future watches and feeds with the cause. Idempotent.
func (h *Hub) Close(cause error) { h.end(cause) }

// Done returns a channel that is closed once the hub is closed.
func (h *Hub) Done() <-chan struct{} { return h.life.Done() }

// Cause returns the cause that the hub was closed with; nil before.
func (h *Hub) Cause() error { return context.Cause(h.life) }
