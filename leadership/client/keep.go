package client

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"regent/httpapi/wire"
	"regent/leadership"
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
	if cause := l.cause(); errors.Is(cause, ErrExpired) || errors.Is(cause, ErrLost) {
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
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.remaining() == 0 {
		return sent
	}
	k.deadline = max(k.deadline, leadership.Deadline(sent, 0, lease.ExpiresIn, k.margin))
	select {
	case k.extended <- struct{}{}:
	default:
	}
	if k.failure != nil {
		k.log.Info("renewed again", "remaining", k.remaining())
	}
	k.failure, k.pace = nil, pace{}
	return sent + early(lease.RenewIn)
}

// early is the time until a renewal, or up to a tenth less, so that leaders that began together do not stay together.
func early(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

// lose ends the lease, for the server says so.
func (k *keeper) lose(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finish(k.because(ErrLost, err))
}

// failed notes a try that came to nothing, or to nobody knows what. It says nothing of who leads: the deadline stands.
func (k *keeper) failed(err error) (next time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.failure == nil
	k.failure = err
	left := k.remaining()
	if first && left > 0 {
		k.log.Warn("the lease could not be renewed; trying until the deadline", "remaining", left, "reason", err)
	}
	return k.client.clock() + max(min(k.pace.after(err), left/4), minRetry)
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
	if !errors.As(err, &code) {
		return false
	}
	return passing(wire.MeaningOf(code).Status)
}
