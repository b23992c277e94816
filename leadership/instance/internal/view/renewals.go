package view

import (
	"time"

	"regent/leadership"
)

// Renewal is a lease that an instance has granted or renewed lately.
type Renewal struct {
	Election leadership.Election
	Token    leadership.Token
	Left     time.Duration // until its end
	Duration time.Duration // of the lease
}

const (
	// maxRenewed is how many leases RenewedHere returns.
	maxRenewed = 10_000
	// thinning is how often leases that have ended are dropped to make room.
	thinning = time.Second
)

// noteRenewal remembers a lease that was granted or renewed here, if there is room.
func (e *Election) noteRenewal(l *leadership.Lease, now time.Duration) {
	e.end.token, e.end.lease = l.Token, l.LeaseDuration
	v := e.view
	if l.Succession.Yielded { // a yielded lease is not renewed
		delete(v.renewed, e)
		return
	}
	if _, ok := v.renewed[e]; ok {
		return
	}
	if len(v.renewed) >= maxRenewed && now >= v.thinAt {
		v.thinAt = now + thinning
		v.thin(now)
	}
	if len(v.renewed) < maxRenewed {
		v.renewed[e] = struct{}{}
	}
}

// thin drops the leases that have ended, or that this instance no longer looks after.
func (v *View) thin(now time.Duration) {
	for e := range v.renewed {
		if e.end.promised <= now {
			delete(v.renewed, e)
		}
	}
}

// RenewedHere returns the leases that this instance has granted or renewed and that have not ended
// as far as it knows: at most maxRenewed, in no order.
func (v *View) RenewedHere(now time.Duration) []Renewal {
	v.thin(now)
	all := make([]Renewal, 0, len(v.renewed))
	for e := range v.renewed {
		all = append(all, Renewal{e.name, e.end.token, e.end.promised - now, e.end.lease})
	}
	return all
}

const (
	// early is how long before the told end an instance looks at the latest, because the news was
	// delayed; for short leases it is a part of the lease, so that the next news comes before.
	early     = time.Second
	earlyPart = 8
)

// RenewedElsewhere handles the news that another instance has renewed a lease, which ends r.Left
// from now. If it is the known leader's lease, and candidates or watchers wait for its end, the
// next look is put off: never for longer than a lease, and never to an earlier moment. The news has
// no other effect: readers are shown the store's answers.
func (v *View) RenewedElsewhere(name leadership.Election, token leadership.Token, left, now time.Duration) {
	e, ok := v.elections[name]
	if !ok || !e.listened() || e.lease == nil || e.lease.State != leadership.Held || e.lease.Token != token {
		return
	}
	if leader, known, _ := e.leads(); leader == "" || known != token || e.succession.Yielded {
		return
	}
	left = min(left, e.lease.LeaseDuration)
	open := now + left - min(early, e.lease.LeaseDuration/earlyPart) + v.guard + e.lease.Config.LockDelay
	if open > e.open {
		e.open = open
		e.putOff++
	}
	if e.end.revision > 0 {
		e.end.due = max(e.end.due, v.dueAfter(left, now))
	}
}

// PutOff changes whenever Open has become later by news of another instance, and nothing else.
func (e *Election) PutOff() int { return e.putOff }
