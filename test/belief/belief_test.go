package belief_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"regent/test/belief"
	"regent/test/machine"
)

var large = flag.Bool("large", false, "also search the models of Night: some minutes and 0.7 GB")

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
	visited := searched(t, belief.Quick())
	if visited < 1_000_000 {
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
		t.Logf("%s: all %d states, %d steps between them, the farthest %d away; a candidate believes in %d; %v, %d MB",
			m.Name, r.States, r.Steps, r.Depth, r.Believing, time.Since(began).Round(time.Millisecond), r.Bytes>>20)
		states += r.States
	}
	return states
}

func TestEachBugIsFoundByAShortestTrace(t *testing.T) {
	t.Parallel()
	line := belief.Model{Lease: 2, Wait: 1}
	delay := belief.Model{Lease: 2, Delay: 1}
	operator := belief.Model{Lease: 2, Operator: true}
	unlock := belief.Model{Lease: 2, Unlock: true}
	commits := belief.Model{Lease: 2, Commits: true}
	orders := belief.Model{Lease: 2, Orders: true}
	epochs := belief.Model{Lease: 2, Epochs: true}
	verdicts := belief.Model{Lease: 2, Trips: true}
	for _, c := range []struct {
		bug    belief.Bug
		in     belief.Model
		breaks []belief.Property
		steps  int // to the first
	}{
		{belief.FromReply, line, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.DriftIgnored, line, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.WaitedTwice, line, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 10},
		{belief.UnknownExtends, line, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 7},
		{belief.LateReplyCounts, line, []belief.Property{belief.NoSecondYes}, 8},
		{belief.ReleaseFirst, line, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.KeyAgain, line, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 9},

		{belief.EndCounts, line, []belief.Property{belief.EndIsEnd}, 7},
		{belief.EarlyGrant, line, []belief.Property{belief.OneLeaseATime, belief.NoneAfterEnd, belief.NeverTwo}, 4},
		{belief.DelayForgotten, delay, []belief.Property{belief.DelayKept}, 6},
		{belief.CutFrees, operator, []belief.Property{belief.OneLeaseATime, belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.RetiresHeld, operator, []belief.Property{belief.OneLeaseATime, belief.NoneAfterEnd, belief.NeverTwo}, 5},
		{belief.TokenForgotten, operator, []belief.Property{belief.TokensRise}, 2},
		{belief.UnlockUnasked, unlock, []belief.Property{belief.NoneAfterEnd, belief.NeverTwo}, 4},
		{belief.UnlockLowers, unlock, []belief.Property{belief.TokensRise}, 3},
		{belief.EvictShortens, orders, []belief.Property{belief.PromiseKept, belief.NoneAfterEnd, belief.NeverTwo}, 3},
		{belief.CapIgnored, orders, []belief.Property{belief.CapKept, belief.NoneAfterEnd, belief.NeverTwo}, 7},
		{belief.PauseForgotten, orders, []belief.Property{belief.PauseKept}, 3},
		{belief.EpochNoToken, epochs, []belief.Property{belief.TokensRise}, 3},
		{belief.DeposedFrees, verdicts, []belief.Property{belief.OneLeaseATime, belief.NoneAfterEnd, belief.NeverTwo}, 4},
		{belief.LateStands, commits, []belief.Property{belief.EndIsEnd}, 6},
		{belief.LateTold, commits, []belief.Property{belief.EndIsEnd, belief.NoneAfterEnd, belief.NeverTwo}, 6},
		{belief.LateUntilTaken, commits, []belief.Property{belief.EndIsEnd}, 7},
		{belief.Unguarded, commits, []belief.Property{belief.OneLeaseATime, belief.NoneAfterEnd, belief.NeverTwo}, 4},
	} {
		for i, p := range c.breaks {
			m := c.in
			m.Clocks, m.Bug, m.Only = clocks(slowest, slowest), c.bug, p
			r := m.Search()
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

// The stores never show a late heartbeat as a lease that lasts, though the contract of
// leadership.Store would allow it until it is taken back. It would be no danger: the lease is then
// one that ends later, and no one was told otherwise.
func TestLateHeartbeatUntilTakenBackMakesNoSecondLeader(t *testing.T) {
	t.Parallel()
	for _, p := range []belief.Property{belief.NeverTwo, belief.NoneAfterEnd, belief.NoSecondYes, belief.TokensRise, belief.OneLeaseATime} {
		m := belief.Model{Clocks: clocks(slowest, slowest), Lease: 2, Commits: true, Bug: belief.LateUntilTaken, Only: p}
		if r := m.Search(); r.Broken != "" {
			t.Errorf("%s does not hold:\n%s", p, strings.Join(r.Trace, "\n"))
		}
	}
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

func TestOnlyClocksSlowerThanTheDriftMakeTwoLeaders(t *testing.T) {
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

// The wait is measured by the server's clock, which may be as fast as the leader's is slow.
func TestServersClockMayBeWrongWhileALeaderWaits(t *testing.T) {
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
