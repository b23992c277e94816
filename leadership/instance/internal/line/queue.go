package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/instance/internal/hub"
)

// Config is how a Queue is made. Acquire, Release and Hub are required.
type Config struct {
	// Acquire asks the store: leadership.Service.Acquire. It must refuse to grant once its ctx has ended. It may tell Learn of the answer, as
	// may Release.
	Acquire func(context.Context, leadership.AcquireRequest) (leadership.Grant, error)
	// Release gives back a lease that nobody can use: leadership.Service.Release.
	Release func(context.Context, leadership.LeaseRequest) (leadership.Lease, error)
	// Hub tells of events, and says whether it is told of all. When it is closed, those who wait are answered with its cause.
	Hub *hub.Hub
	// Now is a clock that never goes back, that cannot be set, and that runs while the machine is suspended; nil for boottime.Now.
	Now func() time.Duration
	// Poll is how long after the store's last word the head asks by itself while the hub is not live, and the longest pause between two
	// attempts that fail: 5 s if it is zero.
	Poll time.Duration
	// Attempt bounds one attempt at the store: 10 s if it is zero.
	Attempt time.Duration
	// Jitter draws a duration from 0 up to the limit, which is positive; nil draws them evenly.
	Jitter func(limit time.Duration) time.Duration
}

// Queue lets candidates stand in line, in one line for each election. All methods may be called at the same time.
type Queue struct {
	c       Config // with the defaults filled in
	closing chan struct{}
	ended   chan struct{} // closed once the queue is closing and there is no line left

	mu     sync.Mutex // guards all below, the lines, and all who stand in them
	common Common
	lines  map[leadership.Election]*runner
	cause  error // once closing is closed
}

// NewQueue returns a queue in which nobody stands.
func NewQueue(c Config) *Queue {
	c.Poll = cmp.Or(c.Poll, 5*time.Second)
	c.Attempt = cmp.Or(c.Attempt, 10*time.Second)
	if c.Now == nil {
		c.Now = boottime.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	return &Queue{
		c:       c,
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		common:  Common{Poll: c.Poll, Jitter: c.Jitter, Key: leadership.NewKey},
		lines:   make(map[leadership.Election]*runner),
	}
}

// Acquire asks for the lease and, if r.Wait is positive and somebody else leads, stands in line for it. It blocks for r.Wait and, if the store
// is being asked for this candidate just then, until that attempt has ended. Grant.Waited is the time from this call to the moment
// before the attempt that was granted.
//
// Without a key it is given one, which is told in the Grant alone. If ctx ends before such a grant could be returned, the lease is
// released; one with a key of the caller's own is left to run out, because the caller may be asking for it again right now.
//
// Errors: those of Config.Acquire; LeaseHeld, with what was last known, when the wait is over; StoreUnavailable or OutcomeUnknown if the
// store could then not be asked, or had not said what became of an attempt; StoreUnavailable and ctx's if ctx ended; the
// cause that the queue, or the hub, was closed with. A panic of Config.Acquire becomes the caller's.
func (q *Queue) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	if r.Wait == 0 {
		return q.ask(ctx, r)
	}
	c := &caller{ctx: ctx, answered: make(chan struct{})}
	c.standing = NewCaller(c, q.c.Now())
	if err := r.Validate(); err != nil {
		return leadership.Grant{}, err
	}
	if q.leads(r) {
		if grant, err := q.ask(ctx, r); !errors.Is(err, leadership.LeaseHeld) {
			return grant, err
		}
	}
	if err := q.join(c, r); err != nil {
		return leadership.Grant{}, err
	}
	grant, err := q.await(c, r.Wait)
	if err == nil && r.Key == nil && ctx.Err() != nil {
		q.giveBack(ctx, leadership.LeaseRequest{Election: r.Election, CandidateID: r.CandidateID, Key: grant.Key, Token: grant.Token})
		return leadership.Grant{}, gone(ctx)
	}
	return grant, err
}

// join puts the caller in  Whoever is the first begins a
func (q *Queue) join(c *caller, r leadership.AcquireRequest) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cause := q.closed(); cause != nil {
		return cause
	}
	found, ok := q.lines[r.Election]
	if ok {
		c.runner = found
		found.line.Join(c.standing, r, q.c.Now())
		return nil
	}
	c.runner = q.begin(c.standing, r)
	go c.runner.run()
	return nil
}

// begin makes a
func (q *Queue) begin(first *Caller, request leadership.AcquireRequest) *runner {
	r := &runner{q: q, election: request.Election, wake: make(chan struct{}, 1)}
	r.line = New(&q.common, func() { signal(r.wake) }, first, request, q.c.Now())
	q.lines[r.election] = r
	return r
}

// ask asks the store without a place in
func (q *Queue) ask(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	grant, err := q.c.Acquire(ctx, r)
	if err == nil {
		q.Learn(grant.Lease)
	} else if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Lease != nil {
		q.Learn(*refusal.Lease)
	}
	return grant, err
}

// leads says whether the request may be that of the present leader, who has lost a reply and must not wait for a lease that is its own.
func (q *Queue) leads(r leadership.AcquireRequest) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	found, ok := q.lines[r.Election]
	return ok && r.Key != nil && found.line.Leads(r.CandidateID, q.c.Now())
}

// giveBackTimeout bounds a release that nobody waits for but the
const giveBackTimeout = 2 * time.Second

// giveBack releases a lease whose key was told to nobody. If that fails, it runs out.
func (q *Queue) giveBack(ctx context.Context, r leadership.LeaseRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(q.c.Attempt, giveBackTimeout))
	defer cancel()
	if lease, err := q.c.Release(ctx, r); err == nil {
		q.Learn(lease)
	}
}

// Learn tells what this instance has just learnt from the store about an election: by a renewal, a release, a read. What is left of the
// lease counts from now. What is older than what is known already is no news. It costs next to nothing where nobody stands in
func (q *Queue) Learn(lease leadership.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if found, ok := q.lines[lease.Election]; ok {
		found.line.Learn(lease, q.c.Now())
	}
}

// Close takes no heads any more, now and later: whoever waits is answered with the cause at once, but for those for whom the store is being
// asked, whose attempts are finished. It returns when all are answered, or with ctx's error when ctx ends. A second call waits like the
// first, and its cause is not used.
func (q *Queue) Close(ctx context.Context, cause error) error {
	q.mu.Lock()
	if q.cause == nil {
		q.cause = cause
		close(q.closing)
		for _, r := range q.lines {
			signal(r.wake)
		}
		q.end()
	}
	q.mu.Unlock()
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
	return fmt.Errorf("queue: %w: whoever asked has gone: %w", leadership.StoreUnavailable, ctx.Err())
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
