package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"regent/leadership"
)

// Why a Lease has ended: what context.Cause says of its Context, and, but for ErrResigned, an error of Run.
var (
	// ErrLost: the server says that somebody else may lead.
	ErrLost = errors.New("the lease is lost")
	// ErrExpired: the deadline has come before a renewal was answered.
	ErrExpired = errors.New("the lease could not be renewed before its deadline")
	// ErrResigned: Resign was called.
	ErrResigned = errors.New("the leader has resigned")
)

// Lease is the leadership of an election, for as long as it lasts: a goroutine renews it until it is lost, resigned or could not be renewed in time.
// It then is over for good, and another one has to be campaigned for.
//
// All that it says of itself compares the clock at that moment. A timer may fire late, and a process may have been stopped for an hour between
// two of its instructions; so look before each step that matters, and send the Token with each write. What is looked at can be over a moment
// later: it is the token that protects, where the write arrives. See package fence.
//
// All methods may be called at the same time.
type Lease struct {
	client   *Client
	request  leadership.LeaseRequest
	duration time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc

	extended chan struct{} // has a wake-up after each move of the deadline
	kept     chan struct{} // closed once nobody renews any more

	mu      sync.Mutex        // never held while something is logged or sent, nor while the clock is read
	alarm   *time.Timer       // looks whether the deadline has come, whatever else holds this lease's goroutine up; guarded by mu
	belief  leadership.Belief // on the client's clock; guarded by mu
	failure error             // of the last renewal; nil if it was answered; guarded by mu
	over    error             // why it has ended; nil until then; guarded by mu
	own     error             // which of the three errors above that is; nil if it is the end of another context; guarded by mu
}

// newLease returns a lease that was granted by a reply to what was sent at that moment; it may be over already. Its Context comes from ctx. The
// error is for a margin that leaves nothing of it.
func (c *Client) newLease(ctx context.Context, sent time.Duration, g leadership.Grant) (*Lease, error) {
	margin := c.candidate.margin(g.LeaseDuration)
	if margin >= g.LeaseDuration {
		return nil, invalid("margin", "a margin of %v leaves nothing of a lease of %v; configure election %q to a longer one, or ask for it",
			margin, g.LeaseDuration, g.Election)
	}
	l := &Lease{
		client:   c,
		duration: g.LeaseDuration,
		request:  leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token},
		extended: make(chan struct{}, 1),
		kept:     make(chan struct{}),
	}
	now := c.clock()
	l.belief = leadership.Believe(sent, now, g, margin)
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarm = time.AfterFunc(min(l.belief.Left(now), maxNap), l.look)
	return l, nil
}

// look ends the lease if its deadline has come, and looks again before long if not.
func (l *Lease) look() {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.remaining(now); left > 0 {
		l.alarm.Reset(min(left, maxNap))
	}
}

// Election is what is led.
func (l *Lease) Election() leadership.Election { return l.request.Election }

// CandidateID is who leads.
func (l *Lease) CandidateID() leadership.CandidateID { return l.request.CandidateID }

// Token is the fencing token. It goes with every write, and it stays what it is when the lease is over.
func (l *Lease) Token() leadership.Token { return l.request.Token }

// Duration is for how long the lease lasts from each heartbeat, by the store's clock.
func (l *Lease) Duration() time.Duration { return l.duration }

// Valid says whether the caller may believe that it leads. Once it has said no it does not say yes again.
func (l *Lease) Valid() bool { return l.Remaining() > 0 }

// Remaining is what is left until the Deadline as it stands; 0 once the lease is over.
func (l *Lease) Remaining() time.Duration {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remaining(now)
}

// remaining is what is left now, with the mutex held.
func (l *Lease) remaining(now time.Duration) time.Duration {
	if l.over == nil && l.ctx.Err() != nil {
		l.finish(context.Cause(l.ctx), nil) // of the context that it comes from
	}
	left := l.belief.Left(now)
	switch {
	case l.over != nil:
		return 0
	case left == 0:
		l.finish(l.because(ErrExpired, l.failure), ErrExpired)
		return 0
	}
	return left
}

// finish ends the lease, with the mutex held.
func (l *Lease) finish(cause, own error) {
	if l.over == nil {
		l.over, l.own = cause, own
		l.belief.End()
		l.alarm.Stop()
		l.cancel(cause)
	}
}

// because is an error about this lease, and what has led to it, as far as that is known.
func (l *Lease) because(err, reason error) error {
	if reason != nil {
		err = fmt.Errorf("%w: %w", err, reason)
	}
	return fmt.Errorf("client: election %q, token %d: %w", l.request.Election, l.request.Token, err)
}

// Deadline is when the lease is over unless it is renewed before, on the clock of Config.Clock: CLOCK_BOOTTIME, the time since the machine was
// started. The margin is taken off already. It moves on with each renewal and never moves back.
func (l *Lease) Deadline() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.belief.Deadline()
}

// end is the earliest that the lease can be over in the store: the Deadline, and the margin that was taken off.
func (l *Lease) end() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.belief.LeaseEnd()
}

// Extended has a wake-up after the Deadline has moved. There is one for all moves since the last was taken, and for one taker.
func (l *Lease) Extended() <-chan struct{} { return l.extended }

// Context ends when the lease does, and context.Cause then says why: ErrLost, ErrExpired or ErrResigned. Its Err looks at the clock, like Valid; its
// Done comes at the deadline or, if the process was stopped or the machine suspended then, within a second of its coming back. Err of a context that
// comes from this one does not look at the clock: it ends when Done comes.
//
// With Run it comes from Run's context and ends with that too. Otherwise it has the values of Campaign's, and outlives it.
func (l *Lease) Context() context.Context { return bounded{l.ctx, l} }

// bounded is a context that is over as soon as its lease is, by the clock and not by a timer.
type bounded struct {
	context.Context
	lease *Lease
}

func (b bounded) Err() error {
	b.lease.Valid()
	return b.Context.Err()
}

func (b bounded) Done() <-chan struct{} {
	b.lease.Valid()
	return b.Context.Done()
}

// ending is why the lease has ended, nil while it lasts, and which of this lease's own ends that is, nil if it is another context's.
func (l *Lease) ending() (cause, own error) {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remaining(now)
	return l.over, l.own
}
