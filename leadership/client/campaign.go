package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Campaign stands in line until the Client's Candidate leads the election, and returns its lease. It asks again by itself, with pauses by chance, when
// the server cannot be reached or could do nothing, and when nobody knows what came of a call: all of it under one key, so that it is granted
// once. The lease outlives ctx; whoever is done with it calls Resign, and not before all that leads has stopped.
//
// Errors: ctx's, if it ended first; what another call would not change, such as leadership.InvalidArgument, leadership.ElectionDeleted or
// wire.PermissionDenied; after Candidate.Rounds calls the last one's, leadership.LeaseHeld or other. A campaign that ends without a lease leaves
// none behind if the server can be reached; one that was granted as it ended is given back, else it runs out.
func (c *Client) Campaign(ctx context.Context, election leadership.Election) (*Lease, error) {
	return c.campaign(ctx, context.WithoutCancel(ctx), election, leadership.MaxWait)
}

// TryAcquire is a Campaign that does not stand in line: leadership.LeaseHeld says at once that somebody else leads. Without Candidate.Rounds it
// asks three times while there is no answer.
func (c *Client) TryAcquire(ctx context.Context, election leadership.Election) (*Lease, error) {
	return c.campaign(ctx, context.WithoutCancel(ctx), election, 0)
}

// triesWithoutWait is how often TryAcquire asks.
const triesWithoutWait = 3

// campaign is Campaign for a lease whose Context comes from within.
func (c *Client) campaign(ctx, within context.Context, election leadership.Election, wait time.Duration) (*Lease, error) {
	if err := c.candidate.validate(); err != nil {
		return nil, err
	}
	k := campaigner{Client: c, wait: c.patience(wait), rounds: c.candidate.Rounds, request: leadership.AcquireRequest{
		Election:      election,
		CandidateID:   c.candidateID(ctx),
		Key:           new(leadership.NewKey()),
		LeaseDuration: c.candidate.LeaseDuration,
		Metadata:      c.candidate.Metadata,
	}}
	if wait == 0 && k.rounds == 0 {
		k.rounds = triesWithoutWait
	}
	k.log = c.log.With("election", election, "candidate", k.request.CandidateID)
	l, err := k.run(ctx, within)
	if err != nil {
		k.abandon(ctx)
		return nil, err
	}
	return l, nil
}

// patience is the wait that the caller's http.Client bears: one whose Timeout is shorter would cut each off, and never hear the answer.
func (c *Client) patience(wait time.Duration) time.Duration {
	if c.http.Timeout > 0 {
		wait = min(wait, max(c.http.Timeout/2, time.Millisecond)).Truncate(time.Millisecond)
	}
	return wait
}

// maxAway is the longest pause of a candidate in the line, which keeps its place for 5 s.
const maxAway = 4 * time.Second

// campaigner is a campaign.
type campaigner struct {
	*Client
	request leadership.AcquireRequest
	wait    time.Duration
	rounds  int
	log     *slog.Logger

	sent    time.Duration // when the last call began
	pace    pace
	failure error // of the last call; nil if it was answered
	unknown bool  // whether a lease may have been granted without our knowing
}

// run asks until the candidate leads.
func (k *campaigner) run(ctx, within context.Context) (*Lease, error) {
	for round := 1; ; round++ {
		l, err := k.ask(ctx, within)
		held := errors.Is(err, leadership.LeaseHeld)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, k.stopped(context.Cause(ctx))
		case held && k.wait == 0, !held && !passes(err), round == k.rounds:
			return nil, err
		}
		sleep(ctx, k.pause(err, held))
	}
}

// errLate is the error of a lease that was over, for a careful leader, when it was heard of.
var errLate = fmt.Errorf("client: campaign: %w: the lease was over when its grant was heard of; ask for a longer lease, or take a shorter margin", leadership.OutcomeUnknown)

// stopped is the error of a campaign whose context has ended: that, and why the last call before came to nothing, if it did.
func (k *campaigner) stopped(cause error) error {
	if k.failure != nil {
		cause = fmt.Errorf("%w: %w", cause, k.failure)
	}
	return fmt.Errorf("client: campaign for election %q: %w", k.request.Election, cause)
}

// ask makes one call.
func (k *campaigner) ask(ctx, within context.Context) (*Lease, error) {
	k.request.Wait, k.sent = k.wait, k.clock()
	grant, err := k.Acquire(ctx, k.request)
	if err != nil {
		k.note(ctx, err)
		return nil, err
	}
	k.unknown = true // until the lease is in somebody's hands
	l, err := k.newLease(within, k.sent, grant)
	if err != nil {
		return nil, err
	}
	left := l.Remaining()
	if left == 0 {
		if !errors.Is(k.failure, errLate) {
			k.pace = pace{} // the lease is its own, and asked for again it lasts from then: soon, or it has run out
		}
		k.note(ctx, errLate)
		return nil, errLate
	}
	go l.keep(k.clock() + l.pause(grant.RenewIn, left))
	k.log.Info("leading", "token", l.Token(), "remaining", left)
	return l, nil
}

// note remembers what a call without a lease means. A refusal shows that none was granted before; a call that was not made shows nothing.
func (k *campaigner) note(ctx context.Context, err error) {
	switch {
	case errors.Is(err, leadership.OutcomeUnknown):
		k.unknown = true
	case errors.Is(err, leadership.LeaseHeld):
		k.unknown = false
	}
	if ctx.Err() != nil {
		return // that is why
	}
	passed := passes(err)
	if passed && k.failure == nil {
		k.log.Warn("no answer to the campaign; asking again", "reason", err)
	}
	if k.failure = nil; passed {
		k.failure = err
	}
}

// pause is how long to wait before the next call: not at all after one that has stood in line for its time.
func (k *campaigner) pause(err error, held bool) time.Duration {
	if held && k.clock()-k.sent >= k.wait/2 {
		k.pace = pace{}
		return 0
	}
	d := k.pace.after(err)
	if !errors.Is(err, wire.RateLimited) {
		d = min(d, maxAway)
	}
	return d
}

// abandonTimeout is what a campaign that was given up has for giving its lease back.
const abandonTimeout = 5 * time.Second

// abandon gives back what may have been granted by a call whose answer was not heard, or was heard too late. Such a call may still be at work
// when its caller goes, so that whoever finds nobody leading looks again.
func (k *campaigner) abandon(ctx context.Context) {
	if !k.unknown {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	for pause := minRetry; ; pause *= 3 {
		lease, err := k.Get(ctx, k.request.Election)
		switch {
		case err == nil && lease.LeaderID == k.request.CandidateID:
			_ = k.release(ctx, leadership.LeaseRequest{ // of another incarnation the server refuses it; what fails runs out
				Election: k.request.Election, CandidateID: k.request.CandidateID, Key: *k.request.Key, Token: lease.Token,
			})
			return
		case err == nil && lease.State == leadership.Held, err != nil && !errors.Is(err, leadership.NotFound), pause > maxLook:
			return
		}
		sleep(ctx, pause)
	}
}

// maxLook is the longest pause between two looks at an election whose campaign was given up.
const maxLook = 500 * time.Millisecond

// Resign stops renewing and gives the lease back, so that the next leader need not wait for its end. Whatever leads must have stopped before. It
// asks until it is answered or ctx ends; then the lease runs out by itself, and the error says why. To resign twice, or from what is lost, is
// no error.
func (l *Lease) Resign(ctx context.Context) error {
	l.mu.Lock()
	l.finish(l.because(ErrResigned, nil), ErrResigned)
	lost := l.own == ErrLost
	l.mu.Unlock()
	select {
	case <-l.kept:
	case <-ctx.Done():
	}
	if lost {
		return nil
	}
	err := l.client.release(ctx, l.request)
	if err == nil || errors.Is(err, leadership.LeaseLost) {
		l.client.logOf(l).Info("resigned")
		return nil
	}
	return l.because(err, nil)
}

// identity is a candidate's id, once it is drawn.
type identity struct {
	once sync.Once
	id   leadership.CandidateID
}

func (c *Client) candidateID(ctx context.Context) leadership.CandidateID {
	if c.candidate.ID != "" {
		return c.candidate.ID
	}
	c.id.once.Do(func() { c.id.id = DefaultCandidateID(ctx) })
	return c.id.id
}

// logOf is the log of what happens to a lease.
func (c *Client) logOf(l *Lease) *slog.Logger {
	return c.log.With("election", l.Election(), "candidate", l.CandidateID(), "token", l.Token())
}
