package view

import (
	"time"

	"regent/leadership"
)

// Fresh returns the lease, or the absence, that may be shown, until it is Over, to a reader that
// has seen the revision known; nil if the store must be read. Only the result of a read may be
// shown: the answer to another call may be older than an event that was heard while the election
// was not remembered.
func (v *View) Fresh(name leadership.Election, known leadership.Revision) *Lease {
	e, ok := v.elections[name]
	if !ok || !e.isKept() || e.event != nil || e.lease.Deleted && e.lease.Absent == nil || e.lease.Revision < known {
		return nil
	}
	return e.lease
}

// Over returns when the lease may no longer be shown: at the expiry, the end of the lease or the
// end of the lock delay, whichever comes first.
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

// Newest returns the newest known revision. A read of the store that began when this was lower may
// miss changes.
func (v *View) Newest(name leadership.Election) leadership.Revision {
	if e, ok := v.elections[name]; ok {
		return e.newest
	}
	return 0
}

// Reading notes that a read of the store begins. The election is remembered until Landed.
func (v *View) Reading(name leadership.Election) { v.election(name).reads++ }

// Landed handles the result of a read of the store: nil for none. It is cached if there is room,
// unless something newer is known. Landed reports whether it is news to a line.
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

// Missing is Landed for a read that found no such election: l is its tombstone, or has only the
// name. It is cached, as a lease is, unless something newer is known. Absences take up to half of
// the room, because the names without an election are endless.
func (v *View) Missing(l leadership.Lease, absent error, asked, now time.Duration) {
	e := v.elections[l.Election]
	if e.event == nil && e.newest == l.Revision && (e.isKept() || e.isHalts() || len(v.kept) < v.c.Size/2 && v.room(now)) {
		v.kept[e] = struct{}{}
		e.lease = &Lease{Lease: l, Asked: asked, Learnt: now, Absent: absent}
	}
	e.reads--
	v.settle(e)
}

// isHalts reports whether e is HaltsElection, which each grant needs, so that there is always room
// for it.
func (e *Election) isHalts() bool { return e.name == leadership.HaltsElection }

// sweepsPerExpiry limits the cost of a full cache.
const sweepsPerExpiry = 10

// room reports whether another lease can be cached. If there is no room, it first drops the leases
// that are over, unless that was just done.
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
