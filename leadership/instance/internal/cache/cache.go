package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
)

// How old a reading may be.
const (
	DefaultExpiry = 5 * time.Second
	MaxExpiry     = 10 * time.Second
)

// DefaultSize is how many elections are kept.
const DefaultSize = 10_000

// Config is how a Cache is made. Get is required.
type Config struct {
	// Get reads the store, strongly: it sees every change that was reported as done before the call. It must heed its ctx.
	Get func(context.Context, leadership.Election) (leadership.Lease, error)
	// Expiry is how old a reading may be, and so how long a read of the store may take: at most MaxExpiry; 0 for DefaultExpiry.
	Expiry time.Duration
	// Size is how many elections are kept at most; 0 for DefaultSize. Those for which there is no room are read from the store each time.
	Size int
	// Now is a clock that never goes back, that nobody can set, and that runs while the machine is suspended; nil for boottime.Now.
	Now func() time.Duration
}

func (c Config) validate() error {
	switch {
	case c.Get == nil:
		return errors.New("cache: Get is missing")
	case c.Expiry < 0 || c.Expiry > MaxExpiry:
		return fmt.Errorf("cache: the expiry is from 0s to %v, not %v", MaxExpiry, c.Expiry)
	case c.Size < 0:
		return fmt.Errorf("cache: the size is 0 or more, not %d", c.Size)
	}
	return nil
}

// Cache answers reads. All methods may be called at the same time.
type Cache struct {
	get    func(context.Context, leadership.Election) (leadership.Lease, error)
	expiry time.Duration
	size   int64
	now    func() time.Duration

	seed    maphash.Seed
	shards  [64]shard
	kept    atomic.Int64 // entries in all shards
	sweepAt atomic.Int64 // Now from when on the next sweep may be
	reads   sync.WaitGroup

	hits, misses, shared atomic.Int64
}

// Reads counts the reads that were no strong ones: answered from memory, by asking the store, and by waiting with another that asked.
func (c *Cache) Reads() (hits, misses, shared int64) {
	return c.hits.Load(), c.misses.Load(), c.shared.Load()
}

// New returns an empty cache. An error says what is wrong with the Config.
func New(config Config) (*Cache, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Cache{
		get:    config.Get,
		expiry: cmp.Or(config.Expiry, DefaultExpiry),
		size:   int64(cmp.Or(config.Size, DefaultSize)),
		now:    config.Now,
		seed:   maphash.MakeSeed(),
	}
	if c.now == nil {
		c.now = boottime.Now
	}
	for i := range c.shards {
		c.shards[i].slots = make(map[leadership.Election]*slot)
	}
	return c, nil
}

// Wait waits for the reads of the store that go on although those who waited for them have gone; that takes Expiry at most. It is to be
// called when Read will not be called any more.
func (c *Cache) Wait() { c.reads.Wait() }

// Read answers from the cache or, if that has nothing or the request is Strong, from the store. It blocks until the store has answered or
// ctx has ended.
//
// ExpiresIn, RenewIn and LockedFor of an answer with an Age hold at the moment when Read returns; ReadAt is when the store was read, by
// its own clock. An answer that was not asked for as Strong has an Age even if the store was asked for it.
//
// Errors: those of Get, which are not kept; RevisionMismatch, with the election as it is, if the store has less than Known;
// StoreUnavailable if ctx ended, or if the store took longer than Expiry.
func (c *Cache) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	if !r.Strong {
		if reading, ok := c.reading(c.shard(r.Election).entry(r.Election), r.Known); ok {
			c.hits.Add(1)
			return reading, nil
		}
	}
	reading, err := c.miss(ctx, r)
	if err == nil && reading.Revision < r.Known {
		return leadership.Reading{}, refuseBehind(r.Known, reading.Lease)
	}
	return reading, err
}

// miss asks the store, or waits with others who have asked.
func (c *Cache) miss(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	if r.Strong {
		return c.strong(ctx, r.Election)
	}
	for again := false; ; again = true {
		u, own := c.join(ctx, r)
		if !again {
			c.count(own)
		}
		reading, err := c.wait(ctx, u)
		// A read that others began before this call may have missed what its reader has seen. The next one has not.
		if own || again || !behind(r.Known, reading, err) {
			return reading, err
		}
	}
}

// count counts a read that was not answered from memory.
func (c *Cache) count(own bool) {
	if own {
		c.misses.Add(1)
	} else {
		c.shared.Add(1)
	}
}

// behind says whether the store's answer is older than what a reader has seen.
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

// strong asks the store by a read of the caller's own.
func (c *Cache) strong(ctx context.Context, e leadership.Election) (leadership.Reading, error) {
	asked := c.now()
	l, err := c.ask(ctx, e, asked)
	if err != nil {
		return leadership.Reading{}, err
	}
	c.Learn(l, asked)
	return leadership.Reading{Lease: l}, nil
}

// ask reads the store. What a refusal tells of the election is learnt.
func (c *Cache) ask(ctx context.Context, e leadership.Election, asked time.Duration) (leadership.Lease, error) {
	l, err := c.get(ctx, e)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Lease != nil {
		c.Learn(*refusal.Lease, asked)
	}
	return l, err
}
