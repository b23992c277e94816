package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
)

// Why a Lease has ended: the cause of its Context and, except ErrResigned, an error of Run.
var (
	// ErrLost: the server says that another candidate may lead.
	ErrLost = errors.New("the lease is lost")
	// ErrExpired: the deadline passed before a renewal was answered, or no renewal could move it on
	// because the term has ended; a *TermError says so.
	ErrExpired = errors.New("the lease could not be renewed before its deadline")
	// ErrResigned: Resign, StepDown or LetEnd was called.
	ErrResigned = errors.New("the leader has resigned")
	// ErrDeposed is an ErrLost too: the election's policy has ended the term. The *leadership.Error
	// beside it says why.
	ErrDeposed = errors.New("the election's policy has ended the term")
	// ErrOrphaned: the lease that this one stands on has ended. See Candidate.Via.
	ErrOrphaned = errors.New("the lease that this one stands on has ended")
)

// Lease is the leadership of an election while it lasts. A goroutine renews it until it is lost or
// resigned, or could not be renewed in time. Then it is over for good; campaign again for another
// one.
//
// Its methods compare the deadline with the clock when they are called. A timer may fire late, and
// a process may be stopped for an hour between two instructions; so check before each step that
// matters, and send the Token with each write. The lease may end right after the check: it is the
// token that protects, where the write arrives. See package fence.
//
// Its methods may be called concurrently.
type Lease struct {
	client   *Client
	request  leadership.LeaseRequest // without a ticket or a report; its token is guarded by mu
	ticket   leadership.Ticket       // for the next renewal; only the renewing goroutine uses it
	duration time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc

	extended chan struct{} // capacity 1: signals that the deadline moved
	kept     chan struct{} // closed when renewing has stopped

	mu sync.Mutex // never held while logging, sending or reading the clock
	// checks the deadline even if the renewing goroutine is blocked; guarded by mu
	alarm   *time.Timer
	belief  leadership.Belief // on the client's clock; guarded by mu
	failure error             // of the last renewal; nil if it was answered; guarded by mu
	over    error             // why it has ended; nil until then; guarded by mu
	// the Err variable that over wraps; nil if another context ended; guarded by mu
	own       error
	statement string    // of the last answer; guarded by mu
	unsigned  string    // why the grant had no statement
	released  bool      // the server has answered its release; guarded by mu
	readOnly  bool      // as ReadOnly says; guarded by mu
	ends      termEnd   // as the last answer says; guarded by mu
	reports   reporting // guarded by mu
	notices   notices
	handOver  handOver // guarded by mu

	checkpoints atomic.Int64 // the sequence of the last known checkpoint

	parent     *Lease                  // the lease that this one stands on, whose mu is locked after this one's; nil for none
	parentHook func() bool             // unregisters from the parent's end
	inherited  *leadership.Inheritance // nil for none
	inDoubt    []leadership.Effect
	proposals  []leadership.Proposal
	// the next three are from the grant
	notServing bool // the policy waits for the leader to say that it serves
	config     leadership.Config
	seat       int
}

// newLease returns the lease granted in reply to a request that left at sent; it may be over
// already. Its Context is derived from ctx. It returns an error if the margin leaves nothing of the
// lease.
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
		ticket:   g.Ticket, statement: g.Statement, unsigned: g.StatementError,
		extended: make(chan struct{}, 1),
		kept:     make(chan struct{}),

		parent: c.candidate.Via, inherited: g.Inherited, inDoubt: g.InDoubt, proposals: g.Proposals, notServing: g.NotServing, config: g.Config, seat: g.Seat,
	}
	now := c.clock()
	l.belief = leadership.Believe(sent, now, g, margin)
	l.ends = newTermEnd(sent, min(g.Waited, now-sent), g.Lease)
	l.handOver.now, l.handOver.at = g.Succession, g.Revision
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarm = time.AfterFunc(min(l.belief.Left(now), maxSleep), l.look)
	if l.parent != nil {
		l.parentHook = context.AfterFunc(l.parent.ctx, l.look)
	}
	return l, nil
}

// look ends the lease if its deadline has passed, and otherwise schedules the next check.
func (l *Lease) look() {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.remaining(now); left > 0 {
		l.alarm.Reset(min(left, maxSleep))
	}
}

// Election returns the election that is led.
func (l *Lease) Election() leadership.Election { return l.request.Election }

// Seat returns the number of the lease's seat if the election that was asked for has seats
// (leadership.Config.Seats), and 0 otherwise. With a seat, Election returns the seat's name.
func (l *Lease) Seat() int { return l.seat }

// CandidateID returns the leader's id.
func (l *Lease) CandidateID() leadership.CandidateID { return l.request.CandidateID }

// Token returns the fencing token. Send it with every write. It stays the same when the lease is
// over. An operator that approves of the term may begin a new epoch: then the token rises while the
// lease goes on, with a notice. Work begun before that keeps the old token, and its writes are
// refused as stale: that is the purpose of a new epoch.
func (l *Lease) Token() leadership.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.request.Token
}

// Statement returns the newest signed statement that this leader holds the lease. Others verify it
// with package statement. It is "" if Candidate.Statement is not set, or if the server could not
// sign, which is logged. A statement ends when the lease would without a renewal, so call Statement
// each time one is needed.
func (l *Lease) Statement() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.statement
}

// Duration returns how long the lease lasts after each heartbeat, by the store's clock.
func (l *Lease) Duration() time.Duration { return l.duration }

// Valid reports whether the caller may believe that it leads. Once false, it stays false.
func (l *Lease) Valid() bool { return l.Remaining() > 0 }

// Remaining returns the time until the present Deadline, or 0 if the lease is over.
func (l *Lease) Remaining() time.Duration {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remaining(now)
}

// remaining returns the time left at now. Call with mu held.
func (l *Lease) remaining(now time.Duration) time.Duration {
	if l.over == nil && l.ctx.Err() != nil {
		l.finish(context.Cause(l.ctx), nil) // of the parent context
	}
	if l.over == nil && l.parent != nil {
		if cause := l.parent.overAt(now); cause != nil {
			l.finish(l.because(ErrOrphaned, cause), ErrOrphaned)
		}
	}
	left := l.belief.Left(now)
	switch {
	case l.over != nil:
		return 0
	case left == 0:
		l.finish(l.because(ErrExpired, l.expiry()), ErrExpired)
		return 0
	}
	return left
}

// overAt returns why the lease is over at now, and nil while it lasts.
func (l *Lease) overAt(now time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remaining(now)
	return l.over
}

// finish ends the lease. Call with mu held.
func (l *Lease) finish(cause, own error) {
	if l.over == nil {
		l.over, l.own = cause, own
		l.belief.End()
		l.alarm.Stop()
		if l.parentHook != nil {
			l.parentHook()
		}
		l.cancel(cause)
	}
}

// expiry returns why the deadline has passed, if known. Call with mu held.
func (l *Lease) expiry() error {
	if l.ends.cuts(l.belief) {
		return &TermError{l.ends.because}
	}
	return l.failure
}

// because wraps err with this lease's name and the reason, if known. Call with mu held.
func (l *Lease) because(err, reason error) error {
	if reason != nil {
		err = fmt.Errorf("%w: %w", err, reason)
	}
	return about(l.request, err)
}

// about wraps an error with the lease's election and token.
func about(r leadership.LeaseRequest, err error) error {
	return fmt.Errorf("client: election %q, token %d: %w", r.Election, r.Token, err)
}

// Deadline returns when the lease is over unless it is renewed, on Config.Clock: by default
// CLOCK_BOOTTIME, the time since the machine started. The margin is already deducted. Renewals move
// it on; it never moves back.
func (l *Lease) Deadline() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.belief.Deadline()
}

// end returns the earliest time at which the lease can be over in the store: the Deadline plus the
// margin.
func (l *Lease) end() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.belief.LeaseEnd()
}

// Extended returns a channel that receives a value after the Deadline has moved. Several moves may
// be one value; only one goroutine should receive.
func (l *Lease) Extended() <-chan struct{} { return l.extended }

// Context returns a context that ends when the lease does. context.Cause then returns ErrLost,
// which may be an ErrDeposed too, ErrExpired, which may be a *TermError too, or ErrResigned. Its
// Err looks at the clock, as Valid does. Its Done is closed at the deadline or, if the process was
// stopped or the machine suspended then, within a second of resuming. Err of a derived context does
// not look at the clock: it ends when Done is closed.
//
// It has the values of the context of Run or Campaign. In Run it ends after that context, as Run
// says; otherwise it outlives it.
func (l *Lease) Context() context.Context { return leaseContext{l.ctx, l} }

// leaseContext is a context that ends as soon as its lease does, by the clock and not by a timer.
type leaseContext struct {
	context.Context
	lease *Lease
}

func (b leaseContext) Err() error {
	b.lease.Valid()
	return b.Context.Err()
}

func (b leaseContext) Done() <-chan struct{} {
	b.lease.Valid()
	return b.Context.Done()
}

// ending returns why the lease has ended (nil while it lasts), and the Err variable that the cause
// wraps (nil if another context ended).
func (l *Lease) ending() (cause, own error) {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remaining(now)
	return l.over, l.own
}
