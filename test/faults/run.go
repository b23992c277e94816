package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"regent/test/checker"
)

// Config is the configuration of one run.
type Config struct {
	Store Store
	Seed  uint64
	Lease time.Duration // at least; longer ones suit a busy machine
	Dir   string        // a failed run is kept there, in a folder of its own; "" for the folder of temporary files
	Setup *Setup
	Lie   Lie // what agents do wrong on purpose, to test the checks
	// Faults, if there are any, take the place of those that the seed draws.
	Faults []Fault
}

// Lie makes agents report wrongly. The zero Lie is the truth.
type Lie struct {
	Belief time.Duration // leaders believe for so long after their lease has told them that it is over
	Deaf   bool          // watchers do not report one event in ten
}

// ErrInvalid says that a run proves nothing: too little was done, no lease was lost, or a fault
// did not happen.
var ErrInvalid = errors.New("the run proves nothing")

// Phases of a run, beside the storm.
const (
	warmUp = 3 * time.Second
	calm   = 1500 * time.Millisecond // and a lease
	round  = 9 * time.Second         // of an usher, and a lease: the calm is no shorter
)

// Run carries out the plan of the seed, in 10 to 30 s, and checks the recording. All processes have
// ended when it returns.
//
// The error is ErrInvalid for a run that proves nothing; a *Violation for one that broke a promise;
// anything else if it could not be carried out. After an error the run's files are kept, in a
// folder that the error names. A run that succeeds leaves nothing.
func Run(ctx context.Context, c Config) (Result, error) {
	dir, err := os.MkdirTemp(c.Dir, fmt.Sprintf("faults-%s-%d-*", c.Store, c.Seed))
	if err != nil {
		return Result{}, err
	}
	plan := NewPlan(c.Store, c.Seed, c.Setup.Shifts, c.Lease)
	if len(c.Faults) > 0 {
		plan.Faults = c.Faults
	}
	s := newSession(c.Setup, plan, dir, c.Lie)
	found, err := s.run(ctx)
	if err == nil {
		return found.result, os.RemoveAll(dir)
	}
	return found.result, fmt.Errorf("faults: %s, seed %d: %w\nkept in %s", c.Store, c.Seed, errors.Join(err, s.keep(found, err)), dir)
}

// run carries out the plan and checks the recording.
func (s *session) run(ctx context.Context) (f findings, err error) {
	defer func() {
		s.endAll()
		err = errors.Join(err, s.mustBeGone(), s.discard(context.WithoutCancel(ctx)))
	}()
	played := s.play(ctx)
	s.endAll() // so that the file is free, and all output was read
	t, err := s.read(ctx)
	if err != nil && (played == nil || errors.Is(played, ErrInvalid)) {
		s.notes.fail("the store: %v", err)
	}
	f = s.examine(t)
	proved := cmp.Or(played, f.valid(s.plan))
	if proved != nil { // too little was done, or too slowly, to tell who was kept waiting or not told
		for i, n := range f.verdict {
			f.verdict[i].Violations = slices.DeleteFunc(n.Violations, func(v checker.Violation) bool {
				return n.Name == "LV" || v.Kind == checker.Kept || v.Kind == checker.Lost
			})
		}
	}
	return f, cmp.Or(f.violation(), proved)
}

// play goes through the phases.
func (s *session) play(ctx context.Context) error {
	if err := s.setUp(ctx); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	if err := s.startAgents(ctx); err != nil {
		return err
	}
	sleep(ctx, warmUp)
	missed := s.applyFaults(ctx)
	sleep(ctx, s.plan.contends()-warmUp-s.plan.faultsEnd())
	s.quiet(ctx)
	s.leave()
	if missed != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, missed)
	}
	return ctx.Err()
}

// path is a file of the run.
func (s *session) path(name string) string { return filepath.Join(s.dir, name) }
