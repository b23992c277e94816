package checker_test

import (
	"testing"

	"regent/leadership"
	"regent/test/checker"
)

func TestWrongDecisionsAreFound(t *testing.T) {
	t.Parallel()
	at := 0 * s
	call := func(id leadership.ProposalID, token leadership.Token, verdict leadership.ProposalVerdict, by leadership.Token) checker.ProposalCall {
		at += s
		return checker.ProposalCall{Who: "ann", Election: "planner", ID: id, Token: token, Verdict: verdict, By: by, Asked: at, Answered: at + s/2}
	}
	const yes, no = leadership.ProposalAccepted, leadership.ProposalRejected
	good := []checker.ProposalCall{
		call("p", 0, "", 0),
		call("p", 1, yes, 1),
		call("p", 1, yes, 1),
		call("q", 0, "", 0),
		call("q", 2, no, 2),
		call("p", 2, yes, 1), // the same verdict of a later leader
		call("p", 0, yes, 1),
		call("r", 1, yes, 1), // not answered
	}
	good[7].Answered = checker.Forever
	for name, c := range map[string]struct {
		change func(all []checker.ProposalCall)
		want   checker.Kind
	}{
		"nothing":                   {func([]checker.ProposalCall) {}, ""},
		"another verdict":           {func(all []checker.ProposalCall) { all[6].Verdict = no }, checker.Twice},
		"another leader":            {func(all []checker.ProposalCall) { all[5].By = 2 }, checker.Twice},
		"another at the same time":  {func(all []checker.ProposalCall) { all[2].Verdict, all[2].Asked = no, all[1].Asked }, checker.Twice},
		"open once it is decided":   {func(all []checker.ProposalCall) { all[6].Verdict, all[6].By = "", 0 }, checker.Untrue},
		"a decision without one":    {func(all []checker.ProposalCall) { all[4].Verdict = "" }, checker.Untrue},
		"decided by a later leader": {func(all []checker.ProposalCall) { all[1].By = 2 }, checker.Untrue},
		"a former leader decides":   {func(all []checker.ProposalCall) { all[7].Answered = all[7].Asked + s }, checker.Unfenced},
		"a former leader, at the same time": {func(all []checker.ProposalCall) {
			all[7].Answered, all[7].Asked = all[7].Asked+s, all[4].Asked
		}, ""},
	} {
		all := append([]checker.ProposalCall{}, good...)
		c.change(all)
		report := checker.PR(checker.Recording{Proposals: all})
		got := checker.Kind("")
		if len(report.Violations) > 0 {
			got = report.Violations[0].Kind
		}
		if got != c.want {
			t.Errorf("%s: %v, want %q", name, report.Err(), c.want)
		}
	}
}
