package simulation

import (
	"fmt"
	"reflect"
	"time"

	"regent/test/checker"
)

// Figures count what happened in a run, or in several.
type Figures struct {
	Elections time.Duration // simulated time, summed over elections
	Faults    int
	Renewals  int // that were answered
	Changes   int // of leader
	Unlocked  int // elections, by operators
	Epochs    int // that leaders heard of
	Deposed   int // leaders
	Reports   int // of leaders
	Ballots   int // that ended with a grant
	Preempted int // leaders
	TakenOver int // leases, by successors
	Stood     int // changes of leases that stand on others
	Seated    int // changes of leader at seats
	Lowered   int // terms at seats that ended for there are fewer
	Halted    int // candidates that were refused in a halt
	Refused   int // writes of leaders of the past, refused where they arrived
}

// Plus returns the sum of both.
func (f Figures) Plus(g Figures) Figures {
	sum, more := reflect.ValueOf(&f).Elem(), reflect.ValueOf(g)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
	return f
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
