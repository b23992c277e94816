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
	e := &leadership.Error{Code: leadership.LeaseHeld, Reason: leadership.ReasonHeld, RetryAfter: max(l.open(now)-now, 0)}
	if known := l.election.Lease(); known != nil {
		e.Lease = new(aged(known.Lease, now-known.Learnt))
		if known.State == leadership.Held {
			e.Lease.Succession = l.election.Succession(now)
		}
	}
	leader := l.election.Leader()
	var what string
	name := l.election.Name()
	switch b := l.bars.of(callerOf(p.request), now); {
	case b != nil:
		what = b.explain(e, p.request.CandidateID, now)
	case l.ballot.open() && !l.replaced(p):
		what = l.ballot.explain(e, p, now)
	case len(l.seats) > 0 && e.RetryAfter > 0:
		what = fmt.Sprintf("all seats of election %q are taken, or assigned to others", name)
	case l.election.Yielded(now) != "":
		what = fmt.Sprintf("%q has yielded election %q to %q", leader, name, l.election.Yielded(now))
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

// explain puts the bar into the refusal of a candidate, and says it in a sentence.
func (b *bar) explain(e *leadership.Error, c leadership.CandidateID, now time.Duration) string {
	cause := *b.refusal.Cause
	cause.Left = max(cause.Left-(now-b.learnt), 0)
	e.Reason, e.Cause, e.RetryAfter = cause.Code, &cause, max(e.RetryAfter, cause.Left)
	name, left := b.refusal.Lease.Election, cause.Left.Round(time.Millisecond)
	var what string
	switch cause.Code {
	case leadership.ReasonBanned:
		what = fmt.Sprintf("%s is not granted election %q for another %v", cause.Banned(c), name, left)
	case leadership.ReasonAssigned:
		what = fmt.Sprintf("election %q is assigned to another candidate for another %v", name, left)
	case leadership.ReasonPaused:
		what = fmt.Sprintf("election %q is paused for another %v", name, left)
	case leadership.ReasonHalted:
		what = fmt.Sprintf("election %q is halted, as all of %q, for another %v", name, cause.Elections, left)
	case leadership.ReasonApproval:
		return fmt.Sprintf("the last term of election %q ended because no operator had approved of it, and it is granted again once it is approved", name)
	case leadership.ReasonParked:
		return fmt.Sprintf("election %q is parked: %s; it is granted again once an operator approves", name, cause.Because)
	case leadership.ReasonSeats:
		return fmt.Sprintf("election %q is no seat any more: there are fewer now", name)
	case leadership.ReasonParent:
		return fmt.Sprintf("election %q is a part of election %q, which has no leader, or one whose lease is about to end", name, b.refusal.Lease.Config.Delegation.Parent)
	default:
		return fmt.Sprintf("%q is not granted election %q, for the reason %s", c, name, cause.Code)
	}
	return fmt.Sprintf("%s: %s (ordered by %s)", what, cause.Because, cause.Actor)
}
