package belief_test

import (
	"strings"
	"testing"

	"regent/test/belief"
	"regent/test/machine"
)

func TestHandOverMakesNoSecondLeader(t *testing.T) {
	machine.LongOnly(t, "it searches for seconds")
	t.Parallel()
	m := belief.Succession{Lease: 2, Horizon: 3}
	if *large {
		m.Horizon = 4
	}
	r := m.Search()
	if r.Broken != "" {
		t.Errorf("%s does not hold:\n%s", r.Broken, strings.Join(r.Trace, "\n"))
	}
	if r.Believing == 0 || r.States < 10_000 {
		t.Errorf("of %d states, a party believes that it leads in %d", r.States, r.Believing)
	}
	t.Logf("all %d states, %d steps between them; a party believes in %d", r.States, r.Steps, r.Believing)
}

func TestEachBugOfAHandOverIsFoundByAShortestTrace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bug    belief.Bug
		breaks []belief.Property
		steps  int // to the first
	}{
		{belief.GrantedEarly, []belief.Property{belief.YieldedFirst, belief.NeverTwo}, 7},
		{belief.GoesOn, []belief.Property{belief.StopsAtYield, belief.NeverTwo}, 9},
		{belief.ReadyStolen, []belief.Property{belief.NotStolen}, 11},
		{belief.TakenByName, []belief.Property{belief.NotStolen}, 10},
	} {
		for i, p := range c.breaks {
			r := belief.Succession{Lease: 2, Horizon: 3, Bug: c.bug, Only: p}.Search()
			if r.Broken != p {
				t.Errorf("where %s, no violation is found of: %s", c.bug, p)
			}
			t.Logf("where %s, it does not hold that %s, found after %d states:\n%s", c.bug, p, r.States, strings.Join(r.Trace, "\n"))
			if i == 0 && len(r.Trace) != c.steps {
				t.Errorf("where %s, the trace has %d steps, want %d", c.bug, len(r.Trace), c.steps)
			}
		}
	}
}

func TestNoChildOutlivesItsParent(t *testing.T) {
	machine.LongOnly(t, "it searches for seconds")
	t.Parallel()
	r := belief.Parents{Lease: 2, Horizon: 4}.Search()
	if r.Broken != "" {
		t.Errorf("%s does not hold:\n%s", r.Broken, strings.Join(r.Trace, "\n"))
	}
	if r.Believing == 0 || r.States < 1000 {
		t.Errorf("of %d states, a child is held in %d", r.States, r.Believing)
	}
	t.Logf("all %d states, %d steps between them; a child is held in %d", r.States, r.Steps, r.Believing)
	for bug, steps := range map[belief.Bug]int{belief.EndOfParentIgnored: 4, belief.AnotherTermCounts: 8} {
		r := belief.Parents{Lease: 2, Horizon: 4, Bug: bug}.Search()
		if r.Broken != belief.WithinParent || len(r.Trace) != steps {
			t.Errorf("where %s, the trace has %d steps, want %d: %q\n%s", bug, len(r.Trace), steps, r.Broken, strings.Join(r.Trace, "\n"))
		}
	}
}
