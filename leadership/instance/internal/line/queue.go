package line

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
	"regent/leadership/rule"
)

// Config is how a Queue is made. Acquire, Do and Hub are required.
type Config struct {
	// Acquire asks the store: service.Service.Acquire. It must refuse to grant once its ctx has
	// ended. The queue tells the hub of the answer.
	Acquire func(context.Context, leadership.AcquireRequest) (leadership.Grant, error)
	// Do releases a lease that no caller can use, and withdraws a candidate that has gone from this
	// instance: service.Service.Do.
	Do func(context.Context, leadership.Command) (leadership.Lease, error)
	// Present reports whether the instance has heard of a member of the election lately; nil: of
	// none. It is called within the store's transactions, and must not block.
	Present func(leadership.Election, leadership.CandidateID) bool
	// Hub has the view that the lines read, and the clock. When it is closed, the waiting
	// candidates are answered with its cause.
	Hub *hub.Hub
	// Instance is leadership.InLine.Instance of each attempt.
	Instance uint32
	// Jitter draws a duration from 0 up to the limit, which is positive; nil draws them evenly.
	Jitter func(limit time.Duration) time.Duration
}

// Queue lets candidates stand in line, in one line for each election. All methods may be called at
// the same time.
type Queue struct {
	c       Config // with the defaults filled in
	closing chan struct{}
	ended   chan struct{} // closed once the queue is closing and there is no line left

	seating seating // of calls that do not stand in line

	// The hub's View guards all below, the lines, and all who stand in them.
	common Common
	lines  map[leadership.Election]*runner
	cause  error // once closing is closed
}

// NewQueue returns an empty queue.
func NewQueue(c Config) *Queue {
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	q := &Queue{
		c:       c,
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		common:  Common{Instance: c.Instance, Jitter: c.Jitter, Key: leadership.NewKey, Present: c.Present},
		lines:   make(map[leadership.Election]*runner),
	}
	q.seating.begin(q, nil)
	c.Hub.View(func(v *view.View, _ time.Duration) {
		q.common.View, q.common.Halts = v, v.Hold(leadership.HaltsElection)
	})
	return q
}

// Acquire asks for the lease and, if r.Wait is positive and another candidate leads, stands in line
// for it. It blocks for r.Wait and, if the store is being asked for this candidate just then, until
// that attempt has ended. Grant.Waited is the time from this call to the moment before the attempt
// that was granted.
//
// Without a key it is given one, which is told in the Grant alone. If ctx ends before such a grant
// could be returned, the lease is released; one with a key of the caller's own is left to run out,
// because the caller may be asking for it again right now.
//
// Errors: those of Config.Acquire; LeaseHeld, with what was last known, when the wait is over;
// StoreUnavailable or OutcomeUnknown if the store could then not be asked, or had not said what
// became of an attempt; StoreUnavailable and ctx's if ctx ended; the cause that the queue, or the
// hub, was closed with. A panic of Config.Acquire becomes the caller's.
func (q *Queue) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	if r.Wait == 0 {
		return q.once(ctx, r)
	}
	grant, err := q.Stand(ctx, &r)
	if grant == nil {
		return leadership.Grant{}, err
	}
	return *grant, err
}

// once is Acquire without a wait.
func (q *Queue) once(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	if r.Key != nil {
		return q.ask(ctx, r)
	}
	r.Key = new(q.common.Key())
	grant, err := q.ask(ctx, r)
	if errors.Is(err, leadership.OutcomeUnknown) { // its caller cannot ask again with the key
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout/4) // a server that ends waits for it
		defer cancel()
		if found, failed := q.ask(again, r); failed == nil {
			grant, err = found, nil
		}
	}
	if err != nil {
		return leadership.Grant{}, err
	}
	if ctx.Err() != nil {
		q.release(ctx, leadership.LeaseRequest{Election: grant.Election, CandidateID: grant.LeaderID, Key: grant.Key, Token: grant.Token})
		return leadership.Grant{}, gone(ctx)
	}
	return grant, nil
}

// Stand is Acquire for a request with Wait. The grant is nil if there is an error. Its stack is
// small while it blocks, for it may be one of ten thousand.
func (q *Queue) Stand(ctx context.Context, r *leadership.AcquireRequest) (*leadership.Grant, error) {
	c, grant, err := q.enter(ctx, r)
	if c == nil {
		return grant, err
	}
	grant, err = q.await(c, r.Wait)
	if err == nil && r.Key == nil && ctx.Err() != nil {
		q.release(ctx, leadership.LeaseRequest{Election: grant.Election, CandidateID: grant.LeaderID, Key: grant.Key, Token: grant.Token})
		return nil, gone(ctx)
	}
	return grant, err
}

// enter returns a call that stands in line. For the present leader, or after an error, it returns
// the answer instead.
func (q *Queue) enter(ctx context.Context, r *leadership.AcquireRequest) (*call, *leadership.Grant, error) {
	c := &call{ctx: ctx, recheck: r.InLine.Recheck, answered: make(chan struct{})}
	c.standing = NewCaller(c, q.c.Hub.Now())
	if err := r.Validate(); err != nil {
		return nil, nil, err
	}
	r.InLine.Principal = leadership.Actor(ctx)
	for told := leadership.Token(0); ; {
		own, err := q.join(c, r, told)
		if err != nil {
			return nil, nil, err
		}
		if own == 0 {
			return c, nil, nil
		}
		switch grant, err := q.ask(ctx, *r); {
		case err == nil:
			return nil, &grant, nil
		case !errors.Is(err, leadership.LeaseHeld):
			return nil, nil, err
		}
		told = own
	}
}

// join puts the caller in line, unless it may be the present leader, which has lost a reply and
// must not wait for its own lease. Then join returns the token of that lease: the store has to be
// asked, and told is the token for which it has refused the caller. The first caller begins a line.
func (q *Queue) join(c *call, r *leadership.AcquireRequest, told leadership.Token) (own leadership.Token, err error) {
	q.c.Hub.View(func(_ *view.View, now time.Duration) {
		if err = q.closed(); err != nil {
			return
		}
		found, ok := q.lines[r.Election]
		if !ok {
			c.runner = q.begin(c.standing, *r, now)
			go c.runner.run()
			return
		}
		if token, owns := found.line.Owns(*r, now); owns && token != told {
			own = token
			return
		}
		c.runner = found
		found.line.Join(c.standing, *r, now)
		c.standing.place.told = max(c.standing.place.told, told)
	})
	return own, err
}

// begin makes a line.
func (q *Queue) begin(first *Caller, request leadership.AcquireRequest, now time.Duration) *runner {
	r := &runner{q: q, wake: make(chan struct{}, 1)}
	r.seating.begin(q, r)
	r.election = q.common.View.Wait(request.Election, r.wake)
	r.line = New(&q.common, r.election, func() { backoff.Signal(r.wake) }, first, request, now)
	q.lines[request.Election] = r
	return r
}

// ask asks the store without a place in line.
func (q *Queue) ask(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	var quorum leadership.QuorumPolicy
	q.c.Hub.View(func(v *view.View, _ time.Duration) {
		if e := v.Find(r.Election); e != nil && e.Last() != nil {
			quorum = e.Last().Config.Ballot.Quorum
		}
	})
	asked := q.c.Hub.Now()
	r.InLine = leadership.InLine{Instance: q.common.Instance, Present: q.common.present(r.Election), Quorum: quorum, Recheck: r.InLine.Recheck, Seats: &q.seating.Seating}
	grant, err := q.c.Acquire(ctx, r)
	if err == nil {
		q.c.Hub.Learn(&grant.Lease, view.Committed, asked)
	} else if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Lease != nil {
		q.c.Hub.Learn(refusal.Lease, view.Read, asked)
	}
	return grant, err
}

const (
	// attemptTimeout bounds one attempt at the store.
	attemptTimeout = 10 * time.Second
	// giveBackTimeout bounds a release that only the line waits for.
	giveBackTimeout = 2 * time.Second
)

// release releases a lease. If that fails, it runs out.
func (q *Queue) release(ctx context.Context, r leadership.LeaseRequest) {
	_ = q.do(ctx, leadership.Release{LeaseRequest: r})
}

// withdraw takes back what the store has of a candidate that has gone.
func (q *Queue) withdraw(e leadership.Election, c leadership.CandidateID) error {
	return q.do(context.Background(), leadership.Withdraw{Election: e, CandidateID: c, Instance: q.common.Instance})
}

// do carries out a command that only the line waits for, also if ctx has ended.
func (q *Queue) do(ctx context.Context, c leadership.Command) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	asked := q.c.Hub.Now()
	lease, err := q.c.Do(ctx, c)
	if err == nil {
		q.c.Hub.Learn(&lease, view.Read, asked)
	}
	return err
}

// look calls read with the line for the election, if there is one.
func (q *Queue) look(e leadership.Election, read func(l *Line, now time.Duration)) {
	q.c.Hub.View(func(_ *view.View, now time.Duration) {
		if r, ok := q.lines[e]; ok {
			read(r.line, now)
		}
	})
}

// Standing returns all that stand in line for the election, in the order in which they came. A
// candidate between two calls is among them for 5 s.
func (q *Queue) Standing(e leadership.Election) (all []Stander) {
	var by ranking
	q.look(e, func(l *Line, now time.Duration) { all, by = l.standing(now), l.rule })
	by.place(all)
	return all
}

// Elections returns the elections for which candidates stand in line, in no order.
func (q *Queue) Elections() (all []leadership.Election) {
	q.c.Hub.View(func(*view.View, time.Duration) { all = slices.Collect(maps.Keys(q.lines)) })
	return all
}

// Version changes whenever a candidate joins or leaves a line, or says something else of itself.
func (q *Queue) Version() (n int) {
	q.c.Hub.View(func(*view.View, time.Duration) { n = q.common.changes })
	return n
}

// Position is where the candidate stands in the line for the election, as Stander.Position says,
// and how many stand there; 0 if it does not.
func (q *Queue) Position(e leadership.Election, c leadership.CandidateID) (position, of int) {
	q.look(e, func(l *Line, now time.Duration) { position, of = l.Position(c, now) })
	return position, of
}

// Next is the best candidate of the line to hand the leader's lease over to, as Line.Next says.
func (q *Queue) Next(e leadership.Election, leader leadership.CandidateID) (next leadership.CandidateID) {
	q.look(e, func(l *Line, now time.Duration) { next = l.Next(leader, now) })
	return next
}

// KeyOf is the key of a candidate that waits, as Line.KeyOf says.
func (q *Queue) KeyOf(e leadership.Election, c leadership.CandidateID) (key leadership.KeyHash) {
	q.look(e, func(l *Line, now time.Duration) { key = l.KeyOf(c, now) })
	return key
}

// Close answers all waiting callers with the cause, now and later, and begins no more attempts; an
// attempt that is under way is finished, and its callers get its outcome. It returns when all are
// answered, or with ctx's error when ctx ends. A second call waits like the first, and its cause is
// not used.
func (q *Queue) Close(ctx context.Context, cause error) error {
	q.c.Hub.View(func(*view.View, time.Duration) {
		if q.cause != nil {
			return
		}
		q.cause = cause
		close(q.closing)
		for _, r := range q.lines {
			backoff.Signal(r.wake)
		}
		q.end()
	})
	select {
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end notices that a closing queue has no lines left.
func (q *Queue) end() {
	if q.cause != nil && len(q.lines) == 0 {
		close(q.ended)
	}
}

// closed returns why no attempt may begin any more; nil if one may.
func (q *Queue) closed() error {
	select {
	case <-q.closing:
		return q.cause
	case <-q.c.Hub.Done():
		return q.c.Hub.Cause()
	default:
		return nil
	}
}

// gone is the error of a call whose context has ended.
func gone(ctx context.Context) error {
	return fmt.Errorf("queue: %w: %w: %w", leadership.StoreUnavailable, rule.ErrCallerLeft, ctx.Err())
}
