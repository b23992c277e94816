package line

import (
	"fmt"
	"time"

	"regent/leadership"
)

// parting is the answer to a caller who leaves without a lease.
func (l *Line) parting(c *Caller, now time.Duration) error {
	switch p := c.place; {
	case p.unknown != nil:
		return p.unknown
	case c.why != nil:
		return c.why
	case l.failures.last != nil:
		return l.failures.last
	default:
		return l.refusal(p, now)
	}
}

// refusal tells a candidate whose wait is over what is known of the lease, and how to go on.
func (l *Line) refusal(p *place, now time.Duration) *leadership.Error {
	lease := aged(l.known.lease, now-l.known.at)
	e := &leadership.Error{Code: leadership.LeaseHeld, Reason: leadership.ReasonHeld, RetryAfter: max(l.known.open-now, 0)}
	if lease.State != "" {
		e.Lease = &lease
	}
	var what string
	switch {
	case lease.State == leadership.Held && lease.LeaderID == p.request.CandidateID:
		e.Reason = leadership.ReasonIncarnation
		what = fmt.Sprintf("%q leads election %q, with another key", lease.LeaderID, l.election)
	case lease.State == leadership.Held:
		what = fmt.Sprintf("%q leads election %q", lease.LeaderID, l.election)
	case e.RetryAfter > 0:
		e.Reason = leadership.ReasonLockDelay
		what = fmt.Sprintf("nobody may lead election %q for another %v", l.election, e.RetryAfter.Round(time.Millisecond))
	default:
		what = fmt.Sprintf("others who stand in line for election %q come first", l.election)
	}
	e.Detail = what + "; the wait is over: ask again within " + keep.String() + " to keep the place in line"
	if p.drawn {
		e.Detail = what + "; the wait is over: ask again, with a key of your own to keep a place in line"
	} else {
		e.RetryAfter = 0 // the end of the lease may be far, and the place is kept for a moment only
	}
	return e
}
