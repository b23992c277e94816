package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// Reads counts the reads that were not strong: answered from memory, by a read of the store, and by
// a read that another caller had begun.
func (h *Hub) Reads() (hits, misses, shared int64) {
	return h.hits.Load(), h.misses.Load(), h.shared.Load()
}

// WaitReads waits for reads of the store that continue after their callers have left; that takes at
// most the cache's expiry. Call it once Read is no longer called.
func (h *Hub) WaitReads() { h.running.Wait() }

// Read answers from memory or, if that has nothing or the request is Strong, from the store. It
// blocks until the store has answered or ctx has ended.
//
// ExpiresIn, RenewIn, LockedFor, EndsIn and ReportAge of an answer with an Age hold at the moment
// when Read returns; ReadAt is when the store was read, by its own clock. An answer that was not
// asked for as Strong has an Age even if the store was asked for it.
//
// Errors: those of the store, of which only NotFound is cached, as a lease is, and then comes with
// an Age; RevisionMismatch, with the election, if the store has an older revision than Known;
// StoreUnavailable if ctx ended, or if the store took longer than the expiry.
func (h *Hub) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	if !r.Strong {
		if reading, err, ok := h.fresh(r); ok {
			h.hits.Add(1)
			return reading, err
		}
	}
	reading, err := h.miss(ctx, r)
	if err == nil && reading.Revision < r.Known {
		return leadership.Reading{}, refuseBehind(r.Known, reading.Lease)
	}
	return reading, err
}

// Doubt reads an election that may have changed without a call of Publish: its caller gave up
// during the commit. If the read fails, the next strong read shows the change.
func (h *Hub) Doubt(e leadership.Election) {
	h.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.expiry)
		defer cancel()
		if _, err := h.miss(ctx, leadership.ReadRequest{Election: e, Strong: true}); err == nil {
			h.feeds.doubt()
		}
	})
}

// fresh answers from memory, if that is allowed and possible.
func (h *Hub) fresh(r leadership.ReadRequest) (reading leadership.Reading, absent error, ok bool) {
	l := func() *view.Lease {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.view.Fresh(r.Election, r.Known)
	}()
	if l == nil {
		return reading, nil, false
	}
	now := h.now() // after the lease was found: otherwise its age would be too low
	switch {
	case now >= l.Over(h.bound(r.Election)):
		return reading, nil, false
	case l.Absent != nil:
		return leadership.Reading{Age: now - l.Asked}, l.Absent, true
	}
	return h.aged(l, now-l.Asked), nil, true
}

// bound returns how old a cached reading may be. For the halts, which grants depend on, the
// configuration cannot make it longer than the default.
func (h *Hub) bound(e leadership.Election) time.Duration {
	if e == leadership.HaltsElection {
		return min(h.expiry, DefaultExpiry)
	}
	return h.expiry
}

func (h *Hub) aged(l *view.Lease, age time.Duration) leadership.Reading {
	return leadership.Reading{Lease: view.Aged(l.Lease, age), Age: age, Bound: h.bound(l.Election)}
}

// miss reads the store, or waits for a read that another caller has begun.
func (h *Hub) miss(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	if r.Strong {
		asked := h.now()
		l, err := h.ask(ctx, r.Election, asked)
		if err == nil {
			h.Learn(&l, view.Read, asked)
		}
		return leadership.Reading{Lease: l}, err
	}
	for again := false; ; again = true {
		l, own := h.join(ctx, r)
		switch {
		case again:
		case own:
			h.misses.Add(1)
		default:
			h.shared.Add(1)
		}
		reading, err := h.await(ctx, l)
		// A read that began before this call may miss a revision that this reader has seen. The
		// next one does not.
		if own || again || !behind(r.Known, reading, err) {
			return reading, err
		}
	}
}

// behind reports whether the store's answer is older than the revision that a reader has seen.
func behind(known leadership.Revision, reading leadership.Reading, err error) bool {
	if err != nil {
		return known > 0 && errors.Is(err, leadership.NotFound)
	}
	return reading.Revision < known
}

func refuseBehind(known leadership.Revision, l leadership.Lease) error {
	return &leadership.Error{Code: leadership.RevisionMismatch, Lease: &l, Detail: fmt.Sprintf(
		"revision %d of election %q, which you have seen, is not in this store, where the newest is %d: it is another store, or one that was set back; forget what you have seen, and read again",
		known, l.Election, l.Revision)}
}

// ask reads the store. It also learns from the lease in a refusal.
func (h *Hub) ask(ctx context.Context, e leadership.Election, asked time.Duration) (leadership.Lease, error) {
	l, err := h.store.Get(ctx, e)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Lease != nil {
		h.Learn(refusal.Lease, view.Read, asked)
	}
	if err != nil {
		return leadership.Lease{}, err
	}
	return l, nil
}

// landing is a read of the store in progress, shared by all callers that wait for it.
type landing struct {
	election leadership.Election
	asked    time.Duration       // before the store was asked
	known    leadership.Revision // the newest known revision when it began: it may miss newer ones
	done     chan struct{}       // closed once all below is set

	lease    *view.Lease // nil if there is none; then err or panicked is set
	err      error
	panicked any
}

// join returns the read to wait for, and whether it is the caller's own: begun by this call, or not
// needed because another has just ended.
func (h *Hub) join(ctx context.Context, r leadership.ReadRequest) (l *landing, own bool) {
	h.mu.Lock()
	defer h.unlock()
	now := h.now()
	if fresh := h.view.Fresh(r.Election, r.Known); fresh != nil && now < fresh.Over(h.bound(r.Election)) {
		l = &landing{election: r.Election, asked: fresh.Asked, lease: fresh, err: fresh.Absent, done: make(chan struct{})}
		close(l.done)
		return l, true
	}
	known := h.view.Newest(r.Election)
	if l, ok := h.landings[r.Election]; ok && l.known == known {
		return l, false
	}
	l = &landing{election: r.Election, asked: now, known: known, done: make(chan struct{})}
	h.landings[r.Election] = l
	h.view.Reading(r.Election)
	h.running.Go(func() { h.carryOut(context.WithoutCancel(ctx), l) })
	return l, true
}

// carryOut reads the store and wakes all waiting callers.
func (h *Hub) carryOut(ctx context.Context, l *landing) {
	ctx, cancel := context.WithTimeout(ctx, h.bound(l.election))
	defer cancel()
	var brought *leadership.Lease
	defer func() {
		l.panicked = recover()
		h.land(l, brought)
		close(l.done)
	}()
	var lease leadership.Lease
	if lease, l.err = h.ask(ctx, l.election, l.asked); l.err == nil {
		brought, l.lease = &lease, &view.Lease{Lease: lease, Asked: l.asked}
	}
}

// land caches the result of a read, unless something newer is known.
func (h *Hub) land(l *landing, brought *leadership.Lease) {
	h.View(func(v *view.View, now time.Duration) {
		if h.landings[l.election] == l {
			delete(h.landings, l.election)
		}
		if missing, ok := l.missing(); ok {
			v.Missing(missing, l.err, l.asked, now)
		} else if v.Landed(l.election, brought, l.asked, now) {
			wakeLines(v.Find(l.election))
		}
	})
}

// missing returns the tombstone of an election that the read did not find; for one that was never
// seen it has only the name.
func (l *landing) missing() (leadership.Lease, bool) {
	refusal, ok := errors.AsType[*leadership.Error](l.err)
	switch {
	case !ok || refusal.Code != leadership.NotFound:
		return leadership.Lease{}, false
	case refusal.Lease != nil:
		return *refusal.Lease, true
	}
	return leadership.Lease{Election: l.election, State: leadership.Vacant}, true
}

// await waits for a read. A panic of the store is repeated in every waiting caller.
func (h *Hub) await(ctx context.Context, l *landing) (leadership.Reading, error) {
	select {
	case <-l.done:
	case <-ctx.Done():
		return leadership.Reading{}, fmt.Errorf("cache: %w: %w", leadership.StoreUnavailable, ctx.Err())
	}
	switch age, bound := h.now()-l.asked, h.bound(l.election); {
	case l.panicked != nil:
		panic(l.panicked)
	case l.err != nil:
		return leadership.Reading{Age: age}, l.err
	case age > bound:
		return leadership.Reading{}, fmt.Errorf("cache: %w: the store took %v to answer, and a reading may be %v old", leadership.StoreUnavailable, age, bound)
	default:
		return h.aged(l.lease, age), nil
	}
}
