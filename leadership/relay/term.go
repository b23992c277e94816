package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/failpoint"
)

// The relay's lease.
const (
	leaseDuration = 30 * time.Second
	margin        = time.Second      // before the end of a lease: the time it takes to stop
	retryDelay    = time.Second      // after a renewal that was not answered
	releaseFor    = 10 * time.Second // a release is repeated until it is answered; then the lease runs out by itself
)

// errOver is why a term ended whose lease could not be renewed in time.
var errOver = errors.New("the lease could not be renewed in time")

// keepLooking looks for what was left behind until ctx ends, at once, then at each interval, and soon after this process itself has left
// something behind. If there is something, it relays.
func (r *Relay) keepLooking(ctx context.Context) {
	for ctx.Err() == nil {
		left, err := r.leftBehind(ctx, lookSize)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("relay: the outbox cannot be read", "cause", err)
		}
		if len(left) > 0 {
			failpoint.Hit("relay:left")
			r.lead(ctx, left)
		}
		r.rest(ctx)
	}
}

// rest waits for the next look.
func (r *Relay) rest(ctx context.Context) {
	timer := time.NewTimer(jittered(r.interval))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
		sleep(ctx, gap) // a store that fails is not asked all the time
	case <-ctx.Done():
	}
}

// lead relays for one term, if it can have the lease, and gives the lease back.
func (r *Relay) lead(ctx context.Context, left []leadership.Event) {
	late, cancel := lingering(ctx, grace)
	defer cancel()
	t, err := r.acquire(ctx)
	switch {
	case errors.Is(err, leadership.LeaseHeld): // somebody else relays
		return
	case errors.Is(err, leadership.ElectionDeleted), errors.Is(err, leadership.RecordCorrupt): // nobody can have it
		r.log.Error("relay: there is no lease to be had, so every instance relays", "cause", err)
		r.Sweep(ctx)
		return
	case err != nil:
		r.log.Warn("relay: no lease", "cause", err)
		return
	}
	failpoint.Hit("relay:leading")
	leading, end := context.WithCancelCause(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { end(r.keep(leading, t)) })
	r.relay(leading, late, t, left)
	end(nil)
	keeping.Wait()
	if cause := context.Cause(leading); errors.Is(cause, leadership.LeaseLost) || errors.Is(cause, errOver) {
		r.log.Warn("relay: stopped before all was published", "cause", cause)
	}
	r.release(late, t)
}

// relay publishes what was left behind until there is nothing more, the term ends, or the store fails. While the topic fails it tries again, so
// that a long outage is one term.
func (r *Relay) relay(ctx, late context.Context, t *term, left []leadership.Event) {
	var delay backoff
	for !t.over(r.clock()) {
		cleared, err := r.clear(ctx, late, left)
		if err == nil {
			delay = backoff{}
		} else if !r.retry(ctx, &delay, err) {
			return
		}
		stuck := len(left) - cleared
		left, err = r.leftBehind(ctx, min(pageSize+stuck, maxPage))
		if err != nil || len(left) == 0 {
			return
		}
	}
}

// retry waits after a failure. It says whether to go on.
func (r *Relay) retry(ctx context.Context, delay *backoff, cause error) bool {
	if ctx.Err() != nil {
		return false
	}
	wait := delay.next()
	r.log.Warn("relay: not all that was left behind could be published", "cause", cause, "retryIn", wait)
	return sleep(ctx, wait) == nil
}

// term is the lease of a relay.
type term struct {
	request  leadership.LeaseRequest
	renewIn  time.Duration
	deadline atomic.Int64 // when to stop, on the Relay's clock, in nanoseconds
}

// extend counts the deadline from when the request that was answered with the lease was sent.
func (t *term) extend(sent time.Duration, l leadership.Lease) {
	t.renewIn = l.RenewIn
	t.deadline.Store(int64(sent + l.ExpiresIn*999/1000 - margin))
}

// left is how long the term lasts unless it is extended.
func (t *term) left(now time.Duration) time.Duration { return time.Duration(t.deadline.Load()) - now }

func (t *term) over(now time.Duration) bool { return t.left(now) <= 0 }

// acquire asks for the lease once. A lease that was granted in a reply which got lost is found again by the next call, for the key is the same.
func (r *Relay) acquire(ctx context.Context) (*term, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	sent := r.clock()
	grant, err := r.service.Acquire(ctx, leadership.AcquireRequest{
		Election: Election, CandidateID: r.instance, Key: &r.key, LeaseDuration: leaseDuration,
	})
	if err != nil {
		return nil, err
	}
	t := &term{request: leadership.LeaseRequest{Election: Election, CandidateID: r.instance, Key: r.key, Token: grant.Token}}
	t.extend(sent, grant.Lease)
	return t, nil
}

// keep renews the lease until ctx ends. It returns why the lease is kept no longer.
func (r *Relay) keep(ctx context.Context, t *term) error {
	for wait := t.renewIn; ; {
		if err := sleep(ctx, min(wait, t.left(r.clock()))); err != nil {
			return err
		}
		if t.over(r.clock()) {
			return errOver
		}
		err := r.renew(ctx, t)
		switch {
		case err == nil:
			wait = t.renewIn
		case errors.Is(err, leadership.LeaseLost):
			return err
		default:
			wait = retryDelay
		}
	}
}

func (r *Relay) renew(ctx context.Context, t *term) error {
	sent := r.clock()
	ctx, cancel := context.WithTimeout(ctx, t.left(sent))
	defer cancel()
	l, err := r.service.Renew(ctx, t.request)
	if err == nil {
		t.extend(sent, l)
	}
	return err
}

// release gives the lease back, and asks until it is answered. The key is spent with it.
func (r *Relay) release(ctx context.Context, t *term) {
	r.key = leadership.NewKey()
	ctx, cancel := context.WithTimeout(ctx, releaseFor)
	defer cancel()
	for {
		_, err := r.service.Release(ctx, t.request)
		if err == nil || errors.Is(err, leadership.LeaseLost) {
			return
		}
		if sleep(ctx, jittered(retryDelay)) != nil {
			r.log.Warn("relay: the lease is not released, and has to run out", "cause", err)
			return
		}
	}
}
