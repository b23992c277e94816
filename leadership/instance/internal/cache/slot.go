package cache

import (
	"hash/maphash"
	"sync"
	"time"

	"regent/leadership"
)

// shard is a part of the elections, so that those who read one seldom wait for those who learn of another.
type shard struct {
	mu    sync.RWMutex // guards all below
	slots map[leadership.Election]*slot
}

// slot is an election that is kept, or being read. Others have none, and cost nothing.
type slot struct {
	entry *entry
	read  *underway           // that whoever comes may join
	reads int                 // under way, also those that nobody joins any more
	floor leadership.Revision // the newest revision that this instance knew of since the slot is there; entry has no less
}

// entry is what the store had. It is never changed.
type entry struct {
	lease leadership.Lease
	asked time.Duration // Now before the store was asked
	until time.Duration // Now when it is over
}

func (c *Cache) shard(e leadership.Election) *shard {
	return &c.shards[maphash.String(c.seed, string(e))%uint64(len(c.shards))]
}

// entry returns what is kept of the election; nil for nothing.
func (sh *shard) entry(e leadership.Election) *entry {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	if s, ok := sh.slots[e]; ok {
		return s.entry
	}
	return nil
}

func (sh *shard) has(e leadership.Election) bool {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	_, ok := sh.slots[e]
	return ok
}

// tidy removes a slot that nobody needs.
func (sh *shard) tidy(e leadership.Election, s *slot) {
	if s.entry == nil && s.reads == 0 {
		delete(sh.slots, e)
	}
}

// newEntry is over at the expiry, at the end of the lease and at the end of the lock delay, whichever comes first.
func (c *Cache) newEntry(l leadership.Lease, asked time.Duration) *entry {
	left := c.expiry
	if l.State == leadership.Held {
		left = min(left, l.ExpiresIn)
	}
	if l.LockedFor > 0 {
		left = min(left, l.LockedFor)
	}
	return &entry{lease: l, asked: asked, until: asked + left}
}

// reading is what a reader who has seen the revision is shown of the entry; not ok if the store has to be asked.
func (c *Cache) reading(en *entry, known leadership.Revision) (reading leadership.Reading, ok bool) {
	if en == nil || en.lease.Revision < known {
		return reading, false
	}
	now := c.now() // after the entry was found, or its age would be too low
	if now >= en.until {
		return reading, false
	}
	return c.aged(en.lease, now-en.asked), true
}

// aged is the lease after some time.
func (c *Cache) aged(l leadership.Lease, age time.Duration) leadership.Reading {
	l.ExpiresIn = max(l.ExpiresIn-age, 0)
	l.RenewIn = max(l.RenewIn-age, 0)
	l.LockedFor = max(l.LockedFor-age, 0)
	return leadership.Reading{Lease: l, Age: age, Bound: c.expiry}
}

// Learn takes over what this instance has just learnt from the store: by a change of its own, a renewal, or a refusal. asked is Now before
// the store was asked. An older entry of the election is replaced; where there is none, none is made. It does not block.
func (c *Cache) Learn(l leadership.Lease, asked time.Duration) {
	c.change(l.Election, func(s *slot) {
		kept := s.entry != nil
		c.raise(s, l.Revision)
		if kept && !l.Deleted {
			c.replace(s, c.newEntry(l, asked))
		}
	})
}

// Heard empties the cache of what is older than the event. It does not block.
func (c *Cache) Heard(e leadership.Event) {
	c.change(e.Election, func(s *slot) { c.raise(s, e.Revision) })
}

// change changes the election's slot, if there is one. Most often there is none: that costs a look.
func (c *Cache) change(e leadership.Election, do func(*slot)) {
	sh := c.shard(e)
	if !sh.has(e) {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s, ok := sh.slots[e]; ok {
		do(s)
		sh.tidy(e, s)
	}
}

// raise notes that the store has come to the revision. What is older is not shown any more, and a read that may have begun before is not
// joined.
func (c *Cache) raise(s *slot, r leadership.Revision) {
	if r > s.floor {
		s.floor, s.read = r, nil
		c.put(s, nil)
	}
}

// replace makes en the entry unless it is older than what there is, or than what is known.
func (c *Cache) replace(s *slot, en *entry) {
	older := s.entry != nil && en.lease.ReadAt.Before(s.entry.lease.ReadAt)
	if en.lease.Revision == s.floor && !older {
		c.put(s, en)
	}
}

// put makes en the entry, if there is room; nil for none.
func (c *Cache) put(s *slot, en *entry) {
	switch {
	case en == nil && s.entry != nil:
		c.kept.Add(-1)
	case en != nil && s.entry == nil && c.kept.Add(1) > c.size:
		c.kept.Add(-1)
		return
	}
	s.entry = en
}

// sweepsPerExpiry bounds what it costs that the cache is full.
const sweepsPerExpiry = 10

// sweep drops what is over, unless that was just done.
func (c *Cache) sweep() {
	now, at := c.now(), c.sweepAt.Load()
	if int64(now) < at || !c.sweepAt.CompareAndSwap(at, int64(now+c.expiry/sweepsPerExpiry)) {
		return
	}
	for i := range c.shards {
		c.shards[i].sweep(c, now)
	}
}

func (sh *shard) sweep(c *Cache, now time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for e, s := range sh.slots {
		if s.entry != nil && now >= s.entry.until {
			c.put(s, nil)
			sh.tidy(e, s)
		}
	}
}
