package main

import (
	"context"
	"errors"
	"fmt"
)

// part is one way to look for what is wrong: in steps, each with a seed of its own.
type part struct {
	name string
	unit string // of the figure by which it is known how far it has looked
	// How much of that figure the quick set wants, and the night set; 0 for nothing.
	quick, night int64
	// side says on which side of the machine it works: parts of one side follow each other, both sides work at the same time.
	side side
	// whole says that the set cannot be done in part.
	whole bool
	// step looks once. Its tally has the unit among its figures. The error of something that was found is a *finding; errNothing is for a step that
	// has proved nothing; errors.ErrUnsupported for what this machine cannot do; any other means that the step could not be made.
	step func(ctx context.Context, seed uint64) (tally, error)
}

type side int

const (
	waits    side = iota // for real processes, most of the time
	computes             // all the time
)

// errNothing is the error of a step that has proved nothing, and is made again with another seed.
var errNothing = errors.New("the step has proved nothing")

// finding is what nobody wants to find.
type finding struct {
	part string
	seed uint64
	err  error
}

// Error says where, and how to see it again.
func (f *finding) Error() string { return fmt.Sprintf("%s, seed %d: %v", f.part, f.seed, f.err) }

// Unwrap is what was found.
func (f *finding) Unwrap() error { return f.err }

// tally is figures, by what they count.
type tally map[string]int64

// add adds another's figures.
func (t tally) add(more tally) {
	for name, n := range more {
		t[name] += n
	}
}

// parts are all of them, the order in which the report has them.
func parts(c config, rigs *rigs) []part {
	return []part{
		{name: "states", unit: "models", quick: int64(len(models(c))), night: int64(len(models(c))), side: computes, whole: true, step: searches(c)},
		{name: "simulation", unit: "election-hours", quick: 10 * hoursAYear, night: 100 * hoursAYear, side: computes, step: simulate},
		{name: "crash", unit: "images", quick: 1_000, night: 100_000, side: computes, step: crashes},
		{name: "mutants", unit: "bugs", quick: int64(planted(c)), night: int64(planted(c)), side: computes, whole: true, step: plants(c)},
		{name: "bolt", unit: "runs", quick: 30, night: 1_200, side: waits, step: rigs.breaks("bolt")},
		{name: "firestore", unit: "runs", quick: 10, night: 400, side: waits, step: rigs.breaks("firestore")},
		{name: "spanner", unit: "runs", quick: 10, night: 400, side: waits, step: rigs.breaks("spanner")},
		{name: "lock", unit: "updates", night: 100_000, side: waits, step: tests(5_000, "updates", "NoUpdateIsLost", "-updates", "5000")},
		{name: "command", unit: "trials", night: 1_000, side: waits, step: tests(500, "trials", "ACommandIsGone", "-trials", "500")},
		{name: "announcing", unit: "rounds", night: 100, side: waits, step: tests(1, "rounds", "EveryChangeIsAnnounced")},
	}
}

// hoursAYear is a year of 365 days.
const hoursAYear = 365 * 24
