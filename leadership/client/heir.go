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
	// Left is roughly the time until the present term ends, whether the successor is ready or not;
	// 0 if unknown.
	Left time.Duration
}

const (
	// attendAfter is how long a candidate waits before it opens a stream to hear of a hand-over to
	// it: candidates that are granted a lease at once need none.
	attendAfter = time.Second
	// claimAfter is how long after the leader's yield the waiting call may take to be granted; then
	// the candidate ends that call and asks anew.
	claimAfter = 250 * time.Millisecond
	// loadLimit is how long OnSuccession may take to return once its context has ended.
	loadLimit = time.Second
)

// errYielded ends a call that waits in line, so that the candidate can acquire the lease that was
// yielded to it.
var errYielded = errors.New("the leader has yielded")

// heir is the part of a campaign that handles a hand-over to the candidate. It learns of one from
// the election's events while the candidate waits and, if these cannot be watched, from refusals.
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
	now    leadership.Succession // the hand-over as last heard of; guarded by mu
	at     leadership.Revision   // of now; guarded by mu
	work   context.CancelFunc    // ends the preparation; nil if there is none; guarded by mu
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

// refused takes over the state of the election that a refusal contains.
func (h *heir) refused(err error) {
	if e, ok := errors.AsType[*leadership.Error](err); ok && e.Lease != nil && e.Lease.Election == h.request.Election {
		h.hearLease(*e.Lease)
	}
}

func (h *heir) hearLease(l leadership.Lease) {
	h.hear(l.Revision, l.LeaderID, l.Token, func(leadership.Succession) leadership.Succession { return l.Succession })
}

// hear applies a change of the hand-over that was heard of at a revision.
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

// wait blocks until the preparation, whose context has ended, is over, for at most loadLimit: an
// OnSuccession that ignores its context must not keep a granted lease without a leader. Call it
// once hear is no longer called.
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

// withdraw ends the preparation for a hand-over that was taken back. Call with mu held.
func (h *heir) withdraw() {
	if h.work != nil {
		h.work()
	}
	h.work, h.loaded = nil, false
}

// prepare calls Config.OnSuccession, and then tells the server that the successor is ready.
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

// claim has the candidate ask for the lease that was yielded to it, unless its waiting call is
// granted the lease within claimAfter, which is the usual case. Call with mu held.
func (h *heir) claim() {
	h.claims = true
	if end := h.call; end != nil {
		time.AfterFunc(claimAfter, end)
	}
}

// begin returns the context of the next call, and whether that call claims a yielded lease.
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

// due reports whether the next call claims a yielded lease.
func (h *heir) due() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claims
}
