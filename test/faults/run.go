package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Config is one run.
type Config struct {
	Store Store
	Seed  uint64
	Dir   string // where a run that failed is kept, in a folder of its own; "" for where temporary files are
	Rig   *Rig   // nil for one of the run's own, with what the environment says
	Lie   Lie    // what somebody does wrong on purpose, to see it found
}

// Lie is what agents do wrong. The zero Lie is the truth.
type Lie struct {
	Belief time.Duration // leaders believe for so long after their lease has told them that it is over
	Deaf   bool          // who watches does not tell of one event in ten
}

// ErrInvalid says that a run proves nothing: too little was done, nobody lost a lease, or a fault did not happen.
var ErrInvalid = errors.New("the run proves nothing")

// Phases of a run, beside the storm.
const (
	warmUp = 3 * time.Second
	calm   = 1500 * time.Millisecond // and a lease
)

// Run plays what the seed has planned, in 10 to 30 s, and checks it. All processes have ended when it returns.
//
// The error is ErrInvalid for a run that proves nothing; a *Violation for one in which something happened that must not; anything else if it could
// not be played. On each of these what there is of the run is kept, in a folder that the error names. A run that succeeded leaves nothing.
func Run(ctx context.Context, c Config) (Result, error) {
	if c.Rig == nil {
		rig, err := NewRig(ctx, RigConfig{})
		if err != nil {
			return Result{}, err
		}
		defer rig.Close()
		c.Rig = rig
	}
	dir, err := os.MkdirTemp(c.Dir, fmt.Sprintf("faults-%s-%d-*", c.Store, c.Seed))
	if err != nil {
		return Result{}, err
	}
	begun := time.Now()
	s := newStage(c.Rig, NewPlan(c.Store, c.Seed, c.Rig.Can), dir, c.Lie)
	found, err := s.run(ctx)
	found.result.Took = time.Since(begun)
	if err == nil {
		return found.result, os.RemoveAll(dir)
	}
	return found.result, fmt.Errorf("faults: %s, seed %d: %w\nkept in %s", c.Store, c.Seed, errors.Join(err, s.keep(found, err)), dir)
}

// run plays and checks.
func (s *stage) run(ctx context.Context) (f findings, err error) {
	defer func() {
		s.strike()
		err = errors.Join(err, s.mustBeGone(), s.discard(context.WithoutCancel(ctx)))
	}()
	played := s.play(ctx)
	s.strike() // so that the file is free, and all has been said
	t, err := s.read(ctx)
	if err != nil && (played == nil || errors.Is(played, ErrInvalid)) {
		s.book.fail("the store: %v", err)
	}
	f = s.examine(t)
	return f, cmp.Or(f.violation(), played, f.valid(s.plan))
}

// play goes through the phases.
func (s *stage) play(ctx context.Context) error {
	if err := s.set(ctx); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	sleep(ctx, warmUp)
	missed := s.storm(ctx)
	sleep(ctx, calm+s.plan.Lease)
	s.quiet(ctx)
	s.leave()
	if missed != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, missed)
	}
	return ctx.Err()
}

// path is a file of the run.
func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }
