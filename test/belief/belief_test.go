package belief_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"regent/test/belief"
	"regent/test/machine"
)

var (
	large = flag.Bool("large", false, "also search the models of Night: some minutes and 1 GB")
	share = flag.Int("share", 1, "search one in so many of the models of Quick")
	draw  = flag.Int("draw", 0, "which of these shares")
)

// Advance of a clock in a second.
const (
	slowest = 999 * time.Millisecond // by the drift that is allowed for
	slower  = 998 * time.Millisecond
	exact   = time.Second
	fast    = 1001 * time.Millisecond
	twice   = 2 * time.Second
	half    = time.Second / 2
)

func TestNoCandidateBelievesInAnEndedLease(t *testing.T) {
	machine.LongOnly(t, "it searches for a minute")
	t.Parallel()
	visited := searched(t, machine.Draw(belief.Quick(), *share, *draw))
	if *share == 1 && visited < 1_000_000 {
		t.Errorf("%d states are few", visited)
	}
	if !*large {
		return
	}
	if visited := searched(t, belief.Night()); visited < 10_000_000 {
		t.Errorf("%d states are few for a night", visited)
	}
}

// searched returns how many states the models have, in all of which everything must hold.
func searched(t *testing.T, models []belief.Model) (states int) {
	t.Helper()
	for _, m := range models {
		began := time.Now()
		r := m.Search()
		if r.Broken != "" {
			t.Errorf("%s: %s does not hold:\n%s", m.Name, r.Broken, strings.Join(r.Trace, "\n"))
		}
		if r.Believing == 0 {
			t.Errorf("%s: no candidate ever believes that it leads", m.Name)
		}
		t.Logf("%s: a candidate believes in %d states; %v", m.Name, r.Believing, time.Since(began).Round(time.Millisecond))
		t.Logf("looked at: 1 models, %d states, %d steps", r.States, r.Steps)
		states += r.States
	}
	return states
}

func TestStatesThatDifferByPermutationAreOne(t *testing.T) {
	machine.LongOnly(t, "it searches for a minute")
	t.Parallel()
	const almost = exact + time.Nanosecond // which only makes it another clock
	everything := belief.Model{Clocks: clocks(exact, exact), Lease: 1, Delay: 1, Operator: true, Commits: true}
	areOne(t, everything, clocks(exact, almost))
	areOne(t, belief.Model{Clocks: clocks(exact, exact), Lease: 1, Delay: 1, Orders: true, Epochs: true, Trips: true}, clocks(exact, almost))
	areOne(t, belief.Model{Clocks: clocks(exact, exact, slowest), Lease: 1}, clocks(exact, almost, slowest))
	if *large {
		areOne(t, belief.Model{Clocks: clocks(exact, exact, exact), Lease: 1}, clocks(exact, almost, almost+1))
	}
}

// areOne also visits the model with clocks that differ, and compares.
func areOne(t *testing.T, m belief.Model, apart []time.Duration) {
	t.Helper()
	each := m
	each.Clocks = apart
	all, differ := belief.Orbits(&each, &m)
	if r := m.Search(); r.States != differ || differ >= all {
		t.Errorf("%d states are visited; %d are %d up to permutation", r.States, all, differ)
	}
}

func TestOnlyClocksSlowerThanTheDriftLetALeaderBelieveTooLong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clock time.Duration
		safe  bool
	}{{half, false}, {900 * time.Millisecond, false}, {slower, false}, {slowest, true}, {exact, true}, {fast, true}, {twice, true}} {
		m := belief.Model{Clocks: clocks(c.clock, exact), Lease: 2}
		if r := m.Search(); (r.Broken == "") != c.safe {
			t.Errorf("a clock that shows %v in a second: safe is %v, want %v\n%s", c.clock, r.Broken == "", c.safe, strings.Join(r.Trace, "\n"))
		}
	}
}

// The wait is measured by the server's clock, which may be as fast as the leader's is slow.
func TestServersClockMayBeWrongWhileALeaderWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, leader time.Duration
		safe           bool
	}{{exact, slowest, true}, {slowest, slowest, true}, {fast, exact, true}, {fast, slowest, true}, {1010 * time.Millisecond, slowest, false}} {
		m := belief.Model{Clocks: clocks(c.leader, exact), Lease: 2, Wait: 1, Line: c.server}
		if r := m.Search(); (r.Broken == "") != c.safe {
			t.Errorf("where the server's clock shows %v in a second, and a leader's %v: safe is %v, want %v\n%s",
				c.server, c.leader, r.Broken == "", c.safe, strings.Join(r.Trace, "\n"))
		}
	}
}

func clocks(shown ...time.Duration) []time.Duration { return shown }
