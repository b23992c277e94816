package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// forever is a wait of 292 years.
const forever time.Duration = math.MaxInt64

func parseWait(text string) (time.Duration, error) {
	if text == "forever" {
		return forever, nil
	}
	d, err := between(0, 24*time.Hour)(text)
	if err != nil {
		return 0, fmt.Errorf("%w, or forever", err)
	}
	return d, nil
}

// timedOut is the refusal of a candidate whose wait is over.
type timedOut struct{ error }

func (e timedOut) Unwrap() error { return e.error }

// acquireWithin waits in line until the candidate leads or the wait is over. One call waits for
// leadership.MaxWait at most; a candidate that calls again soon with the same key keeps its place.
// The key is therefore chosen before the first call, which also makes it safe to call again after
// an unknown outcome.
func (c *cli) acquireWithin(ctx context.Context, r leadership.AcquireRequest, wait time.Duration) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	generated := r.Key == nil
	if generated {
		r.Key = new(leadership.NewKey())
	}
	w := waiter{cli: c, server: server, end: time.Now().Add(wait)}
	grant, err := w.waitForLease(ctx, r)
	if err != nil {
		return err
	}
	return c.printGrant(grant, generated)
}

type waiter struct {
	*cli
	server   *client.Client
	end      time.Time // of the wait
	tries    int       // consecutive calls that failed early
	reported bool      // the outage was printed
}

// waitForLease calls until the candidate leads, the wait is over, or another call would not help.
func (w *waiter) waitForLease(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	for {
		r.Wait = min(w.left(), leadership.MaxWait)
		sent := time.Now()
		grant, err := w.try(ctx, r)
		held := errors.Is(err, leadership.LeaseHeld)
		switch {
		case err == nil, !held && !transient(err), ctx.Err() != nil:
			return grant, err
		case held && w.left() == 0:
			return grant, timedOut{err}
		case w.left() == 0:
			return grant, err
		}
		w.reportOutage(err, held)
		w.pause(ctx, time.Since(sent) >= r.Wait)
	}
}

// try makes one call, whose wait is added to the timeout.
func (w *waiter) try(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout+r.Wait)
	defer cancel()
	return w.server.Acquire(ctx, r)
}

func (w *waiter) left() time.Duration {
	return max(time.Until(w.end), 0).Round(time.Millisecond)
}

// transient reports whether the same call may succeed soon. LeaseLost is transient: an earlier call
// was granted a lease, which had ended when this call renewed it.
func transient(err error) bool {
	return unreachable(err) || errors.Is(err, wire.RateLimited) || errors.Is(err, leadership.LeaseLost)
}

// reportOutage prints once that the server does not answer, until it answers again.
func (w *waiter) reportOutage(err error, held bool) {
	if !held && !w.reported {
		w.notice("still waiting", err)
	}
	w.reported = !held
}

const (
	minPause = 100 * time.Millisecond
	maxPause = 4 * time.Second // the server keeps a place in line for 5 s
)

// pause waits before the next call: not at all after a call that waited its full time, and with
// growing delays otherwise.
func (w *waiter) pause(ctx context.Context, waited bool) {
	if waited {
		w.tries = 0
		return
	}
	sleep(ctx, min(backoff(w.tries, minPause, maxPause), w.left()))
	w.tries++
}

// backoff returns the delay before the next try: least, doubled after each try up to most, and
// reduced by up to half at random.
func backoff(tries int, least, most time.Duration) time.Duration {
	d := min(least<<min(tries, 10), most)
	return d/2 + rand.N(d/2)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
