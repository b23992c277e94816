package checker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
)

// EffectCall is a leader's begin or finish of an effect, with all its repetitions.
type EffectCall struct {
	Who      string                 `json:"who"`
	Election leadership.Election    `json:"election"`
	ID       leadership.EffectID    `json:"id"`
	Token    leadership.Token       `json:"token"`
	Finish   bool                   `json:"finish,omitempty"`
	Result   json.RawMessage        `json:"result,omitempty"` // asked for by a finish, answered to a begin
	State    leadership.EffectState `json:"state,omitempty"`  // as it was answered; "" if it was refused, or not answered
	By       leadership.Token       `json:"by,omitempty"`     // as it was answered
	Asked    time.Duration          `json:"asked"`
	Answered time.Duration          `json:"answered"` // Forever if it was not
}

func (c EffectCall) String() string {
	verb := "begin"
	if c.Finish {
		verb = "finish"
	}
	return fmt.Sprintf("%s %s %s in %s under token %d, from %v to %v: %s by token %d %s", c.Who, verb, c.ID, c.Election, c.Token, c.Asked, c.Answered, c.State, c.By, c.Result)
}

// EF checks effects: of one effect only one call is told that it is new; once one was told that
// it is done, all that ask are, with the same result; and once a later leader was answered, no
// earlier one is.
func EF(r Recording) (report Report) {
	calls := slices.Clone(r.Effects)
	slices.SortStableFunc(calls, func(x, y EffectCall) int { return cmp.Compare(x.Asked, y.Asked) })
	for i, c := range calls {
		report.Checked++
		if c.State == "" {
			continue
		}
		for _, before := range calls[:i] { // asked before
			if before.State == "" || before.Election != c.Election {
				continue
			}
			first := before.Answered <= c.Asked
			if first && before.Token > c.Token {
				report.add(Unfenced, "%v; %v", before, c)
			}
			if before.ID != c.ID {
				continue
			}
			done, doneNow := before.State == leadership.EffectDone, c.State == leadership.EffectDone
			switch {
			case c.State == leadership.EffectNew && (first || before.State == leadership.EffectNew), first && done && !doneNow:
				report.add(Twice, "%v; %v", before, c)
			case done && doneNow && (before.By != c.By || !bytes.Equal(before.Result, c.Result)):
				report.add(Untrue, "%v; %v", before, c)
			}
		}
	}
	return report
}
