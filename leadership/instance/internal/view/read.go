package view

import (
	"time"

	"regent/leadership"
)

// Fresh returns the lease, or the absence, that may be shown to a reader that has seen the
// revision, until it is Over; nil if the store has to be read. Only the result of a read is shown:
// the answer to a call of this instance may be older than an event that was heard while the
// election was not remembered.
func (v *View) Fresh(name leadership.Election, known leadership.Revision) *Lease {
	e, ok := v.elections[name]
	if !ok || !e.isKept() || e.event != nil || e.lease.Deleted && e.lease.Absent == nil || e.lease.Revision < known {
		return nil
	}
	return e.lease
}

// Over is when the lease must not be shown any more: at the expiry, at the end of the lease and at
// the end of the lock delay, whichever comes first.
func (l *Lease) Over(expiry time.Duration) time.Duration {
	left := expiry
	if l.State == leadership.Held {
		left = min(left, l.ExpiresIn)
	}
	if l.LockedFor > 0 {
		left = min(left, l.LockedFor)
	}
	return l.Asked + left
}

// Newest returns the newest known revision. A read of the store that began when it was another may
// miss newer changes.
func (v *View) Newest(name leadership.Election) leadership.Revision {
	if e, ok := v.elections[name]; ok {
		return e.newest
	}
	return 0
}

// Reading notes that a read of the store begins. The election is remembered until Landed.
func (v *View) Reading(name leadership.Election) { v.election(name).reads++ }

// Landed takes the result of a read of the store: nil for none. It is kept for other readers if
// there is room, unless something newer is known. It reports whether that is news to a line.
func (v *View) Landed(name leadership.Election, l *leadership.Lease, asked, now time.Duration) (wake bool) {
	e := v.elections[name]
	if l != nil {
		e.learnEnd(l, Read, now)
		wake = e.learn(l, asked, now, v.opens(l, now), false)
		if !e.isKept() && e.lease != nil && e.event == nil && (v.room(now) || e.isHalts()) {
			v.kept[e] = struct{}{}
		}
	}
	e.reads--
	v.settle(e)
	return wake
}

// Missing takes the result of a read of the store that found no such election, in place of Landed:
// l is its tombstone, or has the name alone. It is kept for other readers, as a lease is, unless
// anything newer is known. Absences take up to half of the room, for there are endless names that
// no election has.
func (v *View) Missing(l leadership.Lease, absent error, asked, now time.Duration) {
	e := v.elections[l.Election]
	if e.event == nil && e.newest == l.Revision && (e.isKept() || e.isHalts() || len(v.kept) < v.c.Size/2 && v.room(now)) {
		v.kept[e] = struct{}{}
		e.lease = &Lease{Lease: l, Asked: asked, Learnt: now, Absent: absent}
	}
	e.reads--
	v.settle(e)
}

// isHalts reports whether each grant needs the election, so that there is always room for it.
func (e *Election) isHalts() bool { return e.name == leadership.HaltsElection }

// sweepsPerExpiry limits the cost of a full cache.
const sweepsPerExpiry = 10

// room reports whether another lease can be kept for readers. If there is none, those that are over
// are dropped, unless that was just done.
func (v *View) room(now time.Duration) bool {
	if len(v.kept) < v.c.Size {
		return true
	}
	if now < v.sweepAt {
		return false
	}
	v.sweepAt = now + v.c.Expiry/sweepsPerExpiry
	for e := range v.kept {
		if now >= e.lease.Over(v.c.Expiry) {
			delete(v.kept, e)
			v.settle(e)
		}
	}
	return len(v.kept) < v.c.Size
}
