package belief

import (
	"slices"
	"time"

	"regent/leadership"
)

// Advance of a clock in a second.
const (
	slowest = second - second/leadership.Drift // the slowest that deadlines allow for
	fast    = 1001 * time.Millisecond
	twice   = 2 * second
)

// Quick returns models with 5 million states: half a minute on one core.
func Quick() []Model {
	return []Model{
		{Name: "two waiting", Clocks: all(2, slowest), Lease: 3, Wait: 2},
		{Name: "two waiting, one with a wild clock", Clocks: []time.Duration{slowest, twice}, Lease: 3, Wait: 2},
		{Name: "two waiting, a lock delay, an operator", Clocks: all(2, slowest), Lease: 2, Wait: 1, Delay: 1, Operator: true},
		{Name: "two waiting, a lock delay, an operator who unlocks", Clocks: all(2, slowest), Lease: 2, Wait: 1, Delay: 1, Operator: true, Unlock: true},
		{Name: "three", Clocks: all(3, slowest), Lease: 2},
		{Name: "three, late commits, a lock delay, an operator", Clocks: all(3, slowest), Lease: 1, Delay: 1, Operator: true, Commits: true},
		{Name: "four", Clocks: all(4, slowest), Lease: 1},
		{Name: "two waiting, new epochs", Clocks: all(2, slowest), Lease: 2, Wait: 1, Epochs: true},
		{Name: "two, orders, new epochs and verdicts", Clocks: all(2, slowest), Lease: 2, Delay: 1, Orders: true, Epochs: true, Trips: true},
		{Name: "two, late commits, orders, new epochs and verdicts", Clocks: all(2, slowest), Lease: 1, Delay: 1, Orders: true, Epochs: true, Trips: true, Commits: true},
	}
}

// Night returns models with longer leases, and with four candidates and everything that may happen.
// They have 33 million states, which take some minutes on one core, and up to 1 GB.
func Night() []Model {
	return []Model{
		{Name: "two in a long wait", Clocks: all(2, slowest), Lease: 6, Wait: 4},
		{Name: "two waiting, one with a fast clock", Clocks: []time.Duration{second, fast}, Lease: 5, Wait: 3},
		{Name: "three waiting", Clocks: all(3, slowest), Lease: 2, Wait: 1},
		{Name: "three, late commits, a lock delay, an operator who unlocks", Clocks: all(3, slowest), Lease: 1, Delay: 1, Operator: true, Commits: true, Unlock: true},
		{Name: "three with three clocks", Clocks: []time.Duration{slowest, second, twice}, Lease: 2},
		{Name: "three, late commits, a lock delay, an operator", Clocks: all(3, slowest), Lease: 2, Delay: 1, Operator: true, Commits: true},
		{Name: "four", Clocks: all(4, slowest), Lease: 2},
		{Name: "four, a lock delay, an operator", Clocks: all(4, slowest), Lease: 1, Delay: 1, Operator: true},
		{Name: "two, orders", Clocks: all(2, slowest), Lease: 5, Delay: 1, Orders: true},
		{Name: "two, late commits, orders, new epochs and verdicts", Clocks: all(2, slowest), Lease: 2, Orders: true, Epochs: true, Trips: true, Commits: true},
		{Name: "three, late commits, orders, new epochs and verdicts", Clocks: all(3, slowest), Lease: 1, Orders: true, Epochs: true, Trips: true, Commits: true},
		{Name: "four, late commits", Clocks: all(4, slowest), Lease: 1, Commits: true},
		{Name: "four, late commits, a lock delay, an operator", Clocks: all(4, slowest), Lease: 1, Delay: 1, Operator: true, Commits: true},
	}
}

// all returns the clocks of that many candidates with the same clock.
func all(candidates int, clock time.Duration) []time.Duration {
	return slices.Repeat([]time.Duration{clock}, candidates)
}
