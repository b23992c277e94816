package mutants

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Config selects the bugs to try.
type Config struct {
	Root    string // of the module; "" for that of the working directory
	Mutants []Mutant
	// Built are the bugs that are built in, Mutants among them; these alone if it is nil. Runs with
	// the same ones share what they compile.
	Built     []Mutant
	Quick     bool // only the quick set, each with the first of its tests
	Emulators bool // also bugs that need emulators, which the environment must name or be able to start
	// Limit is how long the tests of one bug may run at least: a minute if it is zero. Tests that
	// run for longer, and five times longer than without the bug, have failed.
	Limit time.Duration
	// Heard, unless it is nil, is called with each verdict at once.
	Heard func(Verdict)
}

// Outcome is the result for a planted bug.
type Outcome string

// The outcomes. All but the first two are failures.
const (
	Caught   Outcome = "caught"
	NotTried Outcome = "not tried" // it needs emulators, or its tests are skipped on this machine
	Survived Outcome = "SURVIVED"
	Broken   Outcome = "BROKEN" // it proves nothing: it cannot be planted, or its tests also fail without it
)

// Verdict is the result of some tests for a planted bug.
type Verdict struct {
	Mutant  Mutant
	Tests   Tests
	Outcome Outcome
	Why     string        // the test that failed first and its line, the tests that passed, or why it proves nothing
	Took    time.Duration // including builds and runs without a bug, unless they were made before
}

// Failed reports whether the bug was tried and not caught.
func (v Verdict) Failed() bool { return v.Outcome == Survived || v.Outcome == Broken }

// String returns the whole verdict in two lines.
func (v Verdict) String() string {
	return fmt.Sprintf("%-9s %5.1fs  %s: %s\n\t%s: %s", v.Outcome, v.Took.Seconds(), v.Mutant.Name, v.Mutant.Wrong, v.Tests, v.Why)
}

// Run plants the bugs one after the other, and returns a verdict for each of them and each of its
// tests, in their order. The same tests must pass without a bug, which is checked once. If an
// error, such as the end of ctx, stops the run, Run also returns the verdicts so far.
func Run(ctx context.Context, c Config) (verdicts []Verdict, err error) {
	built := c.Built
	if built == nil {
		built = c.Mutants
	}
	b, err := newBench(ctx, c.Root, cmp.Or(c.Limit, time.Minute), built)
	if err != nil {
		return nil, err
	}
	defer b.close()
	for _, m := range c.Mutants {
		for _, tests := range c.asked(m) {
			v := b.try(ctx, m, tests, c.Emulators)
			if err := ctx.Err(); err != nil {
				return verdicts, fmt.Errorf("mutants: %w", err)
			}
			verdicts = append(verdicts, v)
			if c.Heard != nil {
				c.Heard(v)
			}
		}
	}
	return verdicts, nil
}

// asked returns the tests of a bug that the configuration selects.
func (c Config) asked(m Mutant) []Tests {
	switch {
	case !c.Quick:
		return m.By
	case m.Quick:
		return m.By[:1]
	}
	return nil
}
