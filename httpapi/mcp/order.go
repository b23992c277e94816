package mcp

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// order gives an operator's order, in the name of the caller.
func (d *desk) order(ctx context.Context, e leadership.Election, c leadership.Order) (election, error) {
	c.Election, c.Actor = e, d.actor(ctx)
	l, err := d.calls.Do(ctx, c)
	if err != nil {
		return election{}, err
	}
	return newElection(l, 0), nil
}

type assignInput struct {
	Election    leadership.Election    `json:"election"`
	CandidateID leadership.CandidateID `json:"candidateId"`
	For         wire.Duration          `json:"for"`
	Reason      string                 `json:"reason"`
}

func (d *desk) assign(ctx context.Context, in assignInput) (election, error) {
	return d.order(ctx, in.Election, leadership.Order{
		Kind: leadership.OrderAssign, CandidateID: in.CandidateID, For: time.Duration(in.For), Reason: in.Reason,
	})
}

type evictInput struct {
	Election     leadership.Election `json:"election"`
	FencingToken leadership.Token    `json:"fencingToken"`
	Ban          *wire.Duration      `json:"ban,omitzero"`
	Reason       string              `json:"reason"`
}

// evict names the term, so that no repetition evicts the next leader.
func (d *desk) evict(ctx context.Context, in evictInput) (election, error) {
	c := leadership.Order{Kind: leadership.OrderEvict, Token: in.FencingToken, Reason: in.Reason}
	if in.FencingToken < 1 {
		return election{}, invalid("fencingToken", "fencingToken is that of the term to end, 1 or more; who_leads has it")
	}
	if in.Ban != nil {
		if c.Ban = time.Duration(*in.Ban); c.Ban <= 0 {
			return election{}, invalid("ban", "ban is %v; leave it out if the candidate may lead again", leadership.OrderBounds)
		}
	}
	return d.order(ctx, in.Election, c)
}

type pauseInput struct {
	Election leadership.Election  `json:"election"`
	For      wire.Duration        `json:"for"`
	Mode     leadership.PauseMode `json:"mode,omitzero"`
	Reason   string               `json:"reason"`
}

func (d *desk) pause(ctx context.Context, in pauseInput) (election, error) {
	return d.order(ctx, in.Election, leadership.Order{Kind: leadership.OrderPause, For: time.Duration(in.For), Mode: in.Mode, Reason: in.Reason})
}

type resumeInput struct {
	Election leadership.Election `json:"election"`
	Reason   string              `json:"reason"`
}

func (d *desk) resume(ctx context.Context, in resumeInput) (election, error) {
	return d.order(ctx, in.Election, leadership.Order{Kind: leadership.OrderResume, Reason: in.Reason})
}

type approveInput struct {
	Election     leadership.Election `json:"election"`
	FencingToken leadership.Token    `json:"fencingToken"`
	For          *wire.Duration      `json:"for,omitzero"`
	NewEpoch     bool                `json:"newEpoch,omitzero"`
	Reason       string              `json:"reason"`
}

func (d *desk) approve(ctx context.Context, in approveInput) (election, error) {
	c := leadership.Order{Kind: leadership.OrderApprove, Token: in.FencingToken, NewEpoch: in.NewEpoch, Reason: in.Reason}
	if in.For != nil {
		if c.For = time.Duration(*in.For); c.For <= 0 {
			return election{}, invalid("for", "for is %v; leave it out for what the policy says", leadership.OrderBounds)
		}
	}
	return d.order(ctx, in.Election, c)
}
