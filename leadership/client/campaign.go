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

// Campaign waits in line until the Client's Candidate leads the election, and returns its lease. It
// retries, with random pauses, when the server cannot be reached or could do nothing, and when the
// outcome of a call is unknown; all calls use one key, so at most one lease is granted. The lease
// outlives ctx: the caller must call Resign when it is done, and not before everything that acts as
// leader has stopped.
//
// Errors: ctx's, if it ended first; errors that another call would not change, such as
// leadership.InvalidArgument, leadership.ElectionDeleted, wire.PermissionDenied or
// leadership.NotEligible, which says what the candidate lacks (one with a RetryAfter is retried);
// after Candidate.Rounds calls the error of the last one, leadership.LeaseHeld or other. A campaign
// that fails leaves no lease behind if the server can be reached: a lease that was granted at the
// last moment is released. Otherwise such a lease expires.
func (c *Client) Campaign(ctx context.Context, election leadership.Election) (*Lease, error) {
	return c.campaign(ctx, context.WithoutCancel(ctx), election, leadership.MaxWait)
}

// TryAcquire is a Campaign that does not wait in line: it returns leadership.LeaseHeld at once if
// another candidate leads. If the election has a ballot, it bids and asks again when its turn
// comes: after the window of the election's policy, up to 30 s. Without Candidate.Rounds it makes
// up to three calls while there is no answer, or only the answer that a ballot is open.
func (c *Client) TryAcquire(ctx context.Context, election leadership.Election) (*Lease, error) {
	return c.campaign(ctx, context.WithoutCancel(ctx), election, 0)
}

// triesWithoutWait is how many calls TryAcquire makes.
const triesWithoutWait = 3

// campaign is Campaign for a lease whose Context is derived from within.
func (c *Client) campaign(ctx, within context.Context, election leadership.Election, wait time.Duration) (*Lease, error) {
	if err := c.candidate.validate(); err != nil {
		return nil, err
	}
	if parent := c.candidate.Via; parent != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(parent.ctx, func() { cancel(fmt.Errorf("%w: %w", ErrOrphaned, context.Cause(parent.ctx))) })()
	}
	k := campaigner{Client: c, wait: c.boundWait(wait), rounds: c.candidate.Rounds, request: leadership.AcquireRequest{
		Election:      election,
		CandidateID:   c.candidateID(ctx),
		Key:           new(leadership.NewKey()),
		LeaseDuration: c.candidate.LeaseDuration,
		Metadata:      c.candidate.Metadata,
		Inherit:       c.candidate.Inherit,
		Statement:     c.candidate.Statement,
	}}
	if wait == 0 && k.rounds == 0 {
		k.rounds = triesWithoutWait
	}
	k.log = c.log.With("election", election, "candidate", k.request.CandidateID)
	l, err := k.attended(ctx, within)
	if err != nil {
		k.abandon(ctx)
		return nil, err
	}
	promoted := false
	defer func() {
		if !promoted { // it panicked, or the lease is resigned already
			l.cancel(errPanicked)
		}
	}()
	if err := l.promote(ctx); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		return nil, errors.Join(err, l.Resign(ctx))
	}
	promoted = true
	return l, nil
}

// attended is run with an heir, which handles a hand-over to the candidate.
func (k *campaigner) attended(ctx, within context.Context) (*Lease, error) {
	attending, stop := context.WithCancel(ctx)
	k.heir = &heir{
		client: k.Client, log: k.log, ctx: attending,
		request: leadership.LeaseRequest{Election: k.request.Election, CandidateID: k.request.CandidateID, Key: *k.request.Key},
	}
	var beside sync.WaitGroup
	if k.wait > 0 && k.candidate.Role != leadership.RoleWitness {
		beside.Go(func() { k.heir.attend(attending) })
	}
	defer k.heir.wait()
	defer beside.Wait()
	defer stop()
	return k.run(ctx, within)
}

// promote calls Config.OnPromotion and says that the new leader serves, if the election's policy
// requires that.
func (l *Lease) promote(ctx context.Context) error {
	if !l.notServing {
		return nil
	}
	ctx, cancel := l.during(ctx)
	defer cancel()
	if prepare := l.client.onPromotion; prepare != nil {
		if err := prepare(ctx, l); err != nil {
			return about(l.named(), err)
		}
	}
	_, err := persist(ctx, l, func(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
		return l.client.Do(ctx, leadership.SayServing{LeaseRequest: r})
	})
	return err
}

// boundWait shortens a wait to half the Timeout of the caller's http.Client, which would otherwise
// cut off every call before its answer.
func (c *Client) boundWait(wait time.Duration) time.Duration {
	if c.http.Timeout > 0 {
		wait = min(wait, max(c.http.Timeout/2, time.Millisecond)).Truncate(time.Millisecond)
	}
	return wait
}

// maxLinePause is the longest pause of a candidate in line: the server keeps its place for 5 s.
const maxLinePause = 4 * time.Second

type campaigner struct {
	*Client
	request leadership.AcquireRequest
	wait    time.Duration
	rounds  int
	log     *slog.Logger
	heir    *heir

	sent    time.Duration // when the last call began
	backoff backoff
	failure error // of the last call; nil if it was answered, unless only that the ballot is open
	unknown bool  // a lease may have been granted in a call whose outcome is unknown
}

func (k *campaigner) run(ctx, within context.Context) (*Lease, error) {
	for round := 1; ; round++ {
		l, err := k.ask(ctx, within)
		held := errors.Is(err, leadership.LeaseHeld)
		// The lease of an earlier call, whose reply was lost or late, was over when this one
		// renewed it.
		over := errors.Is(err, leadership.LeaseLost)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, k.stopped(context.Cause(ctx))
		case k.heir.due(): // a lease was yielded to it
			round--
			continue
		case held && k.wait == 0 && turnOf(err) == 0, !held && !over && !transient(err), round == k.rounds:
			return nil, err
		}
		sleep(ctx, k.pause(err, held))
	}
}

// turnOf returns when a candidate that has bid should ask again, and 0 for any other error.
func turnOf(err error) time.Duration {
	e, ok := errors.AsType[*leadership.Error](err)
	if !ok || e.Code != leadership.LeaseHeld {
		return 0
	}
	switch e.Reason {
	case leadership.ReasonBallot, leadership.ReasonOutranked, leadership.ReasonQuorum:
		return e.RetryAfter
	}
	return 0
}

// errLate says that the leader's deadline had passed when the reply with its grant arrived.
var errLate = fmt.Errorf("client: campaign: %w: the lease was over when its grant arrived; ask for a longer lease, or use a shorter margin", leadership.OutcomeUnknown)

// stopped returns the error of a campaign whose context has ended: the cause and, if the last call
// failed, its error.
func (k *campaigner) stopped(cause error) error {
	if k.failure != nil {
		cause = fmt.Errorf("%w: %w", cause, k.failure)
	}
	return fmt.Errorf("client: campaign for election %q: %w", k.request.Election, cause)
}

func (k *campaigner) ask(ctx, within context.Context) (*Lease, error) {
	if err := k.standOn(k.candidate.Via); err != nil {
		return nil, err
	}
	call, end, claims := k.heir.begin(ctx)
	defer end()
	if k.request.Wait = k.wait; claims {
		k.request.Wait = 0
	}
	k.request.Candidacy, k.sent = k.candidate.candidacy(), k.clock()
	grant, err := k.Acquire(call, k.request)
	if err != nil {
		k.heir.refused(err)
		k.note(call, err)
		return nil, err
	}
	k.unknown = true // until the caller has the lease
	l, err := k.newLease(within, k.sent, grant)
	if err != nil {
		return nil, err
	}
	left := l.Remaining()
	if left == 0 {
		if !errors.Is(k.failure, errLate) {
			// the next call gets the same lease, renewed, or a new one: soon in either case
			k.backoff = backoff{}
		}
		k.note(ctx, errLate)
		return nil, errLate
	}
	now := k.clock()
	l.noteEnd(now)
	go l.keep(now, l.pause(grant.RenewIn, left))
	k.log.Info("leading", "token", l.Token(), "remaining", left)
	return l, nil
}

// standOn adds to the request the lease that the new one is to stand on.
func (k *campaigner) standOn(parent *Lease) error {
	if parent == nil {
		return nil
	}
	if cause, _ := parent.ending(); cause != nil {
		return fmt.Errorf("client: campaign for election %q: %w: %w", k.request.Election, ErrOrphaned, cause)
	}
	k.request.Via = leadership.Via{Peer: k.candidate.ViaPeer, Election: parent.Election(), Token: parent.Token()}
	return nil
}

// note records a call that returned no lease. A refusal shows that no earlier call was granted; a
// call that was not made shows nothing.
func (k *campaigner) note(ctx context.Context, err error) {
	switch {
	case errors.Is(err, leadership.LeaseHeld):
		k.unknown = false
	case errors.Is(err, leadership.OutcomeUnknown), k.request.Inherit: // the inheritance is read after the grant
		k.unknown = true
	}
	if ctx.Err() != nil {
		return // the end of ctx is the reason
	}
	passed := transient(err)
	if passed && (k.failure == nil || turnOf(k.failure) > 0) {
		k.log.Warn("no answer to the campaign; retrying", "reason", err)
	}
	if k.failure = nil; passed || k.wait == 0 && turnOf(err) > 0 {
		k.failure = err
	}
}

// pause returns the time until the next call: none after a call that waited in line for its time,
// and exactly until its turn for a candidate that has bid without waiting.
func (k *campaigner) pause(err error, held bool) time.Duration {
	if turn := turnOf(err); k.wait == 0 && turn > 0 {
		k.backoff = backoff{}
		return turn
	}
	if held && k.clock()-k.sent >= k.wait/2 {
		k.backoff = backoff{}
		return 0
	}
	d := k.backoff.after(err)
	if !errors.Is(err, wire.RateLimited) {
		d = min(d, maxLinePause)
	}
	return d
}

const (
	// abandonTimeout limits the release of a lease after a failed campaign.
	abandonTimeout = 5 * time.Second
	// underWay is how long a request may still be granted a lease after its caller has given up: a
	// write to a slow store may take that long.
	underWay = 2500 * time.Millisecond
	// maxLookPause is the longest pause between two looks for such a lease.
	maxLookPause = 500 * time.Millisecond
)

// abandon releases a lease that was granted in a call whose answer was lost or came too late. Such
// a call may still be in progress when its caller gives up, so a vacant election is read again.
func (k *campaigner) abandon(ctx context.Context) {
	if !k.unknown {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	began := k.clock()
	for pause := (backoff{}); ; {
		lease, err := k.Get(ctx, k.request.Election)
		if err == nil && lease.Config.Seats > 0 {
			lease, err = k.atSeat(ctx, lease)
		}
		switch {
		case transient(err) && ctx.Err() == nil: // the next read may find it
		case err != nil && !errors.Is(err, leadership.NotFound):
			k.log.Warn("a lease may have been granted that is not wanted; it ends by itself", "reason", err)
			return
		case err == nil && lease.LeaderID == k.request.CandidateID:
			// the server refuses it for another incarnation; a lease that is not released expires
			_ = k.release(ctx, leadership.LeaseRequest{
				Election: lease.Election, CandidateID: k.request.CandidateID, Key: *k.request.Key, Token: lease.Token,
			}, released)
			return
		case err == nil && lease.State == leadership.Held, k.clock()-began >= underWay:
			return
		}
		sleep(ctx, min(pause.after(err), maxLookPause))
	}
}

// atSeat reads the seat at which the candidate leads. It returns the whole election if there is
// none.
func (k *campaigner) atSeat(ctx context.Context, whole leadership.Lease) (leadership.Lease, error) {
	x, err := k.Explain(ctx, leadership.ExplainRequest{Election: whole.Election, CandidateID: k.request.CandidateID})
	if err != nil || !x.Leads || x.Seat == 0 {
		return whole, err
	}
	return k.Get(ctx, whole.Election.Seat(x.Seat))
}

// Resign stops renewing and releases the lease, so that the next leader need not wait for its end.
// Everything that acts as leader must have stopped before. It retries until it is answered or ctx
// ends; if ctx ends first, the lease expires, and the error says why. Resigning twice, or from a
// lost lease, is no error. If the term has ended without progress or without an approval, the lease
// is not released but ends by itself: see Ending.MustRunOut.
//
// If a successor is ready, after HandOver or otherwise, the lease passes to it, and no other
// candidate can be granted it in between.
func (l *Lease) Resign(ctx context.Context) error {
	return l.resign(ctx, l.giveUp)
}

// LetEnd stops renewing, and lets the lease end by itself instead of releasing it. Everything that
// acts as leader must have stopped before. See Ending.MustRunOut.
func (l *Lease) LetEnd() {
	l.stopRenewing()
	<-l.kept
}

// stopRenewing ends the lease here, and reports whether it need not be released.
func (l *Lease) stopRenewing() (done bool) {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remaining(now)
	l.finish(l.because(ErrResigned, nil), ErrResigned)
	return l.own == ErrLost || l.released || l.ranOut()
}

// ranOut reports whether the lease must be left to run out, so that the server records the end of
// the term. Call with mu held.
func (l *Lease) ranOut() bool {
	ended, ok := errors.AsType[*TermError](l.over)
	return ok && l.own == ErrExpired && mustRunOut(ended.Because)
}

// resign ends the lease here, and then calls release unless there is nothing to release.
func (l *Lease) resign(ctx context.Context, release func(context.Context, leadership.LeaseRequest) error) error {
	done := l.stopRenewing()
	select {
	case <-l.kept:
	case <-ctx.Done():
	}
	if done {
		return nil
	}
	r := l.named()
	err := release(ctx, r)
	if err == nil || errors.Is(err, leadership.LeaseLost) {
		l.mu.Lock()
		l.released = true
		l.mu.Unlock()
		l.client.logOf(l).Info("resigned")
		return nil
	}
	return about(r, err)
}

type identity struct {
	once sync.Once
	id   leadership.CandidateID
}

func (c *Client) candidateID(ctx context.Context) leadership.CandidateID {
	switch {
	case c.candidate.ID != "":
		return c.candidate.ID
	case c.candidate.Via != nil:
		return c.candidate.Via.CandidateID()
	}
	c.id.once.Do(func() {
		var stable bool
		if c.id.id, stable = DefaultCandidateID(ctx); !stable {
			c.log.Warn("this host has no name of its own: the candidate has another id after each start, and no order against it holds then; set Candidate.ID", "candidate", c.id.id)
		}
	})
	return c.id.id
}

func (c *Client) logOf(l *Lease) *slog.Logger {
	return c.log.With("election", l.Election(), "candidate", l.CandidateID(), "token", l.Token())
}
