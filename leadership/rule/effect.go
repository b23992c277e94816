package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// readEffects reads the effects of a log, with their times, and the mark that guards them. In the
// log no effect is in doubt: that state follows from the mark (see Log.Effects).
func (l Log) readEffects() (m Mark, all []leadership.Effect, err error) {
	err = errors.Join(l.readHead(&m), l.read(l.Body, &all))
	for i := range all {
		if all[i].At.IsZero() { // it was changed when this head was written
			all[i].At = l.WrittenAt.UTC()
		}
	}
	return m, all, err
}

// changeEffects reads the effects for a change by the mark's leader, and returns the place of the
// effect with that id, or -1.
func (l Log) changeEffects(c Renewal, id leadership.EffectID) (m Mark, all []leadership.Effect, at int, err error) {
	if m, all, err = l.readEffects(); err == nil {
		err = m.admit(l.ID, c)
	}
	return m, all, slices.IndexFunc(all, func(e leadership.Effect) bool { return e.ID == id }), err
}

// OpenEffects raises the mark of the effects: no earlier leader can begin or finish one any more.
func OpenEffects(l Log, c Renewal) (LogChange, error) {
	m, all, err := l.readEffects()
	if err != nil {
		return LogChange{}, err
	}
	raised, _, err := m.raise(l.ID, c)
	if !raised {
		return LogChange{}, err
	}
	return writtenEffects(m, all)
}

// writtenEffects returns the change of a head. If there are more effects than may be kept, it drops
// the oldest that are done. Effects that are not done are never dropped.
func writtenEffects(m Mark, all []leadership.Effect) (LogChange, error) {
	for len(all) > 0 {
		text, err := form.JSON(all)
		if err != nil {
			return LogChange{}, leadership.Invalid("result", err)
		}
		if len(all) <= leadership.MaxEffects && len(text) <= leadership.MaxEffectsBytes {
			return LogChange{Text: HeadText(m), Body: string(text)}, nil
		}
		oldest := slices.IndexFunc(all, func(e leadership.Effect) bool { return e.State == leadership.EffectDone })
		all = slices.Delete(all, oldest, oldest+1) // there is one: MaxOpenEffects alone would fit
	}
	return LogChange{Text: HeadText(m)}, nil
}

// BeginEffect notes that the leader is about to cause an effect, unless it is done or begun.
//
// Errors: TokenStale; LeaseLost; LimitExceeded; ErrUnopened.
func BeginEffect(l Log, c Renewal, id leadership.EffectID, attempt string) (LogChange, error) {
	m, all, at, err := l.changeEffects(c, id)
	if err != nil || at >= 0 {
		return LogChange{}, err
	}
	var begun []string
	for _, e := range all {
		if e.State != leadership.EffectDone {
			begun = append(begun, string(e.ID))
		}
	}
	if len(begun) >= leadership.MaxOpenEffects {
		return LogChange{}, &leadership.Error{Code: leadership.LimitExceeded, Detail: fmt.Sprintf(
			"%d effects of election %q are begun and not finished, the most that may be; finish one first, such as %s", len(begun), l.ID.Election, strings.Join(begun[:3], ", "))}
	}
	return writtenEffects(m, append(all, leadership.Effect{ID: id, State: leadership.EffectBegun, Token: c.Token, LeaderID: c.CandidateID, Attempt: attempt}))
}

// FinishEffect notes that an effect was caused, with its result. It may have been begun by an
// earlier leader.
//
// Errors: TokenStale; LeaseLost; NotFound; InvalidArgument, if it was finished with another result;
// ErrUnopened.
func FinishEffect(l Log, c Renewal, id leadership.EffectID, result json.RawMessage) (LogChange, error) {
	m, all, at, err := l.changeEffects(c, id)
	switch {
	case err != nil:
		return LogChange{}, err
	case at < 0:
		return LogChange{}, &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf(
			"no effect %q of election %q is known; begin it before you cause it, and finish it then", id, l.ID.Election)}
	}
	if known := all[at]; known.State == leadership.EffectDone {
		if string(known.Result) != string(result) {
			err = leadership.Invalid("result", fmt.Errorf(
				"effect %q of election %q is done with another result, under fencing token %d, which stands; begin answers it", id, l.ID.Election, known.Token))
		}
		return LogChange{}, err // nil: the reply was lost
	}
	done := leadership.Effect{ID: id, State: leadership.EffectDone, Token: c.Token, LeaderID: c.CandidateID, Result: result}
	return writtenEffects(m, append(slices.Delete(all, at, at+1), done))
}

// Effects returns the effects as readers see them.
func (l Log) Effects() (leadership.Effects, error) {
	m, all, err := l.readEffects()
	for i := range all {
		e := &all[i]
		e.Election = l.ID.Election
		if e.State == leadership.EffectBegun && e.Token != m.Token {
			e.State = leadership.EffectInDoubt
		}
	}
	return leadership.Effects{Election: l.ID.Election, Token: m.Token, Effects: all}, err
}
