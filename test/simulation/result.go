package simulation

import (
	"fmt"
	"time"

	"regent/test/checker"
)

// Figures count what happened in a run, or in several.
type Figures struct {
	Elections   time.Duration // simulated time, summed over elections
	Events      uint64
	Calls       int
	Renewals    int // that were answered
	Attempts    int // of lines
	Changes     int // of leader
	Resigned    int
	LostLeases  int // ended by their deadline, or because the server said so
	Lost        int // messages
	Late        int
	Doubled     int
	Aborted     int // transactions
	Unknown     int // commits whose caller was not told the outcome
	Pauses      int // of agents
	Crashes     int // of agents
	Stalls      int
	Deaths      int // of instances
	Deaf        int
	RelayDeaths int
	Leaps       int // of clocks
	Operations  int // of operators
	Unlocked    int // elections, by operators
	Orders      int // of operators, and verdicts
	Epochs      int // that leaders heard of
	Deposed     int // leaders
	Bids        int // that were written
	Ballots     int // that ended with a grant
	Preempted   int // leaders
	Withdrawn   int // bids and challenges, by instances
	Reports     int // of leaders
	HandOvers   int // that leaders began
	Ready       int // successors, and leaders
	Yields      int
	TakenOver   int // leases, by successors
	Stood       int // changes of leases that stand on others
	Orphans     int // leases that a line released, because no caller was told their keys
	Twice       int // campaigns of which there were two at a time
	Keyless     int // grants with a key that the service chose
	Reads       int // of observers, that were answered
	Cached      int // of those, from what an instance knew
	Looks       int // of instances, whether a lease is over
	Refused     int // writes of leaders of the past, refused where they arrived
	Writes      int // that were let in
}

// Plus returns the sum of both.
func (f Figures) Plus(g Figures) Figures {
	f.Elections += g.Elections
	f.Events += g.Events
	f.Calls += g.Calls
	f.Renewals += g.Renewals
	f.Attempts += g.Attempts
	f.Changes += g.Changes
	f.Resigned += g.Resigned
	f.LostLeases += g.LostLeases
	f.Lost += g.Lost
	f.Late += g.Late
	f.Doubled += g.Doubled
	f.Aborted += g.Aborted
	f.Unknown += g.Unknown
	f.Pauses += g.Pauses
	f.Crashes += g.Crashes
	f.Stalls += g.Stalls
	f.Deaths += g.Deaths
	f.Deaf += g.Deaf
	f.RelayDeaths += g.RelayDeaths
	f.Leaps += g.Leaps
	f.Operations += g.Operations
	f.Unlocked += g.Unlocked
	f.Orders += g.Orders
	f.Epochs += g.Epochs
	f.Deposed += g.Deposed
	f.Bids += g.Bids
	f.Ballots += g.Ballots
	f.Preempted += g.Preempted
	f.Withdrawn += g.Withdrawn
	f.Reports += g.Reports
	f.HandOvers += g.HandOvers
	f.Ready += g.Ready
	f.Yields += g.Yields
	f.TakenOver += g.TakenOver
	f.Stood += g.Stood
	f.Orphans += g.Orphans
	f.Twice += g.Twice
	f.Keyless += g.Keyless
	f.Reads += g.Reads
	f.Cached += g.Cached
	f.Looks += g.Looks
	f.Refused += g.Refused
	f.Writes += g.Writes
	return f
}

// Faults returns the number of faults.
func (f Figures) Faults() int {
	return f.Lost + f.Late + f.Doubled + f.Aborted + f.Unknown + f.Pauses + f.Crashes + f.Stalls + f.Deaths + f.Deaf + f.RelayDeaths + f.Leaps
}

// Result is the result of a run.
type Result struct {
	Seed       uint64
	Plan       string
	Figures    Figures
	Digest     uint64 // of all that has happened: the same for the same seed, always
	Violations []Violation
	Recording  checker.Recording // of a run that is recorded
	Guard      time.Duration     // of the store
}

// Err names the first violations, and how to see them again.
func (r Result) Err() error {
	if len(r.Violations) == 0 {
		return nil
	}
	return fmt.Errorf("seed %d (%s): %d violations, the first: %v", r.Seed, r.Plan, len(r.Violations), r.Violations[0])
}
