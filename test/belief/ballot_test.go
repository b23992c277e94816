package belief_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/test/belief"
	"regent/test/machine"
)

func TestTheBestBidderLeadsInEveryStateOfABallot(t *testing.T) {
	machine.LongOnly(t, "it searches for a minute")
	t.Parallel()
	preempted := 0
	for _, m := range belief.QuickBallots() {
		began := time.Now()
		r := m.Search()
		if r.Broken != "" {
			t.Errorf("%s: %s does not hold:\n%s", m.Name, r.Broken, strings.Join(r.Trace, "\n"))
		}
		if r.Grants == 0 || r.States < 100 {
			t.Errorf("%s: %d states are few, with %d grants", m.Name, r.States, r.Grants)
		}
		preempted += r.Preempted
		t.Logf("%s: all %d states, %d steps between them, %d grants, %d challenges; %v", m.Name, r.States, r.Steps, r.Grants, r.Preempted, time.Since(began).Round(time.Millisecond))
	}
	if preempted == 0 {
		t.Error("no leader is preempted")
	}
}

func TestEachBugOfABallotIsFoundByAShortestTrace(t *testing.T) {
	t.Parallel()
	model := func(name string) belief.Ballot {
		all := belief.QuickBallots()
		return all[slices.IndexFunc(all, func(m belief.Ballot) bool { return m.Name == name })]
	}
	equal := model("preemption")
	equal.Candidates = []belief.Bidder{{Instance: 0, Candidacy: leadership.Candidacy{Priority: 1}}, {Instance: 1, Candidacy: leadership.Candidacy{Priority: 1}}}
	equal.Policy.MinTerm = 0
	for _, c := range []struct {
		bug    belief.BallotBug
		in     belief.Ballot
		breaks belief.Property
		steps  int
	}{
		{belief.BidsStay, model("two bid"), belief.InTurn, 7},
		{belief.VoidCounts, model("two bid"), belief.InTurn, 9},
		{belief.WindowIgnored, model("two bid"), belief.InTurn, 2},
		{belief.BestIsGranted, model("two bid"), belief.NoneGone, 6},
		{belief.WitnessIsGranted, model("a quorum with a witness"), belief.NoWitness, 5},
		{belief.SumOfPresence, model("a quorum with a witness"), belief.QuorumHeard, 4},
		{belief.EqualPreempts, equal, belief.BetterPreempts, 6},
		{belief.TermUnsafe, model("preemption"), belief.BetterPreempts, 6},
		{belief.ChallengeCuts, model("preemption"), belief.PromiseKept, 8},
		{belief.WithdrawHalf, model("preemption"), belief.ChallengeGoes, 10},
	} {
		m := c.in
		m.Bug = c.bug
		r := m.Search()
		if r.Broken != c.breaks {
			t.Errorf("where %s, this is found broken: %q, want %q\n%s", c.bug, r.Broken, c.breaks, strings.Join(r.Trace, "\n"))
		}
		if len(r.Trace) != c.steps {
			t.Errorf("where %s, the trace has %d steps, want %d\n%s", c.bug, len(r.Trace), c.steps, strings.Join(r.Trace, "\n"))
		}
	}
}
