package rule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// effectsHead is the text of the head of an election's effects, which are the body.
type effectsHead struct{ Mark }

// keptEffect is an effect as the body has it.
type keptEffect struct {
	ID       leadership.EffectID    `json:"id"`
	Token    leadership.Token       `json:"token"` // of the leader that began it or, if it is done, finished it
	LeaderID leadership.CandidateID `json:"leaderId"`
	At       time.Time              `json:"at,omitzero"` // zero if this head was written with it
	Done     bool                   `json:"done,omitempty"`
	Result   json.RawMessage        `json:"result,omitempty"`
}

func (e keptEffect) of(id leadership.EffectID) bool { return e.ID == id }

// readEffects reads the effects of a log, with their times.
func (l Log) readEffects() (h effectsHead, all []keptEffect, err error) {
	if err := l.readHead(&h); err != nil || l.Body == "" {
		return h, nil, err
	}
	if err := form.Decode([]byte(l.Body), &all); err != nil {
		return h, nil, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the effects of election %q cannot be read: %v", l.ID.Election, err)}
	}
	for i := range all {
		if all[i].At.IsZero() {
			all[i].At = l.WrittenAt
		}
	}
	return h, all, nil
}

// changeEffects reads the effects for the leader of the mark.
func (l Log) changeEffects(c Renewal) (h effectsHead, all []keptEffect, err error) {
	if h, all, err = l.readEffects(); err != nil {
		return h, nil, err
	}
	open, err := h.admit(l.ID, c)
	if err == nil && !open {
		err = ErrUnopened
	}
	return h, all, err
}

// OpenEffects raises the mark of the effects: no earlier leader can begin or finish one any more.
func OpenEffects(l Log, c Renewal) (LogChange, error) {
	h, all, err := l.readEffects()
	if err != nil {
		return LogChange{}, err
	}
	raised, _, err := h.raise(l.ID, c)
	if !raised {
		return LogChange{}, err
	}
	return writtenEffects(h, all)
}

// writtenEffects is the change of a head. It leaves out the oldest effects that are done where
// there are more than may be kept. Those that are not are never forgotten.
func writtenEffects(h effectsHead, all []keptEffect) (LogChange, error) {
	for len(all) > 0 {
		text, err := form.JSON(all)
		if err != nil {
			return LogChange{}, leadership.Invalid("result", err)
		}
		if len(all) <= leadership.MaxEffects && len(text) <= leadership.MaxEffectsBytes {
			return LogChange{Text: HeadText(h), Body: string(text)}, nil
		}
		oldest := slices.IndexFunc(all, func(e keptEffect) bool { return e.Done })
		all = slices.Delete(all, oldest, oldest+1) // MaxOpenEffects have room without any that is done
	}
	return LogChange{Text: HeadText(h)}, nil
}

// BeginEffect notes that the leader is about to cause an effect, unless it is done or begun.
//
// Errors: TokenStale; LeaseLost; LimitExceeded; ErrUnopened.
func BeginEffect(l Log, c Renewal, id leadership.EffectID) (LogChange, error) {
	h, all, err := l.changeEffects(c)
	if err != nil || slices.ContainsFunc(all, func(e keptEffect) bool { return e.of(id) }) {
		return LogChange{}, err
	}
	var begun []string
	for _, e := range all {
		if !e.Done {
			begun = append(begun, string(e.ID))
		}
	}
	if len(begun) >= leadership.MaxOpenEffects {
		return LogChange{}, &leadership.Error{Code: leadership.LimitExceeded, Detail: fmt.Sprintf(
			"%d effects of election %q are begun and not finished, the most that may be; finish one first, such as %s", len(begun), l.ID.Election, strings.Join(begun[:3], ", "))}
	}
	return writtenEffects(h, append(all, keptEffect{ID: id, Token: c.Token, LeaderID: c.CandidateID}))
}

// FinishEffect notes that an effect was caused, with its result. It may have been begun by an
// earlier leader.
//
// Errors: TokenStale; LeaseLost; NotFound; InvalidArgument, if it is done with another result;
// ErrUnopened.
func FinishEffect(l Log, c Renewal, id leadership.EffectID, result json.RawMessage) (LogChange, error) {
	h, all, err := l.changeEffects(c)
	if err != nil {
		return LogChange{}, err
	}
	i := slices.IndexFunc(all, func(e keptEffect) bool { return e.of(id) })
	switch {
	case i < 0:
		return LogChange{}, &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf(
			"no effect %q of election %q is known; begin it before you cause it, and finish it then", id, l.ID.Election)}
	case all[i].Done && string(all[i].Result) == string(result): // the reply was lost
		return LogChange{}, nil
	case all[i].Done:
		return LogChange{}, leadership.Invalid("result", fmt.Errorf(
			"effect %q of election %q is done with another result, under fencing token %d, which stands; begin answers it", id, l.ID.Election, all[i].Token))
	}
	done := keptEffect{ID: id, Token: c.Token, LeaderID: c.CandidateID, Done: true, Result: result}
	return writtenEffects(h, append(slices.Delete(all, i, i+1), done))
}

// Effects are what the log has.
func (l Log) Effects() (leadership.Effects, error) {
	h, all, err := l.readEffects()
	effects := leadership.Effects{Election: l.ID.Election, Token: h.Token}
	for _, e := range all {
		state := leadership.EffectInDoubt
		switch {
		case e.Done:
			state = leadership.EffectDone
		case e.Token == h.Token:
			state = leadership.EffectBegun
		}
		effects.Effects = append(effects.Effects, leadership.Effect{Election: l.ID.Election, ID: e.ID, State: state, Token: e.Token, LeaderID: e.LeaderID, At: e.At, Result: e.Result})
	}
	return effects, err
}

// raisedEffects is RaisedLog for effects: their times are kept.
func (l Log) raisedEffects(token leadership.Token) (LogChange, error) {
	h, all, err := l.readEffects()
	if err != nil || l.Text == "" || h.Token > token || h.Mark == (Mark{Token: token}) {
		return LogChange{}, err
	}
	h.Mark = Mark{Token: token}
	return writtenEffects(h, all)
}
