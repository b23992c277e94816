package leadership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Configure sets an election's configuration; see the rule of that name.
func (s *Service) Configure(ctx context.Context, r ConfigureRequest) (Lease, error) {
	if err := r.Validate(); err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Configure(snap, r.ConfigureCommand) })
}

// Delete deletes an election; see the rule of that name.
func (s *Service) Delete(ctx context.Context, r DeleteRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	if err := validateCondition(r.IfRevision); err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Delete(snap, r.DeleteCommand) })
}

// Unlock ends the wait for an election before its time; see the rule of that name. Two candidates
// may then believe that they lead.
func (s *Service) Unlock(ctx context.Context, r UnlockRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	var err error
	if r.Actor, err = actor(ctx, r.Actor); err != nil {
		return Lease{}, err
	}
	if field, err := r.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	return s.lease(ctx, r.Election, func(snap Snapshot) (Change, error) { return Unlock(snap, r.UnlockCommand) })
}

// Order carries out an operator's order; see the rule of that name. Where the caller is verified,
// that principal is the actor. The lease has the overrides.
func (s *Service) Order(ctx context.Context, r OrderRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	var err error
	if r.Actor, err = actor(ctx, r.Actor); err != nil {
		return Lease{}, err
	}
	if field, err := r.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	if r.Principal != "" && Actor(ctx) == "" {
		return Lease{}, invalid("principal", errors.New("this server does not verify its callers (serve --auth), so it knows no principals; ban a candidate by its id"))
	}
	if err := validateCondition(r.IfRevision); err != nil {
		return Lease{}, err
	}
	snap, err := s.update(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Order(snap, r.OrderCommand) })
	if err != nil {
		return Lease{}, err
	}
	l := snap.Lease()
	l.Overrides = snap.Orders()
	return l, nil
}

// actor is the principal that makes a call: the verified one, or the one named if none is. A name
// that is too long for an order is cut, and ends with what tells it apart.
func actor(ctx context.Context, named string) (string, error) {
	verified := Actor(ctx)
	if verified != "" && named != "" {
		return "", invalid("actor", fmt.Errorf("the actor is the verified caller, %q; leave actor out", verified))
	}
	if len(verified) > MaxActorBytes {
		digest := digestOf(verified)
		verified = strings.ToValidUTF8(verified[:MaxActorBytes-len(digest)-1], "") + "#" + digest
	}
	return cmp.Or(verified, named), nil
}

// Judge counts a verifier's verdict on the present term; see the rule of that name.
func (s *Service) Judge(ctx context.Context, r JudgeRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	var err error
	if r.Actor, err = actor(ctx, r.Actor); err != nil {
		return Lease{}, err
	}
	if field, err := r.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	if err := validateCondition(r.IfRevision); err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Judge(snap, r.JudgeCommand) })
}
