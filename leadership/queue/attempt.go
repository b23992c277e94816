package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"regent/leadership"
)

// firstRetry is how long the head waits after a first attempt that failed, and twice as long after each further one, up to Config.Poll.
const firstRetry = 200 * time.Millisecond

// attempt asks the store for a place, in the name of its newest caller.
type attempt struct {
	place   *place
	caller  *caller
	request leadership.AcquireRequest
	began   time.Duration
}

// outcome is how an attempt ended.
type outcome struct {
	grant    leadership.Grant
	err      error
	panicked any
}

// carryOut makes an attempt, and answers those whom it answers, and those who have waited for its end only.
func (l *line) carryOut(a *attempt) {
	a.began = l.q.c.Now()
	o := l.ask(a.caller.ctx, a.request)
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.asking = nil
	l.finish(a, o)
	for _, c := range slices.Clone(a.place.callers) {
		if c.ctx.Err() != nil {
			c.leaving, c.why = true, gone(c.ctx)
		}
		if c.leaving {
			l.dismiss(c)
		}
	}
}

// ask makes the call. If the answer is that a lease is held whose key nobody was told, it ends that lease.
func (l *line) ask(ctx context.Context, r leadership.AcquireRequest) (o outcome) {
	if ctx.Err() != nil {
		return outcome{err: gone(ctx)}
	}
	defer func() {
		if v := recover(); v != nil {
			o = outcome{panicked: v}
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, l.q.c.Attempt)
	defer cancel()
	o.grant, o.err = l.q.c.Acquire(bounded, r)
	if orphan, ok := l.orphan(o.err); ok {
		l.q.giveBack(ctx, orphan)
	}
	return o
}

// finish draws the conclusions from an attempt, and answers those whom it answers for good.
func (l *line) finish(a *attempt, o outcome) {
	p, now := a.place, l.q.c.Now()
	refuse := func(c *caller) { c.refused(o.err) }
	switch {
	case o.panicked != nil:
		l.settle(p, func(c *caller) { c.panics(o.panicked) })
		l.retryLater(now)
	case o.err == nil:
		l.answered(p, now)
		l.told(o.grant.Lease, l.q.opens(o.grant.Lease, now), now)
		l.settle(p, func(c *caller) { c.granted(o.grant, a.began) })
	case errors.Is(o.err, leadership.LeaseHeld):
		l.answered(p, now)
		l.held(o.err, now)
	case errors.Is(o.err, leadership.ElectionDeleted), errors.Is(o.err, leadership.RecordCorrupt):
		for p := range l.each() {
			l.settle(p, refuse)
		}
		l.next = now // if somebody joins before the line is over
	case errors.Is(o.err, leadership.StoreUnavailable), errors.Is(o.err, leadership.OutcomeUnknown):
		l.failed(a, o.err, now)
	default:
		l.settle(p, refuse)
		l.retryLater(now)
	}
}

// answered notes that the store has said what is so.
func (l *line) answered(p *place, now time.Duration) {
	p.unknown = nil
	l.failures = failures{}
	l.pollLater(now)
}

// held takes a refusal: the store says when asking again may help. Before somebody else may lead, the lock delay of a lease that is held
// passes as well.
func (l *line) held(err error, now time.Duration) {
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Lease == nil {
		l.next = now + l.q.c.Poll
		return
	}
	lease := *refusal.Lease
	if lease.State == leadership.Held {
		l.q.guard = max(refusal.RetryAfter-lease.ExpiresIn, 0)
	}
	open := now + cmp.Or(refusal.RetryAfter, l.q.c.Poll)
	if refusal.Reason != leadership.ReasonLockDelay {
		open += lease.Config.LockDelay
	}
	l.told(lease, open, now)
}

// told takes the store's word by an attempt. It counts whatever was known before, unless as much was learnt while it was on its way.
func (l *line) told(lease leadership.Lease, open, now time.Duration) {
	if l.news && l.known.compare(lease) <= 0 {
		return
	}
	l.known = known{revision: lease.Revision, lease: lease, read: true, at: now, open: open}
	l.next = open + l.q.jitter(timerSpread)
}

// failures is how attempts have failed since the store answered one.
type failures struct {
	count     int
	last      error // nil if the store was heard of since
	unsettled bool  // what became of one of them is not known
}

// failed takes an attempt that is to be repeated, by the same head unless its caller has gone. Then the attempt may have failed for that
// alone, and the next in line is asked for at once.
func (l *line) failed(a *attempt, err error, now time.Duration) {
	if errors.Is(err, leadership.OutcomeUnknown) {
		a.place.unknown = err
		l.failures.unsettled = true
	}
	if a.caller.ctx.Err() != nil {
		l.next = now
		return
	}
	l.failures.last = err
	l.retryLater(now)
}

// retryLater lets the head ask again after a while.
func (l *line) retryLater(now time.Duration) {
	pause := min(firstRetry<<min(l.failures.count, 16), l.q.c.Poll)
	l.failures.count++
	l.next = now + pause/2 + l.q.jitter(pause/2)
	l.poll = l.next
}

// orphan returns the lease that the refusal shows, if its key is known to the queue alone. After an answer no key can be granted any more
// by an attempt before it.
func (l *line) orphan(err error) (leadership.LeaseRequest, bool) {
	if err != nil && !errors.Is(err, leadership.LeaseHeld) {
		return leadership.LeaseRequest{}, false
	}
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	orphans := l.orphans
	l.orphans = nil
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Lease == nil {
		return leadership.LeaseRequest{}, false
	}
	lease := refusal.Lease
	key, ok := orphans[lease.LeaderID]
	return leadership.LeaseRequest{Election: l.election, CandidateID: lease.LeaderID, Key: key, Token: lease.Token}, ok
}
