package cache

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
)

// underway is a read of the store that is under way, for all who wait for it.
type underway struct {
	election leadership.Election
	asked    time.Duration // Now before the store was asked
	done     chan struct{} // closed once all below is set

	lease    leadership.Lease
	err      error
	panicked any
}

// join returns the read to wait for, and whether it is the caller's own: begun by this call, or not needed because another has just ended.
func (c *Cache) join(ctx context.Context, r leadership.ReadRequest) (u *underway, own bool) {
	sh := c.shard(r.Election)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s, ok := sh.slots[r.Election]
	if !ok {
		s = new(slot)
		sh.slots[r.Election] = s
	}
	if _, ok := c.reading(s.entry, r.Known); ok {
		return landed(s.entry), true
	}
	if s.read != nil {
		return s.read, false
	}
	u = &underway{election: r.Election, asked: c.now(), done: make(chan struct{})}
	s.read = u
	s.reads++
	c.reads.Go(func() { c.carryOut(context.WithoutCancel(ctx), u) })
	return u, true
}

// landed is the read that brought the entry, as far as one who waits for it can tell.
func landed(en *entry) *underway {
	u := &underway{asked: en.asked, done: make(chan struct{}), lease: en.lease}
	close(u.done)
	return u
}

// carryOut reads the store and lets all know who wait.
func (c *Cache) carryOut(ctx context.Context, u *underway) {
	ctx, cancel := context.WithTimeout(ctx, c.expiry)
	defer cancel()
	defer func() {
		u.panicked = recover()
		c.land(u)
		close(u.done)
	}()
	u.lease, u.err = c.ask(ctx, u.election, u.asked)
}

// land keeps what a read brought, unless it is older than what was learnt or heard since the read began.
func (c *Cache) land(u *underway) {
	brought := u.err == nil && u.panicked == nil
	if brought && c.kept.Load() >= c.size {
		c.sweep()
	}
	sh := c.shard(u.election)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.slots[u.election]
	s.reads--
	if s.read == u {
		s.read = nil
	}
	if brought {
		c.raise(s, u.lease.Revision)
		c.replace(s, c.newEntry(u.lease, u.asked))
	}
	sh.tidy(u.election, s)
}

// wait waits for a read. A panic of Get becomes that of all who wait.
func (c *Cache) wait(ctx context.Context, u *underway) (leadership.Reading, error) {
	select {
	case <-u.done:
	case <-ctx.Done():
		return leadership.Reading{}, fmt.Errorf("cache: %w: %w", leadership.StoreUnavailable, ctx.Err())
	}
	switch age := c.now() - u.asked; {
	case u.panicked != nil:
		panic(u.panicked)
	case u.err != nil:
		return leadership.Reading{}, u.err
	case age > c.expiry:
		return leadership.Reading{}, fmt.Errorf("cache: %w: the store took %v to answer, and a reading may be %v old", leadership.StoreUnavailable, age, c.expiry)
	default:
		return c.aged(u.lease, age), nil
	}
}
