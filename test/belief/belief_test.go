package belief_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"regent/test/belief"
)

var large = flag.Bool("large", false, "search large models too, which takes a minute and a gigabyte")

// What clocks show in a second.
const (
	slowest = 999 * time.Millisecond // by the drift that is allowed for
	slower  = 998 * time.Millisecond
	exact   = time.Second
	fast    = 1001 * time.Millisecond
	twice   = 2 * time.Second
	half    = time.Second / 2
)

func TestNobodyBelievesInALeaseThatHasEndedWhateverHappens(t *testing.T) {
	t.Parallel()
	models := []belief.Model{
		{Clocks: clocks(slowest, slowest), Lease: 3, Wait: 2},
		{Clocks: clocks(slowest, twice), Lease: 3, Wait: 2},
		{Clocks: clocks(slowest, slowest, slowest), Lease: 2},
	}
	if *large {
		models = append(models,
			belief.Model{Clocks: clocks(slowest, slowest), Lease: 6, Wait: 4},
			belief.Model{Clocks: clocks(exact, fast), Lease: 5, Wait: 3},
			belief.Model{Clocks: clocks(slowest, slowest, slowest), Lease: 2, Wait: 1},
			belief.Model{Clocks: clocks(slowest, exact, twice), Lease: 2})
	}
	for _, m := range models {
		r := m.Search()
		if r.Broken != "" {
			t.Errorf("%s does not hold:\n%s", r.Broken, strings.Join(r.Trace, "\n"))
		}
		if r.Believing == 0 {
			t.Error("nobody ever believes anything")
		}
		t.Logf("clocks of %v, a lease of %d s, a line of %d s: all %d states, %d steps between them, the farthest %d away; somebody believes in %d",
			m.Clocks, m.Lease, m.Wait, r.States, r.Steps, r.Depth, r.Believing)
	}
}

func TestEachBugIsFoundWithAShortestWayToIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bug    belief.Bug
		breaks []belief.Property
		steps  int // to the first
	}{
		{belief.FromReply, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.DriftIgnored, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.WaitedTwice, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 10},
		{belief.UnknownExtends, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 7},
		{belief.LateReplyCounts, []belief.Property{belief.NoSecondYes}, 8},
		{belief.ReleaseFirst, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.KeyAgain, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 9},
	} {
		for i, p := range c.breaks {
			m := belief.Model{Clocks: clocks(slowest, slowest), Lease: 2, Wait: 1, Bug: c.bug, Only: p}
			r := m.Search()
			if r.Broken != p {
				t.Errorf("where %s, nothing is found against: %s", c.bug, p)
			}
			t.Logf("where %s, it does not hold that %s, found after %d states:\n%s", c.bug, p, r.States, strings.Join(r.Trace, "\n"))
			if i == 0 && len(r.Trace) != c.steps {
				t.Errorf("the way to it has %d steps, and there is one of %d", len(r.Trace), c.steps)
			}
		}
	}
}

func TestAClockSlowerThanTheDriftMayMakeTwoLeadersAndAFasterOneNeverDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clock time.Duration
		safe  bool
	}{{half, false}, {900 * time.Millisecond, false}, {slower, false}, {slowest, true}, {exact, true}, {fast, true}, {twice, true}} {
		m := belief.Model{Clocks: clocks(c.clock, exact), Lease: 2, Only: belief.NeverTwo}
		if r := m.Search(); (r.Broken == "") != c.safe {
			t.Errorf("a clock that shows %v in a second: safe is %v, want %v\n%s", c.clock, r.Broken == "", c.safe, strings.Join(r.Trace, "\n"))
		}
	}
}

// The time in line is the server's word, by its own clock, which may be as fast as the leader's is slow.
func TestTheServersClockMayBeAsWrongAsTheLeadersWhereTheLeaderStoodInLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, leader time.Duration
		safe           bool
	}{{exact, slowest, true}, {slowest, slowest, true}, {fast, exact, true}, {fast, slowest, true}, {1010 * time.Millisecond, slowest, false}} {
		m := belief.Model{Clocks: clocks(c.leader, exact), Lease: 2, Wait: 1, Line: c.server, Only: belief.NoneAfterEnd}
		if r := m.Search(); (r.Broken == "") != c.safe {
			t.Errorf("where the server's clock shows %v in a second, and a leader's %v: safe is %v, want %v\n%s",
				c.server, c.leader, r.Broken == "", c.safe, strings.Join(r.Trace, "\n"))
		}
	}
}

func clocks(shown ...time.Duration) []time.Duration { return shown }
