package instance

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/members"
	"regent/leadership/service"
)

// proposals lets callers wait for decisions. The waiters of one election share its reads through a
// proposalWait. It reads when another instance tells of a change and, while the others are not
// heard, every journalLook.
type proposals struct {
	ledger  *service.Ledger
	hub     *hub.Hub // all waits end with it
	roll    *roll    // tells the other instances, and the leaders
	log     *slog.Logger
	running sync.WaitGroup // of the waits

	mu    sync.Mutex // guards all below, and the waits
	waits map[leadership.Election]*proposalWait
}

// proposalWait is shared by the callers that wait for decisions of one election.
type proposalWait struct {
	election leadership.Election
	wake     chan struct{} // of one: told has changed
	end      context.CancelFunc

	waiters int
	known   leadership.Proposals // as last read or changed here
	told    int64                // the highest count of changes heard of
	changed chan struct{}        // closed when known is newer
}

func newProposals(l *service.Ledger, h *hub.Hub, r *roll, log *slog.Logger) *proposals {
	p := &proposals{ledger: l, hub: h, roll: r, log: log, waits: make(map[leadership.Election]*proposalWait)}
	l.Told = p.changedHere
	r.asked = p.changedElsewhere
	return p
}

// changedHere handles the proposals after a call at this instance.
func (p *proposals) changedHere(all leadership.Proposals, open bool) {
	p.mu.Lock()
	if w, ok := p.waits[all.Election]; ok {
		w.take(all)
	}
	p.mu.Unlock()
	p.roll.proposed(all.Election, members.Proposals{Changes: all.Changes, Open: open})
}

// changedElsewhere notes that a call at another instance has changed proposals.
func (p *proposals) changedElsewhere(e leadership.Election, changes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, ok := p.waits[e]; ok && changes > w.told {
		w.told = changes
		backoff.Signal(w.wake)
	}
}

// take replaces the known proposals, and wakes the waiters, if all is newer. Call with mu held.
func (w *proposalWait) take(all leadership.Proposals) {
	if all.Changes > w.known.Changes {
		w.known, w.told = all, max(w.told, all.Changes)
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// join adds a waiter, and starts run if it is the first. The caller must call leave.
func (p *proposals) join(e leadership.Election) (w *proposalWait, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.waits[e]
	if !ok {
		ctx, end := context.WithCancel(context.Background())
		w = &proposalWait{election: e, wake: make(chan struct{}, 1), end: end, changed: make(chan struct{})}
		p.waits[e] = w
		p.running.Go(func() { p.run(ctx, w) })
	}
	w.waiters++
	return w, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.waiters--; w.waiters == 0 {
			w.end()
			delete(p.waits, e)
		}
	}
}

// run looks until ctx ends, or the instance drains.
func (p *proposals) run(ctx context.Context, w *proposalWait) {
	look := time.NewTicker(journalLook)
	defer look.Stop()
	for {
		select {
		case <-w.wake:
		case <-look.C:
			if (p.roll.alone || p.roll.hears()) && !p.behind(w) {
				continue
			}
		case <-ctx.Done():
			return
		case <-p.hub.Done():
			return
		}
		p.look(ctx, w)
	}
}

// behind reports whether there are changes that were told and not read.
func (p *proposals) behind(w *proposalWait) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.told > w.known.Changes
}

// look reads the proposals. If fewer changes are found than were told before, those were invented,
// or lost in a restore: then told is lowered.
func (p *proposals) look(ctx context.Context, w *proposalWait) {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	p.mu.Lock()
	told := w.told
	p.mu.Unlock()
	all, err := p.ledger.LookAtProposals(ctx, w.election, time.Time{})
	if err != nil {
		p.log.LogAttrs(ctx, slog.LevelDebug, "proposals cannot be read; callers wait for decisions", slog.String("election", string(w.election)), slog.Any("cause", err))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.take(all); w.told == told {
		w.told = w.known.Changes
	}
}

// await blocks until the proposal is decided, or the wait is over, and returns its present state.
func (p *proposals) await(ctx context.Context, w *proposalWait, proposal leadership.Proposal, wait time.Duration) (leadership.Proposal, error) {
	over, last := time.After(wait), false
	for {
		p.mu.Lock()
		now, changed := w.known.Find(proposal.ID), w.changed
		p.mu.Unlock()
		switch {
		case now == nil:
			return proposal, &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf(
				"proposal %q of election %q is not kept any more: its ttl is over, or many others were decided since", proposal.ID, proposal.Election)}
		case now.Decision != nil:
			return *now, nil
		}
		if last {
			return *now, nil
		}
		select {
		case <-changed:
		case <-over: // read once more: news from another instance may have been lost
			p.look(ctx, w)
			last = true
		case <-ctx.Done():
			return proposal, ctx.Err()
		case <-p.hub.Done():
			return proposal, p.hub.Cause()
		}
	}
}

// Propose asks the leader of an election for a decision; see service.Ledger. It blocks until there
// is one, for at most r.Wait, and returns the proposal in its present state. While the instances
// hear each other, waiting costs the store nothing, except for one read if there is no decision.
// The leader is told of the proposal if it watches the election.
//
// Errors: those of service.Ledger; the cause of Drain.
func (i *Instance) Propose(ctx context.Context, r leadership.ProposeRequest) (leadership.Proposal, error) {
	if r.Wait == 0 || r.Validate() != nil {
		return i.ledger.Propose(ctx, r)
	}
	w, leave := i.proposals.join(r.Election) // before the call, so that no decision is missed
	defer leave()
	p, err := i.ledger.Propose(ctx, r)
	if err != nil || p.Decision != nil {
		return p, err
	}
	return i.proposals.await(ctx, w, p, r.Wait)
}
