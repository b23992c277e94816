package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/storetest"
)

// begun commits the command as Service.Do does, whose process then dies before any seat is told.
func begun(t *testing.T, s service.Store, e leadership.Election, c leadership.Command) {
	t.Helper()
	if _, err := s.Update(t.Context(), e, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) { return rule.Apply(s, c) }); err != nil {
		t.Fatal(err)
	}
}

func TestSeatsHearOfAnOrderWhoseGiverDied(t *testing.T) {
	t.Parallel()
	drain := leadership.Order{Election: "gpu", Kind: leadership.OrderPause, Mode: leadership.PauseDrain, For: time.Hour, Reason: "r", Actor: "op"}
	for name, c := range map[string]struct {
		leadership.Command
		refused leadership.Code
	}{"drain": {drain, leadership.LeaseHeld}, "delete": {leadership.Delete{Election: "gpu", Force: true}, leadership.ElectionDeleted}} {
		for by, tell := range map[string]func(context.Context, *storetest.Fake) error{
			"once a candidate asks": func(ctx context.Context, f *storetest.Fake) error {
				begun(t, f, "gpu", c.Command)
				bob, err := service.New(f).Acquire(ctx, leadership.AcquireRequest{Election: "gpu", CandidateID: "bob"})
				if !errors.Is(err, c.refused) {
					return fmt.Errorf("bob got %+v, %w; want %s", bob.Lease, err, c.refused)
				}
				return nil
			},
			"at the next tick": func(ctx context.Context, f *storetest.Fake) error {
				begun(t, f, "gpu", c.Command)
				_, err := service.New(f).RetireAll(ctx)
				return err
			},
			"though its context ended": func(ctx context.Context, f *storetest.Fake) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				f.Around = func(ctx context.Context, call storetest.Call, next func(context.Context) error) error {
					if err := next(ctx); err != nil {
						return err
					}
					if call.Method == "Update" {
						cancel()
					}
					return nil
				}
				_, err := service.New(f).Do(ctx, c.Command)
				return err
			},
		} {
			t.Run(name+" "+by, func(t *testing.T) {
				t.Parallel()
				f := &storetest.Fake{Store: new(clock).memory(0), Around: func(ctx context.Context, _ storetest.Call, next func(context.Context) error) error { return next(ctx) }}
				s := service.New(f.Store)
				if _, err := s.Do(t.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{LeaseDuration: time.Minute, Seats: 1}}); err != nil {
					t.Fatal(err)
				}
				g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "gpu", CandidateID: "ann"})
				require.NoError(t, err)
				if err := tell(t.Context(), f); err != nil {
					t.Error(err)
				}
				l, err := s.Renew(t.Context(), leadership.LeaseRequest{Election: g.Election, CandidateID: "ann", Key: g.Key, Token: g.Token})
				if err != nil || l.EndsBecause == "" {
					t.Errorf("the leader of the seat goes on without an end: %q, %v", l.EndsBecause, err)
				}
			})
		}
	}
}

func TestAnElectionThatWasConfiguredMeanwhileIsNoSeatUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	f := &storetest.Fake{Store: new(clock).memory(0)}
	s, elsewhere := service.New(f), service.New(f.Store)
	own := leadership.Configure{Election: "gpu.1", Config: leadership.Config{LeaseDuration: time.Hour, LockDelay: time.Minute}}
	f.Around = func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method == "Update" && c.Election == "gpu" { // the seats of gpu were looked at
			f.Around = func(ctx context.Context, _ storetest.Call, next func(context.Context) error) error { return next(ctx) }
			if _, err := elsewhere.Do(ctx, own); err != nil {
				t.Error(err)
			}
		}
		return next(ctx)
	}
	whole := leadership.Configure{Election: "gpu", Config: leadership.Config{LeaseDuration: time.Minute, Seats: 2}}
	if _, err := s.Do(t.Context(), whole); !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("whose change is made, and lacks a seat, hears %v", err)
	}
	acquires := func(c leadership.CandidateID) (leadership.Grant, error) {
		return s.Acquire(t.Context(), leadership.AcquireRequest{Election: "gpu", CandidateID: c})
	}
	if g, err := acquires("ann"); err != nil || g.Election != "gpu.2" {
		t.Errorf("ann got %q, %v; want gpu.2", g.Election, err)
	}
	g, err := acquires("bob")
	l, readErr := s.Get(t.Context(), "gpu.1")
	if refused, ok := errors.AsType[*leadership.Error](err); !ok || refused.Reason != leadership.ReasonSeats || readErr != nil || l.Config.LockDelay != time.Minute {
		t.Errorf("bob got %q, %v; gpu.1 has a lock delay of %v, want %v", g.Election, err, l.Config.LockDelay, own.Config.LockDelay)
	}
	if due, err := f.Retirable(t.Context(), l.ReadAt.Add(time.Hour), 10); err != nil || len(due) > 0 {
		t.Errorf("each acquire and tick tells the seats again: due are %v, %v", due, err)
	}
	for _, c := range []leadership.Command{leadership.Delete{Election: "gpu.1"}, whole} {
		if _, err := s.Do(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if g, err := acquires("bob"); err != nil || g.Seat != 1 {
		t.Errorf("with gpu.1 deleted, bob got %+v, %v; want seat 1", g.Lease, err)
	}
}
