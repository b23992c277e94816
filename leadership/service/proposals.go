package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

func proposalsOf(e leadership.Election) rule.LogID {
	return rule.LogID{Election: e, Kind: rule.LogProposals}
}

// storeTime is the store's time of a read, by the one of its clocks that is most behind.
func storeTime(s rule.Snapshot) time.Time { return s.Now.Add(-s.Guard) }

// Propose asks the leader of an election for a decision, now or within the ttl: the election may be
// vacant. It returns the proposal as it stands, and does not wait. Idempotent until the ttl is
// over; later the same call opens it anew.
//
// Errors: NotFound, if the election does not exist, or the proposal was decided and
// leadership.MaxDecidedProposals others since; LimitExceeded; InvalidArgument, also if the id is
// that of another proposal; PayloadTooLarge.
func (l *Ledger) Propose(ctx context.Context, r leadership.ProposeRequest) (leadership.Proposal, error) {
	if err := r.Validate(); err != nil {
		return leadership.Proposal{}, err
	}
	r.TTL = cmp.Or(r.TTL, leadership.DefaultProposalTTL)
	var err error
	if r.Data, err = small("data", r.Data, leadership.MaxProposalBytes, "and propose where it is"); err != nil {
		return leadership.Proposal{}, err
	}
	snap, err := l.service.look(ctx, r.Election)
	if err != nil {
		return leadership.Proposal{}, err
	}
	principal := bounded(leadership.Actor(ctx))
	return l.changeProposals(ctx, snap, r.ID, func(log rule.Log, now time.Time) (rule.LogChange, error) { return rule.Propose(log, r, principal, now) })
}

// Decide decides a proposal, once and for good. No leader with a lower token can decide any after
// that. Idempotent while the caller leads.
//
// Errors: LeaseLost; TokenStale, once a later leader has decided one; NotFound, if there is no such
// proposal or its ttl is over; InvalidArgument, also if it is decided otherwise.
func (l *Ledger) Decide(ctx context.Context, r leadership.DecideRequest) (leadership.Proposal, error) {
	if err := r.Validate(); err != nil {
		return leadership.Proposal{}, err
	}
	c, err := renewal(r.LeaseRequest)
	if err != nil {
		return leadership.Proposal{}, err
	}
	snap, err := l.service.store.Get(ctx, r.Election)
	if err != nil {
		return leadership.Proposal{}, err
	}
	p, err := l.changeProposals(ctx, snap, r.ID, func(log rule.Log, now time.Time) (rule.LogChange, error) {
		return rule.Decide(log, c, r, snap.Leads(c), now)
	})
	if errors.Is(err, rule.ErrUnopened) {
		err = snap.RefuseLost(c)
	}
	return p, err
}

// changeProposals runs a rule on the proposals of an election that was read before.
func (l *Ledger) changeProposals(ctx context.Context, s rule.Snapshot, id leadership.ProposalID, decide func(rule.Log, time.Time) (rule.LogChange, error)) (leadership.Proposal, error) {
	now := storeTime(s)
	log, err := l.journal.Amend(ctx, proposalsOf(s.Record.Election), func(log rule.Log) (rule.LogChange, error) {
		tellWhole(ctx, log)
		return decide(log, now)
	})
	if err != nil {
		return leadership.Proposal{}, err
	}
	tellWhole(ctx, log)
	all, err := log.Proposals(now)
	if err != nil {
		return leadership.Proposal{}, err
	}
	p := all.Find(id) // the rule has put it there, or found it
	if l.Told != nil {
		l.Told(all, p.Decision == nil)
	}
	return *p, nil
}

// Proposals reads the proposals of an election that are kept, strongly. Error: NotFound, if the
// election does not exist.
func (l *Ledger) Proposals(ctx context.Context, e leadership.Election) (leadership.Proposals, error) {
	snap, err := l.service.look(ctx, e)
	if err != nil {
		return leadership.Proposals{}, err
	}
	return l.LookAtProposals(ctx, e, storeTime(snap))
}

// LookAtProposals is Proposals for a caller that has read the election, at that time of the store.
func (l *Ledger) LookAtProposals(ctx context.Context, e leadership.Election, now time.Time) (leadership.Proposals, error) {
	return look(ctx, l, proposalsOf(e), func(log rule.Log) (leadership.Proposals, error) { return log.Proposals(now) })
}
