package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
	"regent/leadership/rule"
)

// Peers are other Regent services, named by this one's operator.
type Peers interface {
	// Check asks the peer for the lease of the election, if the token is that of its present
	// leader. The answer's ExpiresIn counts from an instant after the call.
	Check(ctx context.Context, peer string, c leadership.TokenCheck) (leadership.Lease, error)
}

// WithPeers returns the service with peers that a candidate's Via may name.
func (s *Service) WithPeers(p Peers) *Service {
	with := *s
	with.peers = p
	return &with
}

// held reads, strongly, the lease that a candidate says it holds.
//
// Errors: NotEligible, if the candidate does not hold it or, with RetryAfter, if the peer cannot be
// asked now; InvalidArgument, if there is no such peer.
func (s *Service) held(ctx context.Context, v leadership.Via, by leadership.CandidateID) (rule.ParentLease, error) {
	p, err := s.parentLease(ctx, v)
	switch {
	case over(p, err), err == nil && (p.LeaderID != by || p.Token != v.Token):
		return rule.ParentLease{}, &leadership.Error{Code: leadership.NotEligible, Detail: fmt.Sprintf(
			"%q does not lead election %q with fencing token %d, which via names; acquire there first, and send its token", by, v.Election, v.Token)}
	case err != nil:
		return rule.ParentLease{}, err
	}
	return p, nil
}

// over reports whether the results of parentLease mean that the lease has ended.
func over(p rule.ParentLease, err error) bool {
	return errors.Is(err, leadership.TokenStale) || errors.Is(err, leadership.NotFound) || err == nil && p.LeaderID == ""
}

// parentLease reads, strongly, the lease with the token, or the lease that its leader has in a new
// epoch. Until is by this store's clock.
func (s *Service) parentLease(ctx context.Context, v leadership.Via) (rule.ParentLease, error) {
	if v.Peer == "" {
		snap, err := s.look(ctx, v.Election)
		if err == nil && !snap.Record.GoesOnFrom(v.Token) {
			err = rule.Check(snap, v.Token)
		}
		if err != nil {
			return rule.ParentLease{}, err
		}
		return snap.AsParent(), nil
	}
	if s.peers == nil {
		return rule.ParentLease{}, leadership.Invalid("via.peer", fmt.Errorf("this service has no peer %s; its operator names peers", form.Shown(v.Peer)))
	}
	snap, err := s.store.Get(ctx, "now") // before the peer is asked, so that its lease does not end before Until
	if err != nil {
		return rule.ParentLease{}, err
	}
	l, err := s.peers.Check(ctx, v.Peer, leadership.TokenCheck{Election: v.Election, Token: v.Token})
	if err != nil {
		return rule.ParentLease{}, unasked(ctx, v, err)
	}
	left := l.ExpiresIn - l.ExpiresIn/leadership.Drift
	until := snap.Now.Add(left - snap.Guard).UTC().Truncate(form.Precision)
	return rule.ParentLease{Parent: leadership.Parent{Peer: v.Peer, Election: v.Election, Token: v.Token, Until: until}, LeaderID: l.LeaderID, ByCandidate: !l.Configured, Least: rule.LeastOf(l.LeaseDuration)}, nil
}

// unasked returns the error of a call to a peer. If the peer did not answer, that is an error of
// this candidate, not of the store: candidates that name no peer, or another, must not wait for it.
func unasked(ctx context.Context, v leadership.Via, err error) error {
	if ctx.Err() != nil || errors.Is(err, leadership.TokenStale) || errors.Is(err, leadership.NotFound) || errors.Is(err, leadership.InvalidArgument) {
		return err
	}
	why := fmt.Sprintf("it is not known whether election %q is led there with fencing token %d; try again", v.Election, v.Token)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok {
		why = refusal.Detail
	}
	return fmt.Errorf("ask a peer: %v: %w", err, &leadership.Error{
		Code: leadership.NotEligible, RetryAfter: time.Second, Detail: fmt.Sprintf("peer %s cannot be asked now: %s", form.Shown(v.Peer), why),
	})
}

// parent reads the present lease of the parent election e. LeaderID is empty if there is none.
func (s *Service) parent(ctx context.Context, e leadership.Election) (rule.ParentLease, error) {
	snap, err := s.store.Get(ctx, e)
	if err != nil {
		return rule.ParentLease{}, err
	}
	snap.Record.Election = e
	return snap.AsParent(), nil
}

// confirm reads once more the parent of a lease that was just granted, because it may have ended
// before the grant was committed. In that case it gives the grant back, unless a copy of the call
// was answered meanwhile, and refuses the candidate.
func (s *Service) confirm(ctx context.Context, snap rule.Snapshot) error {
	at := snap.Record.Standing.Parent
	if at.Token == 0 {
		return nil
	}
	r := snap.Record
	p, err := s.parentLease(ctx, leadership.Via{Peer: at.Peer, Election: at.Election, Token: at.Token})
	ended := over(p, err)
	if err == nil && !ended {
		return nil
	}
	back, failed := s.giveBack(ctx, leadership.LeaseRequest{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}, r.HeartbeatAt)
	switch {
	case !ended:
		return err
	case failed != nil: // the lease runs out by itself; its leader was never told of it
		back = snap
	}
	if r.Policy.Delegation.Parent != "" {
		return back.RefuseParent(rule.ParentLease{})
	}
	return back.Refuse(leadership.NotEligible, "the lease of election %q with fencing token %d has ended, so no lease can stand on it", at.Election, at.Token)
}

// follow moves the limit of a just renewed lease that stands on another one to the parent's end. If
// the parent has ended, the lease keeps its present end for good. If the parent cannot be read, the
// limit stays. It returns LeaseLost for a leader that has yielded.
func (s *Service) follow(ctx context.Context, snap rule.Snapshot, c rule.Renewal) (rule.Snapshot, error) {
	r := snap.Record
	if r.Yielded() {
		return rule.Snapshot{}, snap.RefuseLost(c)
	}
	at := r.Standing.Parent
	if at.Token == 0 {
		return snap, nil
	}
	parent, err := s.parentLease(ctx, leadership.Via{Peer: at.Peer, Election: at.Election, Token: at.Token})
	moves := err == nil && parent.Until.After(at.Until)
	if over(parent, err) {
		parent, moves = rule.ParentLease{Parent: at}, r.LeaseEnd().Before(at.Until)
	}
	if !moves {
		if !snap.Now.Before(at.Until) { // a peer's lease that has ended while the store was down: see TermMoved
			return rule.Snapshot{}, snap.RefuseLost(c)
		}
		return snap, nil //nolint:nilerr // the lease was renewed, up to its present limit
	}
	c.Parent, c.Report, c.Ticket = parent, "", snap.Ticket
	moved, err := s.update(ctx, c.Election, rule.Expect{Held: &c}, func(snap rule.Snapshot) (rule.Change, error) { return rule.Renew(snap, c) })
	switch {
	case errors.Is(err, leadership.LeaseLost):
		return rule.Snapshot{}, err
	case err != nil:
		return snap, nil //nolint:nilerr // as above
	}
	return moved, nil
}
