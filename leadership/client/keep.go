package client

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

const (
	// maxNap bounds for how long a timer is trusted: it stands still while the machine is suspended, and the lease's clock does not.
	maxNap = time.Second
	// minTry is the least that a try of a renewal is given.
	minTry = 250 * time.Millisecond
	// minRetry is the least time between a try that failed and the next.
	minRetry = 50 * time.Millisecond
)

// keep renews the lease until it is over. next is when to begin, on the client's clock.
func (l *Lease) keep(next time.Duration) {
	defer close(l.kept)
	k := keeper{Lease: l, log: l.client.logOf(l)}
	for l.napUntil(next) {
		next = k.renew()
	}
	if cause, own := l.ending(); own != nil && own != ErrResigned {
		k.log.Error("no longer leader", "reason", cause)
	}
}

// napUntil waits for a moment of the client's clock, and says whether the lease lasts then.
func (l *Lease) napUntil(next time.Duration) bool {
	for {
		left, nap := l.Remaining(), next-l.client.clock()
		if left == 0 || nap <= 0 {
			return left > 0
		}
		sleep(l.ctx, min(nap, left, maxNap))
	}
}

// keeper is what renews a lease.
type keeper struct {
	*Lease
	log  *slog.Logger
	pace pace
}

// renew tries once, and returns when to try next. A try has a part of the time that is left, so that a connection which has gone silent does
// not take all of it with it.
func (k *keeper) renew() (next time.Duration) {
	sent := k.client.clock()
	left := k.Remaining()
	ctx, cancel := context.WithTimeout(k.ctx, min(max(left/3, minTry), left))
	defer cancel()
	lease, err := k.server().Renew(ctx, k.request)
	switch {
	case err == nil:
		return k.renewed(sent, lease)
	case errors.Is(err, leadership.LeaseLost), errors.Is(err, leadership.ElectionDeleted):
		k.lose(err)
		return sent
	}
	return k.failed(err)
}

// server is asked by the usual connections, unless the last try came to nothing there: what is dead may not be known to be for seconds.
func (k *keeper) server() *Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure != nil {
		return k.client.elsewhere()
	}
	return k.client
}

// renewed moves the deadline on, unless it has come meanwhile: what was over does not begin anew.
func (k *keeper) renewed(sent time.Duration, lease leadership.Lease) (next time.Duration) {
	left, failed := k.extend(sent, lease)
	if left == 0 {
		return sent
	}
	select {
	case k.extended <- struct{}{}:
	default:
	}
	if failed {
		k.log.Info("renewed again", "remaining", left)
	}
	k.pace = pace{}
	return sent + k.pause(lease.RenewIn, left)
}

// pause is the time until the next renewal: as the server says, but with time for another try, and never none at all.
func (l *Lease) pause(renewIn, left time.Duration) time.Duration {
	return early(max(min(renewIn, left/2), minRetry))
}

// extend returns what is left then, and whether the last try had failed.
func (k *keeper) extend(sent time.Duration, answer leadership.Lease) (left time.Duration, failed bool) {
	now := k.client.clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.remaining(now) == 0 {
		return 0, false
	}
	failed, k.failure = k.failure != nil, nil
	k.belief.Renewed(sent, now, answer)
	return k.remaining(now), failed
}

// early is the time until a renewal, or up to a tenth less, so that leaders that began together do not stay together.
func early(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

// lose ends the lease, for the server says so.
func (k *keeper) lose(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finish(k.because(ErrLost, err), ErrLost)
}

// failed notes a try that came to nothing, or to nobody knows what. It says nothing of who leads: the deadline stands.
func (k *keeper) failed(err error) (next time.Duration) {
	left, again := k.fail(err)
	if !again && left > 0 {
		k.log.Warn("the lease could not be renewed; trying until the deadline", "remaining", left, "reason", err)
	}
	return k.client.clock() + max(min(k.pace.after(err), left/4), minRetry)
}

// fail notes why a try has failed, and returns what is left and whether the one before had failed too.
func (k *keeper) fail(err error) (left time.Duration, again bool) {
	now := k.client.clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	again, k.failure = k.failure != nil, err
	return k.remaining(now), again
}

// release gives a lease back, and asks again until it is answered or ctx ends. Twice is the same as once.
func (c *Client) release(ctx context.Context, r leadership.LeaseRequest) error {
	for p := (pace{}); ; {
		_, err := c.Release(ctx, r)
		if err == nil || errors.Is(err, leadership.LeaseLost) || !passes(err) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, p.after(err))
	}
}

// passes says whether the same call may be answered otherwise before long.
func passes(err error) bool {
	var code leadership.Code
	switch {
	case !errors.As(err, &code):
		return false
	case code == wire.Unauthenticated: // a server that may not know a new key yet says when it will
		return retryAfter(err) > 0
	}
	return passing(wire.MeaningOf(code).Status)
}
