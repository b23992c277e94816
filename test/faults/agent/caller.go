package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/test/checker"
	"regent/test/faults/record"
)

// The longest that a caller stands in line and, if its last reply was lost, for how long: long
// enough to see whether it is kept waiting for its own lease.
const (
	maxWait    = 500 * time.Millisecond
	returnWait = 1500 * time.Millisecond
)

// caller is a candidate that makes each call by itself. It keeps a key until it has sent a release
// with it, and repeats a call whose reply was lost with the same key. Now and then it hangs up very
// soon.
type caller struct {
	*agent
	key   leadership.Key
	of    leadership.Election // of what it leads or has led: a seat, or Election
	token leadership.Token    // of what it leads or has led; 0 for none under this key
	spent bool                // a release was sent
	lost  bool                // the reply to its last acquire
	yield bool                // it gives its lease up to a successor that is ready
	last  leadership.Token
	term  *term // what it believes in; nil for nothing
}

// term is a caller's belief that it leads, counted without the SDK and without a margin.
type term struct {
	until atomic.Int64 // on the recorder's clock
	over  chan struct{}
}

func newCaller(p *agent) *caller {
	return &caller{agent: p, key: leadership.NewKey(), of: p.Election}
}

func (c *caller) work(ctx context.Context) {
	defer func() {
		c.disbelieve()
		if c.token > 0 {
			c.release(context.WithoutCancel(ctx))
		}
	}()
	for ctx.Err() == nil {
		switch n := c.rand.IntN(100); {
		case c.spent && c.yield:
			c.yields(ctx)
		case c.spent:
			c.release(ctx)
		case n < 10:
			c.get(ctx)
		case n < 20 && c.last > 0:
			c.check(ctx)
		case c.token == 0:
			c.acquire(ctx)
		case n < 25 && c.handsOver(ctx):
		case n < 35:
			c.release(ctx)
		case n < 45:
			c.acquire(ctx) // once more: the same as once
		default:
			c.renew(ctx)
		}
		if c.lost { // it returns while its attempt may still be under way
			c.rest(ctx, c.Pace/10)
		} else {
			c.rest(ctx, c.Pace)
		}
	}
}

func (c *caller) acquire(ctx context.Context) {
	wait := time.Duration(c.rand.Int64N(int64(maxWait/time.Millisecond))) * time.Millisecond * time.Duration(c.rand.IntN(2))
	patience := wait + c.patience()
	switch {
	case c.rand.IntN(3) == 0:
		patience = time.Duration(1+c.rand.IntN(200)) * time.Millisecond
	case c.lost:
		wait = returnWait
		patience = wait + c.patience()
	}
	ctx, cancel := c.within(ctx, patience)
	defer cancel()
	sent := c.recorder.Now()
	grant, err := c.server().Acquire(ctx, leadership.AcquireRequest{
		Election: c.Election, CandidateID: candidate(c.Name), Key: &c.key, LeaseDuration: c.Lease, Wait: wait, Candidacy: c.Candidacy,
	})
	c.lost = err != nil && !errors.Is(err, leadership.LeaseHeld) && !errors.Is(err, leadership.NotEligible)
	switch {
	case err == nil:
		if c.token > 0 && (grant.Token != c.token || grant.Election != c.of) {
			c.disbelieve()
		}
		c.of, c.token, c.last = grant.Election, grant.Token, grant.Token
		c.believe(leadership.Deadline(sent, min(grant.Waited, c.recorder.Now()-sent), grant.ExpiresIn, 0))
	case errors.Is(err, leadership.LeaseHeld) && c.named(err):
		if c.token > 0 {
			c.lose()
		}
		refusal, _ := errors.AsType[*leadership.Error](err)
		c.ready(context.WithoutCancel(ctx), refusal.Lease.Token)
	case errors.Is(err, leadership.LeaseHeld):
		c.lose()
	}
}

// named reports whether the candidate is the successor, by a refusal. It keeps its key from then
// on.
func (c *caller) named(err error) bool {
	refusal, ok := errors.AsType[*leadership.Error](err)
	return ok && refusal.Lease != nil && refusal.Lease.Succession.To == candidate(c.Name)
}

// ready says so, as the successor of the leader with the token.
func (c *caller) ready(ctx context.Context, token leadership.Token) {
	ctx, cancel := c.within(ctx, c.patience())
	defer cancel()
	_, _ = c.server().Do(ctx, leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: c.Election, CandidateID: candidate(c.Name), Key: c.key, Token: token}}) // it acquires all the same
}

// handsOver names a successor, and reports whether it did. The leader goes on until that is ready.
func (c *caller) handsOver(ctx context.Context) bool {
	to := c.successor()
	if to == "" {
		return false
	}
	ctx, cancel := c.within(ctx, c.patience())
	defer cancel()
	_, _ = c.server().Do(ctx, leadership.HandOver{LeaseRequest: c.request(), To: to, Within: c.handingOver()}) // the next renewal shows it
	return true
}

// yields gives the lease up to the successor, and asks until it is answered.
func (c *caller) yields(ctx context.Context) {
	c.disbelieve()
	c.spent, c.yield = true, true
	ctx, cancel := c.within(ctx, c.patience())
	defer cancel()
	switch _, err := c.server().Do(ctx, leadership.Yield{LeaseRequest: c.request()}); {
	case err == nil, errors.Is(err, leadership.LeaseLost):
		c.lose()
	case errors.Is(err, leadership.NotReady):
		c.yield = false
	}
}

func (c *caller) renew(ctx context.Context) {
	ctx, cancel := c.within(ctx, c.patience())
	defer cancel()
	sent := c.recorder.Now()
	lease, err := c.server().Renew(ctx, c.request())
	switch {
	case err == nil:
		c.believe(leadership.Deadline(sent, 0, lease.ExpiresIn, 0))
		if lease.Succession.Ready {
			c.yields(context.WithoutCancel(ctx))
		}
	case errors.Is(err, leadership.LeaseLost):
		c.lose()
	}
}

// release releases the lease. Once it is sent the key is spent, and the release is repeated until
// it is answered.
func (c *caller) release(ctx context.Context) {
	c.disbelieve()
	c.spent = true
	ctx, cancel := c.within(ctx, c.patience())
	defer cancel()
	_, err := c.server().Do(ctx, leadership.Release{LeaseRequest: c.request()})
	if err == nil || errors.Is(err, leadership.LeaseLost) {
		c.lose()
	}
}

// lose gives up the key.
func (c *caller) lose() {
	c.disbelieve()
	c.key, c.token, c.spent, c.yield = leadership.NewKey(), 0, false, false
}

func (c *caller) request() leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: c.of, CandidateID: candidate(c.Name), Key: c.key, Token: c.token}
}

func (c *caller) check(ctx context.Context) {
	ctx, cancel := c.within(ctx, c.patience())
	defer cancel()
	_, _ = c.server().CheckToken(ctx, leadership.TokenCheck{Election: c.of, Token: c.last})
}

func (c *caller) get(ctx context.Context) {
	ctx, cancel := c.within(ctx, c.patience())
	defer cancel()
	_, _ = c.server().Get(ctx, c.of)
}

// believe extends the belief to that moment, or begins one.
func (c *caller) believe(until time.Duration) {
	if c.term != nil {
		select {
		case <-c.term.over:
			c.term = nil
		default:
			c.term.until.Store(int64(until))
			return
		}
	}
	t := &term{over: make(chan struct{})}
	t.until.Store(int64(until))
	c.term = t
	of, token := c.of, c.token
	go func() {
		defer close(t.over)
		c.lead(of, token, func() bool { return c.recorder.Now() < time.Duration(t.until.Load()) })
	}()
}

// disbelieve ends the belief, and returns once it has ended.
func (c *caller) disbelieve() {
	if c.term != nil {
		c.term.until.Store(0)
		<-c.term.over
		c.term = nil
	}
}

// read reads the cache, and now and then the store. A reader of one server never says what it has
// seen; one of all of them does.
func (p *agent) read(ctx context.Context) {
	known, all := map[leadership.Election]leadership.Revision{}, record.WithSeats(p.Elections, p.Seats)
	for ctx.Err() == nil {
		e := all[p.rand.IntN(len(all))]
		r := leadership.ReadRequest{Election: e, Strong: p.rand.IntN(10) == 0}
		if p.Server < 0 {
			r.Known = known[e]
		}
		p.readOnce(ctx, r, known)
		p.rest(ctx, p.Pace/2)
	}
}

func (p *agent) readOnce(ctx context.Context, r leadership.ReadRequest, known map[leadership.Election]leadership.Revision) {
	ctx, cancel := p.within(ctx, p.patience())
	defer cancel()
	x := checker.Reading{Reader: p.name, Election: r.Election, Strong: r.Strong, Known: r.Known, Asked: p.recorder.Now()}
	reading, err := p.server().Read(ctx, r)
	x.Answered = p.recorder.Now()
	switch {
	case err == nil:
		x.Revision, x.State, x.Leader, x.Token = reading.Revision, reading.State, reading.LeaderID, reading.Token
		x.Age, x.Bound, x.Shown = reading.Age, reading.Bound, &reading.Lease
		known[r.Election] = max(known[r.Election], x.Revision)
		p.recorder.Read(x)
	case errors.Is(err, leadership.RevisionMismatch), errors.Is(err, leadership.RecordCorrupt):
		p.recorder.Fail("%s reads %s, of which it knows revision %d: %v", p.name, r.Election, r.Known, err)
	}
}

// operate changes the configuration now and then, and asks again until it is answered.
func (p *agent) operate(ctx context.Context) {
	for ctx.Err() == nil {
		e := p.Elections[p.rand.IntN(len(p.Elections))]
		c := leadership.Config{LeaseDuration: p.Lease, LockDelay: time.Duration(p.rand.IntN(4)) * 50 * time.Millisecond, Ballot: p.Ballots[e]}
		for asked := false; !asked && ctx.Err() == nil; {
			asked = p.configure(ctx, e, c) == nil
			p.rest(ctx, p.Pace)
		}
		p.rest(ctx, 5*p.Pace)
		p.order(ctx, p.Elections[p.rand.IntN(len(p.Elections))])
		p.rest(ctx, 5*p.Pace)
	}
}

// usher lets the pool have fewer seats and all again, halts it for longer than any instance may be
// deaf to that, does the first once more, and pauses it; and so on.
func (p *agent) usher(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n = (n + 1) % 6 {
		give := leadership.Order{Reason: "it has to be", Actor: p.Name}
		switch n {
		case 0, 3:
			p.seats(ctx, 1+p.rand.IntN(p.Seats-1))
			sleep(ctx, p.Lease/2) // until leaders renew
		case 1, 4:
			p.seats(ctx, p.Seats)
		case 2:
			give.Kind, give.For = leadership.OrderHalt, 8*time.Second
			p.gives(ctx, record.Pool+"*", give)
			sleep(ctx, 7500*time.Millisecond)
			give.Kind, give.For = leadership.OrderUnhalt, 0
			p.gives(ctx, record.Pool+"*", give)
		case 5:
			give.Kind, give.For, give.Mode = leadership.OrderPause, leadership.MinOrder, leadership.PauseDrain
			p.gives(ctx, record.Pool, give)
		}
		p.rest(ctx, 2*p.Pace)
	}
}

// seats asks for so many seats until it is answered.
func (p *agent) seats(ctx context.Context, n int) {
	for p.configure(ctx, record.Pool, leadership.Config{LeaseDuration: p.Lease, Seats: n}) != nil && ctx.Err() == nil {
		p.rest(ctx, p.Pace)
	}
}

// order evicts a leader, or pauses the election for a while and mostly resumes it.
func (p *agent) order(ctx context.Context, e leadership.Election) {
	c := leadership.Order{Kind: leadership.OrderEvict, Reason: "it has to be", Actor: p.Name}
	if p.rand.IntN(2) == 0 {
		c.Kind, c.For = leadership.OrderPause, leadership.MinOrder
		c.Mode = []leadership.PauseMode{leadership.PauseFreeze, leadership.PauseDrain}[p.rand.IntN(2)]
	}
	p.gives(ctx, e, c)
	if c.Kind == leadership.OrderPause && p.rand.IntN(3) > 0 {
		p.rest(ctx, 3*p.Pace)
		p.gives(ctx, e, leadership.Order{Kind: leadership.OrderResume, Reason: "it is well again", Actor: p.Name})
	}
}

// gives gives an order once: an outcome that is unknown shows in the history.
func (p *agent) gives(ctx context.Context, e leadership.Election, c leadership.Order) {
	ctx, cancel := p.within(ctx, p.patience())
	defer cancel()
	p.server().Do(ctx, c.In(e)) //nolint:errcheck // the history shows whether it was done
}

func (p *agent) configure(ctx context.Context, e leadership.Election, c leadership.Config) error {
	ctx, cancel := p.within(ctx, p.patience())
	defer cancel()
	_, err := p.server().Do(ctx, leadership.Configure{Election: e, Config: c})
	return err
}
