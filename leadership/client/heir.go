package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"regent/leadership"
)

// Succession tells a waiting candidate that the present leader is to hand over to it.
type Succession struct {
	Election    leadership.Election
	CandidateID leadership.CandidateID // the successor
	LeaderID    leadership.CandidateID // the present leader
	Token       leadership.Token       // of the present leader
	// Left is about the time until the present term ends, ready or not; 0 if it is not known.
	Left time.Duration
}

const (
	// attendAfter is how long a candidate has waited before it watches the election for a hand-over
	// to it: most that are granted a lease at once need no stream.
	attendAfter = time.Second
	// claimAfter is how long after the leader's yield a waiting call may take to be granted, before
	// the candidate asks anew.
	claimAfter = 250 * time.Millisecond
	// loadLimit is how long OnSuccession may take to return once its context has ended.
	loadLimit = time.Second
)

// errYielded ends a call that waits in line, so that the candidate can ask for what is its own.
var errYielded = errors.New("the leader has yielded")

// heir is the part of a campaign that looks after a hand-over to the candidate. It learns of one by
// the election's events while the candidate waits and, where these cannot be watched, by refusals.
//
//	named --> Config.OnSuccession --> says ready --> the leader yields --> acquires at once
//	  ^              |                                      |
//	  +-- another is named, or another leads: cancelled ----+
type heir struct {
	client  *Client
	request leadership.LeaseRequest // of the candidate, without a token
	log     *slog.Logger
	ctx     context.Context // of the campaign
	loading sync.WaitGroup

	mu     sync.Mutex
	term   leadership.Token      // of the leader that is to hand over; guarded by mu
	now    leadership.Succession // guarded by mu
	at     leadership.Revision   // of that; guarded by mu
	work   context.CancelFunc    // ends what prepares for it; nil if nothing does; guarded by mu
	loaded bool                  // OnSuccession has returned nil; guarded by mu
	call   context.CancelFunc    // ends the present call; guarded by mu
	claims bool                  // the next call asks without waiting; guarded by mu
}

// attend watches the election until ctx ends.
func (h *heir) attend(ctx context.Context) {
	if sleep(ctx, attendAfter); ctx.Err() != nil {
		return
	}
	for news, err := range h.client.Watch(ctx, WatchRequest{Election: h.request.Election}) {
		switch e := news.Event; {
		case err != nil && ctx.Err() == nil:
			h.log.Debug("the candidate hears of a hand-over only when its wait is over", "reason", err)
		case e != nil:
			h.hear(e.Revision, e.LeaderID, e.Token, func(s leadership.Succession) leadership.Succession { return successionAfter(s, *e) })
		case news.Lease != nil:
			h.hearLease(*news.Lease)
		}
	}
}

// refused takes what a refusal says of the election.
func (h *heir) refused(err error) {
	if e, ok := errors.AsType[*leadership.Error](err); ok && e.Lease != nil && e.Lease.Election == h.request.Election {
		h.hearLease(*e.Lease)
	}
}

func (h *heir) hearLease(l leadership.Lease) {
	h.hear(l.Revision, l.LeaderID, l.Token, func(leadership.Succession) leadership.Succession { return l.Succession })
}

// hear takes what was heard at a revision.
func (h *heir) hear(at leadership.Revision, leader leadership.CandidateID, token leadership.Token, change func(leadership.Succession) leadership.Succession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.now
	if token != h.term {
		before = leadership.Succession{}
	}
	now := change(before)
	if !newer(at, h.at, now) {
		return
	}
	mine := now.To == h.request.CandidateID && leader != h.request.CandidateID
	if token != h.term || !mine {
		h.withdraw()
	}
	h.term, h.now, h.at = token, now, at
	switch {
	case mine && now.Yielded:
		h.claim()
	case mine && !now.Ready && h.work == nil:
		ctx, cancel := context.WithCancel(h.ctx)
		h.work = cancel
		named := Succession{Election: h.request.Election, CandidateID: h.request.CandidateID, LeaderID: leader, Token: token, Left: now.Left}
		h.loading.Go(func() { h.prepare(ctx, named) })
	}
}

// wait waits for what prepares, whose context has ended, but not for an OnSuccession that ignores
// that: a lease that is granted already would have no leader. Call it when hear will not be
// called any more.
func (h *heir) wait() {
	ended := make(chan struct{})
	go func() {
		h.loading.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(loadLimit):
		h.log.Warn("OnSuccession goes on though its context has ended; not waiting for it")
	}
}

// withdraw ends what prepares for a hand-over that does not come. Call with mu held.
func (h *heir) withdraw() {
	if h.work != nil {
		h.work()
	}
	h.work, h.loaded = nil, false
}

// prepare loads what the successor needs, and says that it is ready.
func (h *heir) prepare(ctx context.Context, s Succession) {
	h.log.Info("named as the successor", "leader", s.LeaderID, "token", s.Token)
	err := h.load(ctx, s)
	ready := h.request
	ready.Token = s.Token
	for p := (backoff{}); err == nil && ctx.Err() == nil; {
		_, said := h.client.Do(ctx, leadership.SayReady{LeaseRequest: ready})
		if said == nil {
			h.log.Info("ready to take over", "leader", s.LeaderID, "token", s.Token)
			return
		}
		if !transient(said) {
			err = said
			break
		}
		sleep(ctx, p.after(said))
	}
	if ctx.Err() == nil {
		h.log.Warn("the candidate does not take over; it waits in line as before", "reason", err)
	}
}

// load calls Config.OnSuccession, once for each time that the candidate is named.
func (h *heir) load(ctx context.Context, s Succession) error {
	h.mu.Lock()
	loaded := h.loaded
	h.mu.Unlock()
	if load := h.client.onSuccession; load != nil && !loaded {
		if err := load(ctx, s); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loaded = ctx.Err() == nil
	return nil
}

// claim lets the candidate ask for the lease that was yielded to it. A call that waits in line is
// granted it, too, and usually sooner. Call with mu held.
func (h *heir) claim() {
	h.claims = true
	if end := h.call; end != nil {
		time.AfterFunc(claimAfter, end)
	}
}

// begin returns the context of the next call, and whether it asks for what was yielded.
func (h *heir) begin(ctx context.Context) (call context.Context, end context.CancelFunc, claims bool) {
	call, cancel := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	claims, h.claims = h.claims, false
	if !claims {
		h.call = func() { cancel(errYielded) }
	}
	return call, func() { h.end(cancel) }, claims
}

func (h *heir) end(cancel context.CancelCauseFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call = nil
	cancel(nil)
}

// due reports whether the next call asks for what was yielded.
func (h *heir) due() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claims
}
