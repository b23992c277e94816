package belief_test

import (
	"strings"
	"testing"
	"time"

	"regent/test/belief"
	"regent/test/machine"
)

func TestTheBestBidderLeadsInEveryStateOfABallot(t *testing.T) {
	machine.LongOnly(t, "it searches for a minute")
	t.Parallel()
	preempted := 0
	for _, m := range belief.QuickBallots() {
		began := time.Now()
		r, grants, challenges := m.Search()
		if r.Broken != "" {
			t.Errorf("%s: %s does not hold:\n%s", m.Name, r.Broken, strings.Join(r.Trace, "\n"))
		}
		if grants == 0 || r.States < 100 {
			t.Errorf("%s: %d states are few, with %d grants", m.Name, r.States, grants)
		}
		preempted += challenges
		t.Logf("%s: all %d states, %d steps between them, %d grants, %d challenges; %v", m.Name, r.States, r.Steps, grants, challenges, time.Since(began).Round(time.Millisecond))
	}
	if preempted == 0 {
		t.Error("no leader is preempted")
	}
}
