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
