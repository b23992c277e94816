package instance

import (
	"context"
	"fmt"

	"regent/leadership"
)

// HandOver names the successor of the caller's term; see leadership.Service. Without r.To it is the
// best in this instance's line that can lead and has a key of its own or, if none waits here, the
// first at another instance that tells of its line.
//
// If the successor waits in this instance's line, the incarnation that waits is the successor, and
// no other of its candidate id. If it does not, it is the one that first says it is ready.
//
// Error: NotEligible, if no candidate waits; those of leadership.Service.
func (i *Instance) HandOver(ctx context.Context, r leadership.HandOverRequest) (leadership.Lease, error) {
	if r.To == "" {
		var known bool
		r.Chosen = true
		if r.To, known = i.next(ctx, r.Election, r.CandidateID); !known {
			return leadership.Lease{}, &leadership.Error{Code: leadership.NotEligible, Detail: fmt.Sprintf(
				"no other candidate waits for election %q, as far as this instance knows (it knows of those at other instances only if all run with --members); name the successor with to, or release the lease", r.Election)}
		}
	}
	r.ToKey = i.queue.KeyOf(r.Election, r.To)
	asked := i.now()
	l, err := i.service.HandOver(ctx, r)
	return i.learn(l, err, asked)
}

// next is the best candidate that waits, other than the leader: the first in line here or, if none
// waits here, at another instance.
func (i *Instance) next(ctx context.Context, e leadership.Election, leader leadership.CandidateID) (best leadership.CandidateID, known bool) {
	if best = i.queue.Next(e, leader); best != "" {
		return best, true
	}
	m, err := i.Members(ctx, e)
	if err != nil {
		return "", false
	}
	here := make(map[leadership.CandidateID]bool)
	for _, s := range i.queue.Standing(e) {
		here[s.CandidateID] = true
	}
	place := 0
	for _, one := range m.Members {
		waits := one.Role == leadership.RoleCandidate && one.Position > 0 && one.ID != leader && !here[one.ID]
		if waits && (place == 0 || one.Position < place) {
			best, place = one.ID, one.Position
		}
	}
	return best, best != ""
}

// SayReady says that the caller has loaded what it needs to lead; see leadership.Service.
func (i *Instance) SayReady(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.SayReady(ctx, r)
	return i.hint(l, err, asked)
}

// Yield says that the caller has stopped; see leadership.Service.
func (i *Instance) Yield(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Yield(ctx, r)
	return i.learn(l, err, asked)
}

// Delegate makes an election for a part of the caller's task; see leadership.Service.
func (i *Instance) Delegate(ctx context.Context, r leadership.DelegateRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Delegate(ctx, r) // the lease is the child's
	return i.hint(l, err, asked)
}

// Tree reads an election and what was delegated below it; see leadership.Service.
func (i *Instance) Tree(ctx context.Context, e leadership.Election) (leadership.Tree, error) {
	return i.service.Tree(ctx, e)
}
