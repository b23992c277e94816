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

// storeTime returns a time that is not later than the read by any of the store's clocks.
func storeTime(s rule.Snapshot) time.Time { return s.Now.Add(-s.Guard) }

// Propose asks the present or next leader of an election for a decision within the ttl. It returns
// the proposal in its present state, and does not wait. Idempotent until the ttl is over; after
// that the same call opens the proposal anew.
//
// Errors: NotFound, if the election does not exist, or if leadership.MaxDecidedProposals others
// were decided after the proposal; LimitExceeded; InvalidArgument, also if the id is that of
// another proposal; PayloadTooLarge.
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

// Decide decides a proposal for good. No leader with a lower token can decide any proposal after
// that. Idempotent while the caller leads.
//
// Errors: LeaseLost; TokenStale, once a later leader has decided one; NotFound, if there is no such
// proposal or its ttl is over; InvalidArgument, also if it was decided differently.
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

// changeProposals runs a rule on the proposals of election s, and returns the proposal with that
// id.
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

// Proposals reads, strongly, the proposals that an election keeps. Error: NotFound, if the election
// does not exist.
func (l *Ledger) Proposals(ctx context.Context, e leadership.Election) (leadership.Proposals, error) {
	snap, err := l.service.look(ctx, e)
	if err != nil {
		return leadership.Proposals{}, err
	}
	return l.LookAtProposals(ctx, e, storeTime(snap))
}

// LookAtProposals is Proposals for a caller that has read the election when the store's time was
// now.
func (l *Ledger) LookAtProposals(ctx context.Context, e leadership.Election, now time.Time) (leadership.Proposals, error) {
	return look(ctx, l, proposalsOf(e), func(log rule.Log) (leadership.Proposals, error) { return log.Proposals(now) })
}
