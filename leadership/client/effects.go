package client

import (
	"context"
	"crypto/rand"

	"regent/leadership"
	"regent/leadership/wire"
)

// InDoubt returns the effects that earlier leaders had begun and not finished when this lease was
// granted, if Candidate.Inherit is set.
func (l *Lease) InDoubt() []leadership.Effect { return l.inDoubt }

// BeginEffect notes that the leader is about to cause an effect, and returns the effect's state:
// see service.Ledger. The leader may cause it only if that is leadership.EffectNew, and must call
// FinishEffect right after. Each call is another attempt: a second one, even by another process
// with the same lease, gets EffectInDoubt. It blocks until the note is durable, and retries as
// Checkpoint does.
//
// Errors: those of Checkpoint, also if the lease is over when the answer comes, in which case the
// next leader finds the effect in doubt; leadership.LimitExceeded.
func (l *Lease) BeginEffect(ctx context.Context, id leadership.EffectID) (leadership.Effect, error) {
	attempt := rand.Text()
	e, err := persist(ctx, l, func(ctx context.Context, r leadership.LeaseRequest) (leadership.Effect, error) {
		return l.client.BeginEffect(ctx, leadership.EffectRequest{LeaseRequest: r, ID: id, Attempt: attempt})
	})
	if cause, _ := l.ending(); err == nil && cause != nil { // the timer that ends the call may be late
		return leadership.Effect{}, cause
	}
	return e, err
}

// FinishEffect notes that an effect was caused, so that no leader causes it again: result is
// anything that encoding/json can write, at most leadership.MaxResultBytes of it; nil for none.
//
// Errors: those of Checkpoint; leadership.NotFound, if the effect was not begun; InvalidArgument,
// if it was finished with another result.
func (l *Lease) FinishEffect(ctx context.Context, id leadership.EffectID, result any) error {
	f := leadership.FinishRequest{EffectRequest: leadership.EffectRequest{ID: id}}
	if result != nil {
		var err error
		if f.Result, err = encoded("result", result); err != nil {
			return err
		}
	}
	_, err := persist(ctx, l, func(ctx context.Context, r leadership.LeaseRequest) (leadership.Effect, error) {
		f.LeaseRequest = r
		return l.client.FinishEffect(ctx, f)
	})
	return err
}

// BeginEffect notes that the leader is about to cause an effect; see service.Ledger.
func (c *Client) BeginEffect(ctx context.Context, r leadership.EffectRequest) (leadership.Effect, error) {
	return c.effect(ctx, r, post("begin effect", wire.VerbBeginEffect, wire.NewBeginRequest(r)))
}

// FinishEffect notes that an effect was caused; see service.Ledger.
func (c *Client) FinishEffect(ctx context.Context, r leadership.FinishRequest) (leadership.Effect, error) {
	return c.effect(ctx, r.EffectRequest, post("finish effect", wire.VerbFinishEffect, wire.NewFinishRequest(r)))
}

func (c *Client) effect(ctx context.Context, r leadership.EffectRequest, k call) (leadership.Effect, error) {
	return ask(ctx, c, r.Election, k, func(answer leadership.Effect) bool { return answer.Election == r.Election && answer.ID == r.ID })
}

// Effects reads the effects of an election.
func (c *Client) Effects(ctx context.Context, e leadership.Election) (leadership.Effects, error) {
	return ask(ctx, c, e, look("effects", wire.EffectsPath), func(answer leadership.Effects) bool { return answer.Election == e })
}
