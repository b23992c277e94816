package instance

import (
	"context"
	"fmt"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// choose sets the successor of a hand-over that names none.
func (i *Instance) choose(ctx context.Context, c *leadership.HandOver) error {
	if c.To != "" {
		return nil
	}
	var known bool
	c.Chosen = true
	if c.To, known = i.next(ctx, c.Election, c.CandidateID); !known {
		return &leadership.Error{Code: leadership.NotEligible, Detail: fmt.Sprintf(
			"no other candidate waits for election %q, as far as this instance knows (it knows of those at other instances only if all run with --members); name the successor with to, or release the lease", c.Election)}
	}
	return nil
}

// next returns the best waiting candidate other than the leader: the first in line here or, if none
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

// Delegate makes an election for a part of the caller's task; see service.Service.
func (i *Instance) Delegate(ctx context.Context, r leadership.DelegateRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Delegate(ctx, r) // the lease is the child's
	i.learn(&l, err, view.Read, asked)
	return l, err
}

// Tree reads an election and the elections delegated below it; see service.Service.
func (i *Instance) Tree(ctx context.Context, e leadership.Election) (leadership.Tree, error) {
	return i.service.Tree(ctx, e)
}
