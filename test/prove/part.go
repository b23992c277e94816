package main

import (
	"context"
	"errors"
	"fmt"
)

// part is one way to look for faults: in steps, which are numbered from 1.
type part struct {
	name string
	unit string // of the figure that measures its progress
	// How much of that figure the quick set and the night set want; 0 for none.
	quick, night int64
	// each is how much of that figure a step brings; 0 if only the step can tell.
	each int64
	// side says which resource it mostly uses: parts of one side follow each other, and both sides
	// work at the same time.
	side side
	// things is the number of steps of a part that is done as a whole: step k looks at thing k. 0
	// for a part whose steps have seeds.
	things int
	// step makes one step: at the thing of that number or with that seed. Its tally has the unit
	// among its figures. The error is a *finding for a bug; errNothing if the step has proved
	// nothing; errors.ErrUnsupported if this machine cannot do it; any other means that neither
	// this step nor the next can be made.
	step func(ctx context.Context, seed uint64) (tally, error)
}

type side int

const (
	waits    side = iota // for real processes, most of the time
	computes             // all the time
)

// errNothing is the error of a step that has proved nothing; another one is made in its place.
var errNothing = errors.New("the step has proved nothing")

// finding is the error of a bug that was found.
type finding struct {
	part string
	seed uint64 // 0 where the error says which thing it is
	err  error
}

// Error names the place, and how to reproduce the bug.
func (f *finding) Error() string {
	if f.seed == 0 {
		return fmt.Sprintf("%s: %v", f.part, f.err)
	}
	return fmt.Sprintf("%s, seed %d: %v", f.part, f.seed, f.err)
}

// Unwrap returns the bug's error.
func (f *finding) Unwrap() error { return f.err }

// tally is figures, by what they count.
type tally map[string]int64

// add adds another's figures.
func (t tally) add(more tally) {
	for name, n := range more {
		t[name] += n
	}
}

// parts returns all parts, in the order of the report.
func parts(c config, faultRuns faultRuns) ([]part, error) {
	planted, err := bugs(c)
	models, groups, long := drawn(c, models(c)), byFolder(planted), drawn(c, longTests())
	tested := 0
	for _, g := range long {
		tested += int(g.count())
	}
	return []part{
		whole(part{name: "states", unit: "models", side: computes, things: len(models), step: searches(models)}, len(models)),
		{name: "crash", unit: "images", quick: 1_000, night: 100_000, side: computes, step: crashes},
		whole(part{name: "mutants", unit: "bugs", side: computes, things: len(groups), step: plants(c, groups)}, len(planted)),
		{name: "simulation", unit: "election-hours", quick: 10 * hoursAYear, night: 100 * hoursAYear, side: computes, step: simulate},
		{name: "file", unit: "runs", quick: 30, night: 1_200, each: 1, side: waits, step: faultRuns.breaks("file")},
		{name: "firestore", unit: "runs", quick: 10, night: 400, each: 1, side: waits, step: faultRuns.breaks("firestore")},
		{name: "spanner", unit: "runs", quick: 10, night: 400, each: 1, side: waits, step: faultRuns.breaks("spanner")},
		whole(part{name: "tests", unit: "tests", side: waits, things: len(long), step: runs(long)}, tested),
		{name: "lock", unit: "updates", night: 100_000, each: 5_000, side: waits, step: tests(5_000, "updates", "TestNoFencedUpdateIsLost", "-updates", "5000")},
		{name: "command", unit: "trials", night: 1_000, each: 500, side: waits, step: tests(500, "trials", "TestACommandIsGoneBeforeItsLeaseEnds", "-trials", "500")},
	}, err
}

// whole is a part of which each set wants all.
func whole(p part, all int) part {
	p.quick, p.night = int64(all), int64(all)
	return p
}

// hoursAYear is a year of 365 days.
const hoursAYear = 365 * 24
