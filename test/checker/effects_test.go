package checker_test

import (
	"encoding/json"
	"testing"

	"regent/leadership"
	"regent/test/checker"
)

func TestWrongEffectsAreFound(t *testing.T) {
	t.Parallel()
	at := 0 * s
	call := func(token leadership.Token, finish bool, state leadership.EffectState, by leadership.Token, result string) checker.EffectCall {
		at += s
		return checker.EffectCall{Who: "ann", Election: "planner", ID: "mail", Token: token, Finish: finish, State: state, By: by, Result: json.RawMessage(result), Asked: at, Answered: at + s/2}
	}
	good := []checker.EffectCall{
		call(1, false, leadership.EffectNew, 1, ""),
		call(1, false, leadership.EffectInDoubt, 1, ""),
		call(2, false, leadership.EffectInDoubt, 1, ""),
		call(1, true, "", 0, "1"), // refused
		call(2, true, leadership.EffectDone, 2, "2"),
		call(3, false, leadership.EffectDone, 2, "2"),
	}
	for name, c := range map[string]struct {
		change func(all []checker.EffectCall)
		want   checker.Kind
	}{
		"nothing":                    {func([]checker.EffectCall) {}, ""},
		"new to two calls":           {func(all []checker.EffectCall) { all[1].State = leadership.EffectNew }, checker.Twice},
		"new to two leaders":         {func(all []checker.EffectCall) { all[2].State = leadership.EffectNew }, checker.Twice},
		"new to two leaders at once": {func(all []checker.EffectCall) { all[2].State, all[2].Asked = leadership.EffectNew, 0 }, checker.Twice},
		"new once it is done":        {func(all []checker.EffectCall) { all[5].State = leadership.EffectNew }, checker.Twice},
		"in doubt once it is done":   {func(all []checker.EffectCall) { all[5].State = leadership.EffectInDoubt }, checker.Twice},
		"done with another result":   {func(all []checker.EffectCall) { all[5].Result = json.RawMessage("1") }, checker.Untrue},
		"done by another":            {func(all []checker.EffectCall) { all[5].By = 1 }, checker.Untrue},
		"a former leader finishes":   {func(all []checker.EffectCall) { all[3].State = leadership.EffectDone }, checker.Unfenced},
		"a former leader begins":     {func(all []checker.EffectCall) { all[3].ID, all[3].State = "bill", leadership.EffectNew }, checker.Unfenced},
		"a former leader, at the same time": {func(all []checker.EffectCall) {
			all[3].ID, all[3].State, all[3].Asked = "bill", leadership.EffectNew, all[2].Asked
		}, ""},
	} {
		all := append([]checker.EffectCall{}, good...)
		c.change(all)
		report := checker.EF(checker.Recording{Effects: all})
		got := checker.Kind("")
		if len(report.Violations) > 0 {
			got = report.Violations[0].Kind
		}
		if got != c.want {
			t.Errorf("%s: %v, want %q", name, report.Err(), c.want)
		}
	}
}
