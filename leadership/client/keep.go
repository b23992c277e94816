package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

const (
	// maxSleep limits how long a timer is trusted: timers stand still while the machine is
	// suspended, and the lease's clock does not.
	maxSleep = time.Second
	// minTry is the shortest timeout of a renewal.
	minTry = 250 * time.Millisecond
	// minRetry is the shortest pause after a failed renewal.
	minRetry = 50 * time.Millisecond
)

// keep renews the lease, which was granted at now, until it is over. The first renewal is due
// within pause.
func (l *Lease) keep(now, pause time.Duration) {
	defer close(l.kept)
	k := &keeper{Lease: l, log: l.client.logOf(l), taken: make(chan seat, 1)}
	defer l.client.groups.leave(k)
	k.heed(l.config)
	k.noteUnsigned(l.unsigned)
	for next, lasts := k.client.groups.sleep(k, now, pause), true; lasts; {
		var s seat
		if s, lasts = k.await(next); lasts {
			next = k.renew(s)
		}
	}
	if cause, own := l.ending(); own != nil && own != ErrResigned {
		k.log.Error("no longer leader", "reason", cause)
	}
}

type keeper struct {
	*Lease
	log     *slog.Logger
	backoff backoff
	noted   string           // why the last answer had no statement
	epoch   leadership.Token // the new token, until a renewal with it was answered; 0 for none
	unheed  func()           // ends the watch of the election; nil if there is none

	taken  chan seat // capacity 1: the seat of a lease that a batch has taken while it was asleep
	group  *group    // guarded by groups.mu
	plan   plan      // guarded by groups.mu
	asleep bool      // the lease waits until it is due; guarded by groups.mu
}

// await blocks until the lease is to be renewed, and returns its seat if it is in a batch. It
// reports whether the lease is still valid then.
func (k *keeper) await(next plan) (s seat, valid bool) {
	for {
		now := k.client.clock()
		left, d := k.Remaining(), next.due-now
		switch {
		case left == 0:
			k.client.groups.stop(k)
			return seat{}, false
		case d <= 0:
			return k.client.groups.rouse(k, now), true
		}
		select {
		case s = <-k.taken:
			return s, true
		case <-time.After(min(d, left, maxSleep)):
		case <-k.ctx.Done():
		}
	}
}

// renew sends one renewal, or waits for the answer to its batch, and returns when to send the next.
func (k *keeper) renew(s seat) (next plan) {
	if s.batch != nil {
		if sent, lease, err := k.together(s); err != errRefused {
			return k.heard(sent, lease, err)
		}
		k.unanswered()
	}
	sent := k.client.clock()
	ctx, cancel := k.try()
	defer cancel()
	lease, err := k.server().Renew(ctx, k.next(sent))
	return k.heard(sent, lease, err)
}

func (k *keeper) next(now time.Duration) leadership.LeaseRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.request
	r.Token, r.Ticket, r.Statement = cmp.Or(k.epoch, r.Token), k.ticket, k.client.candidate.Statement
	urgent := k.ends.because == leadership.EndsStuck && k.ends.on-now <= k.duration
	r.Report = k.reports.next(now, urgent)
	return r
}

// unanswered notes that the renewal has failed, and reports whether it carried a report.
func (k *keeper) unanswered() (reported bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reports.unanswered()
	return k.reports.failed
}

// together waits for the answer to the lease's renewal in a batch.
func (k *keeper) together(s seat) (sent time.Duration, lease leadership.Lease, err error) {
	ctx, cancel := k.try()
	defer cancel()
	return s.wait(ctx)
}

// try returns the context of one renewal. Its timeout is a part of the remaining time, so that a
// silent connection does not use up all of it.
func (k *keeper) try() (context.Context, context.CancelFunc) {
	left := k.Remaining()
	return context.WithTimeout(k.ctx, min(max(left/3, minTry), left))
}

// heard handles the answer to a renewal that left at sent.
func (k *keeper) heard(sent time.Duration, lease leadership.Lease, err error) (next plan) {
	if err == nil {
		k.ticket = lease.Ticket
		return k.renewed(sent, lease)
	}
	reported := k.unanswered()
	asked := k.named()
	asked.Token = cmp.Or(k.epoch, asked.Token)
	if token, ok := epochOf(err, asked); ok {
		return k.follow(token)
	}
	switch {
	case errors.Is(err, leadership.LeaseLost), errors.Is(err, leadership.ElectionDeleted):
		k.lose(err)
		return plan{}
	case reported && refusesReport(err):
		return k.withoutReport(err)
	case errors.Is(err, leadership.InvalidArgument):
		k.ticket = "" // a server of an older version refuses it
	}
	return k.failed(err)
}

// follow renews at once under the token of a new epoch. An acquire would do the same, but it could
// also be granted a new lease if this one were over meanwhile, when another candidate may have led
// between the two; a renewal cannot. Until it is answered, the old deadline and the old token
// count.
func (k *keeper) follow(token leadership.Token) (next plan) {
	k.epoch, k.ticket = token, ""
	return k.client.groups.retry(k, k.client.clock())
}

// withoutReport renews at once without the report that the server refuses.
func (k *keeper) withoutReport(err error) (next plan) {
	now := k.client.clock()
	k.mu.Lock()
	k.reports.refused(now)
	k.mu.Unlock()
	k.log.Warn("the server refuses the report; renewing without it", "reports again in", aloneFor, "reason", err)
	return k.client.groups.retry(k, now)
}

// server returns the client with the usual connections, or with others if the last renewal failed:
// it can take seconds until a dead connection is noticed.
func (k *keeper) server() *Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure != nil {
		return k.client.overSpareConnections()
	}
	return k.client
}

// renewed extends the deadline, unless it has passed meanwhile: a lease that is over is never
// revived.
func (k *keeper) renewed(sent time.Duration, lease leadership.Lease) (next plan) {
	now := k.client.clock()
	left, failed, epoch := k.extend(sent, now, lease)
	if left == 0 {
		return plan{}
	}
	if epoch {
		k.log = k.client.logOf(k.Lease)
		k.log.Info("an operator has begun a new epoch; the lease goes on with another token")
		k.post(Notice{Kind: NoticeNewEpoch})
	}
	k.noteEnd(now)
	k.heed(lease.Config)
	k.noteUnsigned(lease.StatementError)
	k.hear(lease.Revision, func(leadership.Succession) leadership.Succession { return lease.Succession })
	select {
	case k.extended <- struct{}{}:
	default:
	}
	if failed {
		k.log.Info("renewed again", "remaining", left)
	}
	k.backoff = backoff{}
	return k.client.groups.sleep(k, sent, k.pause(lease.RenewIn, left))
}

// noteUnsigned logs why an answer has no statement, unless the last one said the same.
func (k *keeper) noteUnsigned(why string) {
	if why != "" && why != k.noted {
		k.log.Warn("the lease has no statement", "reason", why)
	}
	k.noted = why
}

// pause returns the longest time until the next renewal: as the server says, but early enough for a
// retry, and never zero.
func (l *Lease) pause(renewIn, left time.Duration) time.Duration {
	return max(min(renewIn, left/2), minRetry)
}

// extend returns the remaining time, whether the previous renewal had failed, and whether a new
// epoch has begun.
func (k *keeper) extend(sent, now time.Duration, answer leadership.Lease) (left time.Duration, failed, epoch bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.remaining(now) == 0 {
		return 0, false, false
	}
	failed, k.failure = k.failure != nil, nil
	epoch = k.epoch != 0
	k.request.Token, k.epoch = cmp.Or(k.epoch, k.request.Token), 0
	k.belief.Renewed(sent, now, answer)
	k.statement = answer.Statement
	k.ends = newTermEnd(sent, 0, answer)
	k.reports.answered()
	return k.remaining(now), failed, epoch
}

// early shortens d by up to a tenth at random, so that leaders that began together spread out.
func early(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

// lose ends the lease because the server said so.
func (l *Lease) lose(err error) {
	cause := lostBecause(err)
	if errors.Is(cause, ErrDeposed) {
		l.post(Notice{Kind: NoticeTripped})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish(l.because(ErrLost, cause), ErrLost)
}

// failed records a renewal that failed or whose outcome is unknown. It does not say which candidate
// leads, so the deadline stands.
func (k *keeper) failed(err error) (next plan) {
	left, again := k.fail(err)
	if !again && left > 0 {
		k.log.Warn("the lease could not be renewed; trying until the deadline", "remaining", left, "reason", err)
	}
	return k.client.groups.retry(k, k.client.clock()+max(min(k.backoff.after(err), left/4), minRetry))
}

// fail records why a renewal failed, and returns the remaining time and whether the previous one
// had failed too.
func (k *keeper) fail(err error) (left time.Duration, again bool) {
	now := k.client.clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	again, k.failure = k.failure != nil, err
	return k.remaining(now), again
}

// release ends a lease by a command, which is idempotent, and retries until it is answered or ctx
// ends. If an epoch began that the leader has not heard of, its old token releases nothing; then
// release repeats the command with the token of the answer.
func (c *Client) release(ctx context.Context, r leadership.LeaseRequest, end func(leadership.LeaseRequest) leadership.Command) error {
	for p := (backoff{}); ; {
		lease, err := c.Do(ctx, end(r))
		if err == nil && lease.State == leadership.Held && lease.LeaderID == r.CandidateID && lease.Token > r.Token {
			r.Token = lease.Token // of another incarnation it is refused: the key is not its own
			continue
		}
		if err == nil || errors.Is(err, leadership.LeaseLost) || !transient(err) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, p.after(err))
	}
}

// released and yielded are the commands that end a lease without a reason.
func released(r leadership.LeaseRequest) leadership.Command {
	return leadership.Release{LeaseRequest: r}
}

func yielded(r leadership.LeaseRequest) leadership.Command { return leadership.Yield{LeaseRequest: r} }

// transient reports whether the same call may succeed soon.
func transient(err error) bool {
	var code leadership.Code
	switch {
	case !errors.As(err, &code):
		return false
	// a server that may not know a new signing key yet says when to retry
	case code == wire.Unauthenticated,
		code == leadership.NotEligible: // a peer of the server could not be asked
		return retryAfter(err) > 0
	}
	return transientStatus(wire.MeaningOf(code).Status)
}
