package mcp

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// ordered is the common input of all orders. It names the revision that the order was decided on,
// so that a late copy is refused.
type ordered struct {
	Election leadership.Election `json:"election"`
	Revision leadership.Revision `json:"revision"`
	Reason   string              `json:"reason"`
}

// order gives an operator's order, in the name of the caller.
func (d *desk) order(ctx context.Context, in ordered, c leadership.Order) (election, error) {
	if in.Revision < 1 { // the client would use the present revision
		return election{}, invalid("revision", "revision is that of the election as you have seen it, 1 or more; who_leads has it")
	}
	c.Election, c.IfRevision, c.Reason, c.Actor = in.Election, in.Revision, in.Reason, d.actor(ctx)
	l, err := d.calls.Do(ctx, c)
	return newElection(l, 0), err
}

type assignInput struct {
	ordered
	CandidateID leadership.CandidateID `json:"candidateId"`
	For         wire.Duration          `json:"for"`
}

func (d *desk) assign(ctx context.Context, in assignInput) (election, error) {
	return d.order(ctx, in.ordered, leadership.Order{Kind: leadership.OrderAssign, CandidateID: in.CandidateID, For: time.Duration(in.For)})
}

type evictInput struct {
	ordered
	FencingToken leadership.Token `json:"fencingToken"`
	Ban          *wire.Duration   `json:"ban,omitzero"`
}

// evict also names the term, so that it can never evict the next leader.
func (d *desk) evict(ctx context.Context, in evictInput) (election, error) {
	c := leadership.Order{Kind: leadership.OrderEvict, Token: in.FencingToken}
	if in.FencingToken < 1 {
		return election{}, invalid("fencingToken", "fencingToken is that of the term to end, 1 or more; who_leads has it")
	}
	if in.Ban != nil {
		if c.Ban = time.Duration(*in.Ban); c.Ban <= 0 {
			return election{}, invalid("ban", "ban is %v; leave it out if the candidate may lead again", leadership.OrderBounds)
		}
	}
	return d.order(ctx, in.ordered, c)
}

type pauseInput struct {
	ordered
	For  wire.Duration        `json:"for"`
	Mode leadership.PauseMode `json:"mode,omitzero"`
}

func (d *desk) pause(ctx context.Context, in pauseInput) (election, error) {
	return d.order(ctx, in.ordered, leadership.Order{Kind: leadership.OrderPause, For: time.Duration(in.For), Mode: in.Mode})
}

func (d *desk) resume(ctx context.Context, in ordered) (election, error) {
	return d.order(ctx, in, leadership.Order{Kind: leadership.OrderResume})
}

type approveInput struct {
	ordered
	FencingToken leadership.Token `json:"fencingToken"`
	For          *wire.Duration   `json:"for,omitzero"`
	NewEpoch     bool             `json:"newEpoch,omitzero"`
}

func (d *desk) approve(ctx context.Context, in approveInput) (election, error) {
	c := leadership.Order{Kind: leadership.OrderApprove, Token: in.FencingToken, NewEpoch: in.NewEpoch}
	if in.For != nil {
		if c.For = time.Duration(*in.For); c.For <= 0 {
			return election{}, invalid("for", "for is %v; leave it out for what the policy says", leadership.OrderBounds)
		}
	}
	return d.order(ctx, in.ordered, c)
}
