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

// refusal tells a candidate whose wait is over the known state of the lease, and how to go on.
func (l *Line) refusal(p *place, now time.Duration) *leadership.Error {
	e := &leadership.Error{Code: leadership.LeaseHeld, Reason: leadership.ReasonHeld, RetryAfter: max(l.election.Open()-now, 0)}
	if known := l.election.Lease(); known != nil {
		e.Lease = new(aged(known.Lease, now-known.Learnt))
	}
	leader := l.election.Leader()
	var what string
	name := l.election.Name()
	switch {
	case leader == p.request.CandidateID:
		e.Reason = leadership.ReasonIncarnation
		what = fmt.Sprintf("%q leads election %q, with another key", leader, name)
	case leader != "":
		what = fmt.Sprintf("%q leads election %q", leader, name)
	case e.RetryAfter > 0:
		e.Reason = leadership.ReasonLockDelay
		what = fmt.Sprintf("election %q cannot be led for another %v", name, e.RetryAfter.Round(time.Millisecond))
	default:
		what = fmt.Sprintf("others who stand in line for election %q come first", name)
	}
	e.Detail = what + "; the wait is over: ask again within " + keep.String() + " to keep the place in line"
	if p.drawn {
		e.Detail = what + "; the wait is over: ask again, with a key of your own to keep a place in line"
	} else {
		e.RetryAfter = 0 // the end of the lease may be far, and the place is kept for a moment only
	}
	return e
}
