package service

import (
	"context"
	"slices"

	"regent/leadership"
	"regent/leadership/rule"
)

func effectsOf(e leadership.Election) rule.LogID {
	return rule.LogID{Election: e, Kind: rule.LogEffects}
}

// BeginEffect notes that the leader is about to cause an effect, and returns its state:
//
//   - EffectNew: the leader may cause it. A call repeated with the same attempt gets this, too.
//   - EffectDone, with the result: a leader has finished it.
//   - EffectInDoubt: an earlier leader, or another attempt, has begun it and not finished it. The
//     leader must find out whether the effect took place, and finish it.
//
// This is not exactly once: a leader that stops between the effect and FinishEffect leaves it in
// doubt. If the target of the effect takes an idempotency key, use the effect's id. The caller's
// lease is verified when it first begins or finishes an effect; from then on the log's mark guards
// the log, and no earlier leader can begin any. An effect is forgotten once MaxEffects newer ones
// are done, or if the store is restored from a backup that does not have it.
//
// Errors: TokenStale, once a later leader has begun an effect or has inherited; LeaseLost;
// LimitExceeded, with MaxOpenEffects unfinished effects; InvalidArgument.
func (l *Ledger) BeginEffect(ctx context.Context, r leadership.EffectRequest) (leadership.Effect, error) {
	return l.effect(ctx, r, func(log rule.Log, c rule.Renewal) (rule.LogChange, error) {
		return rule.BeginEffect(log, c, r.ID, r.Attempt)
	})
}

// FinishEffect notes that an effect was caused, with its result, for leaders that begin it later.
// The caller or an earlier leader must have begun it. Idempotent.
//
// Errors: NotFound, if it was not begun; InvalidArgument, if it was finished with another result;
// TokenStale; LeaseLost; PayloadTooLarge.
func (l *Ledger) FinishEffect(ctx context.Context, r leadership.FinishRequest) (leadership.Effect, error) {
	var err error
	if r.Result, err = small("result", r.Result, leadership.MaxResultBytes, "and send where it is"); err != nil {
		return leadership.Effect{}, err
	}
	return l.effect(ctx, r.EffectRequest, func(log rule.Log, c rule.Renewal) (rule.LogChange, error) {
		return rule.FinishEffect(log, c, r.ID, r.Result)
	})
}

// effect runs a rule on the effects, and returns the effect's state for the caller.
func (l *Ledger) effect(ctx context.Context, r leadership.EffectRequest, decide func(rule.Log, rule.Renewal) (rule.LogChange, error)) (leadership.Effect, error) {
	c, err := renewal(r.LeaseRequest)
	if err != nil {
		return leadership.Effect{}, err
	}
	if err := r.Validate(); err != nil {
		return leadership.Effect{}, err
	}
	log, err := l.write(ctx, effectsOf(r.Election), c, rule.OpenEffects, func(log rule.Log) (rule.LogChange, error) {
		tellWhole(ctx, log)
		return decide(log, c)
	})
	if err != nil {
		return leadership.Effect{}, err
	}
	tellWhole(ctx, log)
	all, err := log.Effects()
	if err != nil {
		return leadership.Effect{}, err
	}
	e := all.Effects[slices.IndexFunc(all.Effects, func(e leadership.Effect) bool { return e.ID == r.ID })] // the rule has put it there, or found it
	if e.State == leadership.EffectBegun {
		e.State = leadership.EffectInDoubt
		if e.Attempt == r.Attempt {
			e.State = leadership.EffectNew
		}
	}
	return e, nil
}

// Effects reads the effects of an election, strongly.
func (l *Ledger) Effects(ctx context.Context, e leadership.Election) (leadership.Effects, error) {
	return look(ctx, l, effectsOf(e), rule.Log.Effects)
}

// inDoubt raises the mark of the effects, if there are any, and returns those that earlier leaders
// have not finished.
func (l *Ledger) inDoubt(ctx context.Context, c rule.Renewal) (left []leadership.Effect, err error) {
	log, err := l.journal.Look(ctx, effectsOf(c.Election))
	if err == nil && log.Text != "" {
		log, err = l.journal.Amend(ctx, effectsOf(c.Election), func(log rule.Log) (rule.LogChange, error) { return rule.OpenEffects(log, c) })
	}
	if err != nil {
		return nil, err
	}
	all, err := log.Effects()
	for _, e := range all.Effects {
		if e.State == leadership.EffectInDoubt {
			left = append(left, e)
		}
	}
	return left, err
}
