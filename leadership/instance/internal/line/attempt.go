package line

import (
	"errors"
	"math"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/view"
)

const (
	// firstRetry is how long the head waits after a first failed attempt; the wait doubles after
	// each further one, up to maxRetry.
	firstRetry = 200 * time.Millisecond
	maxRetry   = view.Poll
)

// Attempt asks the store for the lease on behalf of the newest caller of a place. The driver that
// makes it sets Began.
type Attempt struct {
	Request leadership.AcquireRequest
	Caller  *Caller
	Began   time.Duration // right before the store is asked

	along    []*place // whose candidates bid with it
	standbys []leadership.Standby
	place    *place
	orders   int // the election's, when the attempt began
	halts    int // so
}

// Outcome is how an attempt ended.
type Outcome struct {
	Grant leadership.Grant
	Err   error
	Panic any // instead of either
}

// Turn says what to do: make an attempt, which Finish ends; or nothing until so much time is over,
// or the line is woken; or nothing any more, because the line is empty. A closed line begins no
// attempt. There is one attempt at a time.
func (l *Line) Turn(now time.Duration, closed bool) (a *Attempt, idle time.Duration, over bool) {
	l.notice(now)
	l.recognize(now)
	l.forgetForfeit(now, closed)
	if l.places.Len() == 0 {
		return nil, min(max(l.claim.again-now, 0), keep), l.claim.id == ""
	}
	if l.asking == nil && l.callers > 0 && !closed {
		if idle = l.due(now) - now; idle > 0 {
			return nil, min(idle, keep), false // and look again: timers stand still while the machine is suspended
		}
		l.asking = l.head(now)
	}
	if p := l.asking; p != nil {
		l.next = never
		a = &Attempt{Request: l.request(p, now), Caller: p.callers[len(p.callers)-1], along: l.along(p, now), place: p, orders: l.seen.orders, halts: l.seen.halts}
		a.standbys = standbys(a.along, now)
		return a, 0, false
	}
	return nil, keep, false
}

// request is the call for a place. It withdraws the bid of another candidate of the line, and the
// challenge of one that has gone.
func (l *Line) request(p *place, now time.Duration) leadership.AcquireRequest {
	r := p.request
	r.InLine = leadership.InLine{
		Instance: l.common.Instance, Principal: p.request.InLine.Principal, Waited: now - p.since, Writes: l.writes(),
		Present: l.common.present(r.Election), Quorum: l.rule.policy.Quorum,
	}
	if l.claim.id != r.CandidateID && (!l.claim.challenge || l.replaces(p, now)) {
		r.InLine.Withdraw = l.claim.id
	}
	return r
}

// never is when the head asks while an attempt is under way and nothing says otherwise.
const never = time.Duration(math.MaxInt64)

// due is when the head asks.
func (l *Line) due(now time.Duration) time.Duration {
	if l.preferred() != nil {
		return l.failures.again
	}
	if p := l.successor(now); p != nil {
		return max(p.retry, l.failures.again)
	}
	best := l.best(now)
	switch {
	case l.election.Yielded(now) != "": // nothing to ask for but the successor
		if l.seen.live {
			return l.next
		}
		return min(l.next, l.poll)
	case best == nil:
		return l.bars.over(now)
	case l.seen.live:
		return min(l.next, l.sooner(best, now))
	}
	_, look := l.expected(now)
	return min(l.next, l.sooner(best, now), l.poll, look)
}

// Finish takes the outcome of an attempt. It answers the callers for which that is the answer, and
// those that only waited for its end.
func (l *Line) Finish(a *Attempt, o Outcome, now time.Duration) {
	l.asking = nil
	l.looked(a.place, now)
	l.finish(a, o, now)
	for _, c := range slices.Clone(a.place.callers) {
		if why := c.client.Gone(); why != nil {
			c.leaving, c.why = true, why
		}
		if c.leaving {
			l.dismiss(c, now)
		}
	}
}

// finish draws the conclusions from an attempt, and answers the callers that it decides for good.
func (l *Line) finish(a *Attempt, o Outcome, now time.Duration) {
	p := a.place
	refuse := func(c *Caller) { c.refused(o.Err) }
	switch {
	case o.Panic != nil:
		l.settle(p, func(c *Caller) { c.answered(Answer{Panic: o.Panic}) })
		l.retryLater(now)
	case o.Err == nil:
		l.answered(p, now)
		l.common.View.Learn(&o.Grant.Lease, view.Committed, a.Began, now)
		l.ballot, l.claim, l.parent = ballot{}, claim{}, parent{election: l.parent.election}
		l.reschedule(now)
		l.settle(p, func(c *Caller) { c.granted(o.Grant, a.Began) })
	case errors.Is(o.Err, leadership.LeaseHeld):
		l.answered(p, now)
		l.held(a, o.Err, now)
	case errors.Is(o.Err, leadership.NotEligible) && refusedElsewhere(o.Err):
		l.unasked(p, o.Err, now)
	case errors.Is(o.Err, leadership.NotEligible):
		l.answered(p, now)
		refusal, _ := errors.AsType[*leadership.Error](o.Err)
		l.common.View.Learn(refusal.Lease, view.Read, a.Began, now)
		l.reschedule(now)
		l.settle(p, refuse)
	case errors.Is(o.Err, leadership.ElectionDeleted), errors.Is(o.Err, leadership.RecordCorrupt):
		for p := range l.each() {
			l.settle(p, refuse)
		}
		l.ballot, l.claim = ballot{}, claim{}
		l.next = now // if a caller joins before the line is over
	case errors.Is(o.Err, leadership.StoreUnavailable), errors.Is(o.Err, leadership.OutcomeUnknown):
		l.failed(a, o.Err, now)
	default:
		if _, refused := errors.AsType[*leadership.Error](o.Err); refused { // those behind the candidate may be granted
			l.unasked(p, o.Err, now)
			return
		}
		l.settle(p, refuse)
		l.retryLater(now)
	}
}

// refusedElsewhere reports whether the refusal is not the store's about this election: the lease
// that the candidate names in another one, perhaps of another service, was looked up before.
func refusedElsewhere(err error) bool {
	refusal, ok := errors.AsType[*leadership.Error](err)
	return !ok || refusal.Lease == nil
}

// unasked ends an attempt that did not reach the store. Earlier attempts keep their meaning: one of
// unknown outcome may still have been granted the lease, and a store that has failed is left alone
// for as long as before.
func (l *Line) unasked(p *place, err error, now time.Duration) {
	l.reschedule(now)
	l.next = max(l.next, l.failures.again)
	if p.unknown != nil {
		err = p.unknown
	}
	l.settle(p, func(c *Caller) { c.refused(err) })
	l.bereave(p)
}

// answered notes that the store has answered.
func (l *Line) answered(p *place, now time.Duration) {
	p.unknown = nil
	l.ahead = slices.DeleteFunc(l.ahead, func(other *place) bool { return other == p })
	l.failures = failures{}
	l.pollLater(now)
}

// held takes a refusal: the store says when asking again may help. One that an order is behind
// counts until an event of an order.
func (l *Line) held(a *Attempt, err error, now time.Duration) {
	refusal, ok := errors.AsType[*leadership.Error](err)
	if ok && refusal.Lease != nil {
		a.place.told = refusal.Lease.Token
	}
	bids := ok && isBallot(refusal.Cause) && refusal.Lease != nil && refusal.Lease.State == leadership.Vacant
	// An order, or the policy, stands against the grant. That a leader is safe from better
	// candidates does not.
	barred := ok && refusal.Cause != nil && !isBallot(refusal.Cause) && refusal.Cause.Code != leadership.ReasonHeld && !l.assignsSeat(refusal)
	if !barred || refusal.Cause.Code != leadership.ReasonParent {
		l.parent = parent{election: l.parent.election}
	}
	if !ok || refusal.Lease == nil || refusal.RetryAfter <= 0 && !barred {
		l.next = now + view.Poll
		return
	}
	l.common.View.Refused(refusal, a.Began, now)
	if l.ballot = (ballot{}); bids {
		l.bidden(a, refusal, now)
	}
	l.reschedule(now)
	if len(l.seats) > 0 && !bids && l.next <= now+eventSpread { // one got free meanwhile; or the store says otherwise, for a reason that is not known
		l.next = now + timerSpread
	}
	l.tried(a, refusal, now)
	l.passed(a, refusal)
	if barred && a.orders == l.election.Orders() && a.halts == l.common.halts() {
		l.barred(callerOf(a.Request), refusal, now)
	}
}

// reschedule says when the head asks after an answer of the store. An event that counts more than
// the answer, because it was heard since the store was asked, is noticed at the next Turn.
func (l *Line) reschedule(now time.Duration) {
	version, open := l.election.Version(), l.open(now)
	l.learnRule()
	if len(l.seats) > 0 {
		l.see()
		l.seatsChanged(now)
		return
	}
	if l.ballot.open() {
		l.next = max(l.ballot.until, now) // the turn: its ranks keep the instances apart
	}
	switch {
	case l.election.Event() == nil && l.ballot.open():
	case l.election.Event() == nil && open > now:
		l.end = open + l.common.jitter(timerSpread)
		l.next = l.end
	case l.election.Event() == nil:
		l.next = now // it was released meanwhile
	case version == l.seen.version: // it was heard in the very moment
		l.next = now + l.common.jitter(soon)
	default:
		return
	}
	l.seen.version, l.seen.terms = version, l.election.Terms()
}

// failures describes the failed attempts since the store's last answer.
type failures struct {
	count     int
	last      error         // nil if the store has answered since
	unsettled bool          // the outcome of one of them is unknown
	again     time.Duration // no earlier the store is asked again, whatever the reason
}

// failed takes an attempt that is to be repeated, by the same head unless its caller has gone. Then
// that may be why the attempt failed, and the next in line is tried at once.
func (l *Line) failed(a *Attempt, err error, now time.Duration) {
	if errors.Is(err, leadership.OutcomeUnknown) {
		a.place.unknown = err
		l.failures.unsettled = true
		l.prefer(a.place)
		l.mayClaim(a)
	}
	if a.Caller.client.Gone() != nil {
		l.next = now
		return
	}
	l.failures.last = err
	l.retryLater(now)
}

// retryLater lets the head ask again after a while.
func (l *Line) retryLater(now time.Duration) {
	pause := backoff.After(l.failures.count, firstRetry, maxRetry)
	l.failures.count++
	l.next = now + pause/2 + l.common.jitter(pause/2)
	l.poll, l.failures.again = l.next, l.next
}

// Orphan returns the lease that the end of an attempt shows to be held by a key that no caller was
// told, for its maker to release before Finish. After an answer no earlier attempt can be granted
// any more.
func (l *Line) Orphan(err error) (leadership.LeaseRequest, bool) {
	answered := err == nil || errors.Is(err, leadership.LeaseHeld) || errors.Is(err, leadership.NotEligible) && !refusedElsewhere(err)
	if !answered {
		return leadership.LeaseRequest{}, false
	}
	orphans := l.orphans
	l.orphans = nil
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Lease == nil {
		return leadership.LeaseRequest{}, false
	}
	lease := refusal.Lease
	key, ok := orphans[lease.LeaderID]
	return leadership.LeaseRequest{Election: lease.Election, CandidateID: lease.LeaderID, Key: key, Token: lease.Token}, ok
}
