package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"regent/test/checker"
)

// A machine that has other things to do is a fault, too, and not a planned one. It is taken
// down as one, so that Regent is not blamed for it: a sleep that lasts too long, and a store that
// takes too long to answer without Regent's doing.
const probeEvery = 20 * time.Millisecond

// slow is the longest delay of a renewal that does no harm to the holder of a lease, and hop that
// of each of its parts: a turn of a process, a write to the disk, a read of an emulator.
func (p Plan) slow() time.Duration { return p.Lease / 5 }
func (p Plan) hop() time.Duration  { return p.Lease / 15 }

// probe looks for it until the run is over.
func (s *session) probe(ctx context.Context) error {
	touch, done, err := s.toucher(ctx)
	if err != nil {
		return err
	}
	probing, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { s.time(probing, "the machine", probeEvery, func() { sleep(probing, probeEvery) }) })
	all.Go(func() { s.time(probing, "the store", 0, func() { touch(probing) }) })
	s.closing = append(s.closing, func() {
		stop()
		all.Wait()
		done()
	})
	return nil
}

// time does something over and over that should not take much longer than usual, and takes down
// when it does.
func (s *session) time(ctx context.Context, what string, usual time.Duration, do func()) {
	for ; ctx.Err() == nil; sleep(ctx, probeEvery) {
		begun := s.recorder.Now()
		do()
		s.excuses.Attempt(1)
		if ended := s.recorder.Now(); ended-begun > usual+s.plan.hop() && ctx.Err() == nil {
			s.excuses.Excuse("%s is late by %v at %v", what, ended-begun-usual, begun)
			s.notes.fault(checker.Fault{Name: fmt.Sprintf("%s is late", what), From: begun, Until: ended})
		}
	}
}

// lateRenewals are the times after renewals that took too long: a leader whose renewals are not
// answered does well to stop. Spanner's emulator lets one transaction in at a time, and what a busy
// machine makes of that says nothing of Spanner, or of Regent; renewals on a file depend on Regent
// more, and few of them are excused.
func (s *session) lateRenewals(r checker.Recording) (late []checker.Fault) {
	excuses := &s.excuses
	if s.plan.Store == File {
		excuses = &s.renewals
	}
	for _, c := range r.Calls {
		if c.Verb != checker.Renew {
			continue
		}
		excuses.Attempt(1)
		if c.Answered-c.Asked > s.plan.slow() {
			if !harmed(r.Faults, c) {
				excuses.Excuse("a renewal is late: asked at %v, answered at %v", c.Asked, c.Answered)
			}
			late = append(late, checker.Fault{Name: "a renewal is late", From: c.Asked, Until: c.Asked + s.plan.Lease})
		}
	}
	return late
}

// harmed reports whether a fault, planned or found, was there during the call: it needs no excuse
// of its own.
func harmed(faults []checker.Fault, c checker.Call) bool {
	return slices.ContainsFunc(faults, func(f checker.Fault) bool { return f.From <= c.Answered && f.Until >= c.Asked })
}

// toucher returns what uses the store without Regent: one small write to a disk, or one read of an
// emulator.
func (s *session) toucher(ctx context.Context) (touch func(context.Context), done func() error, err error) {
	if s.plan.Store == File {
		file, err := os.Create(s.path("probe"))
		if err != nil {
			return nil, nil, err
		}
		return func(context.Context) {
			_, err := file.WriteAt(make([]byte, 4096), 0)
			if err := errors.Join(err, file.Sync()); err != nil {
				s.notes.fail("the disk: %v", err)
			}
		}, file.Close, nil
	}
	leases, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) {
		leases.Get(ctx, s.plan.Elections[0]) // that it cannot is a fault of its own
	}, leases.Close, nil
}
