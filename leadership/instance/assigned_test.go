package instance_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

func TestAnAssignedSeatIsGrantedToThatCandidateAloneWhereverItStands(t *testing.T) {
	for _, strategy := range []leadership.Strategy{"", leadership.StrategyPriority} {
		t.Run(string(strategy), func(t *testing.T) {
			inFleet(t, func(f *fleet) {
				a, b := f.start("a"), f.start("b")
				_, err := a.Do(f.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 2, LeaseDuration: 10 * time.Minute, Ballot: leadership.BallotPolicy{Strategy: strategy}}})
				require.NoError(t, err)
				synctest.Wait()
				first, second := f.asks(a, "c1", time.Minute), f.asks(b, "c2", time.Minute)
				led := map[leadership.Election]leadership.Grant{}
				for _, g := range []sits{<-first, <-second} {
					require.NoError(t, g.err)
					led[g.Election] = g.Grant
				}
				for i, s := range []*server{a, b, b} { // before ann
					f.asks(s, leadership.CandidateID(fmt.Sprint("w", i)), time.Minute)
				}
				ann := f.asks(b, "ann", time.Minute)
				order := leadership.Order{Election: "gpu.2", Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Hour, Reason: "its cache is warm", Actor: "op"}
				given, err := a.Do(f.Context(), order)
				require.NoError(t, err)
				if given.EndsBecause != leadership.EndsHandOver {
					t.Errorf("the leader of the seat goes on until %q", given.EndsBecause)
				}
				_, err = a.Do(f.Context(), leadership.Release{LeaseRequest: lease(led["gpu.2"])})
				require.NoError(t, err)
				released := time.Now()
				g := <-ann
				if g.err != nil || g.Election != "gpu.2" || g.at.Sub(released) > time.Second {
					t.Errorf("after %v ann has %+v, %v; want gpu.2", g.at.Sub(released), g.Grant.Lease, g.err)
				}
				_, err = a.Do(f.Context(), leadership.Release{LeaseRequest: lease(g.Grant)})
				require.NoError(t, err)
				go a.Acquire(f.Context(), leadership.AcquireRequest{Election: "gpu.2", CandidateID: "ida", Wait: time.Minute}) // by its own name
				time.Sleep(time.Second)
				a.asks.Take()
				b.asks.Take()
				time.Sleep(20 * time.Second)
				for name, s := range map[string]*server{"a": a, "b": b} {
					if n := s.asks.Take(); n["Update"] > 0 {
						t.Errorf("%s asks for a seat that is another's: %v", name, n)
					}
				}
				if h := f.held(); h["gpu.2"] != "" || h["gpu.1"] == "" || h["gpu.1"] == "ann" {
					t.Errorf("without ann led are %v; want the first seat alone", h)
				}
				witness := leadership.AcquireRequest{Election: "gpu.2", CandidateID: "ann", Candidacy: leadership.Candidacy{Role: leadership.RoleWitness}}
				if g, err := a.Acquire(f.Context(), witness); err == nil {
					t.Errorf("a witness is granted %+v", g.Lease)
				}
				if g := <-f.asks(a, "ann", 0); g.err != nil || g.Election != "gpu.2" {
					t.Errorf("back, ann has %+v, %v; want gpu.2", g.Grant.Lease, g.err)
				}
				_, err = b.Acquire(f.Context(), leadership.AcquireRequest{Election: "gpu.2", CandidateID: "eve"})
				if !errors.Is(err, leadership.LeaseHeld) {
					t.Errorf("eve has the seat: %v", err)
				}
			})
		})
	}
}

func TestTheLiftOfAnAssignmentGivesTheSeatToTheNextInLine(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		seats := func(n int) {
			f.Helper()
			_, err := a.Do(f.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: n, LeaseDuration: 10 * time.Minute}})
			require.NoError(t, err)
			synctest.Wait()
		}
		seats(1)
		one := <-f.asks(a, "c1", 0)
		given, err := b.Do(f.Context(), leadership.Order{Election: "gpu.1", Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Hour, Reason: "its cache is warm", Actor: "op"})
		require.NoError(t, err)
		seats(2) // a change of the whole leaves the order as it is
		_, err = a.Do(f.Context(), leadership.Release{LeaseRequest: lease(one.Grant)})
		require.NoError(t, err)
		require.NoError(t, (<-f.asks(b, "c2", 0)).err) // the other seat
		waits := f.asks(b, "bob", time.Minute)
		time.Sleep(20 * time.Second)
		if h := f.held(); h["gpu.1"] != "" {
			t.Errorf("led are %v", h)
		}
		lifted := time.Now()
		_, err = a.Do(f.Context(), leadership.Order{Election: "gpu.1", Kind: leadership.OrderLift, Override: given.Overrides.List()[0].ID, Reason: "done", Actor: "op"})
		require.NoError(t, err)
		if g := <-waits; g.err != nil || g.at.Sub(lifted) > 2*time.Second {
			t.Errorf("after %v bob has %+v, %v", g.at.Sub(lifted), g.Grant.Lease, g.err)
		}
	})
}

func TestAnAssigneeThatWasHaltedIsAskedForOnceTheHaltIsLifted(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		f.seats(a, 1)
		_, err := a.Do(f.Context(), leadership.Order{Election: "gpu.1", Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Hour, Reason: "its cache is warm", Actor: "op"})
		require.NoError(t, err)
		halt := leadership.Order{Election: "gpu*", Kind: leadership.OrderHalt, For: time.Hour, Reason: "poisoned", Actor: "op"}
		_, err = a.Do(f.Context(), halt)
		require.NoError(t, err)
		ann, bob := f.asks(a, "ann", time.Minute), f.asks(a, "bob", time.Minute)
		time.Sleep(20 * time.Second)
		a.asks.Take()
		time.Sleep(10 * time.Second)
		if n := a.asks.Take(); n["Get"]+n["Update"] > 2 {
			t.Errorf("waiting costs %v", n)
		}
		halt.Kind, halt.For = leadership.OrderUnhalt, 0
		_, err = a.Do(f.Context(), halt)
		require.NoError(t, err)
		lifted := time.Now()
		if g := <-ann; g.err != nil || g.at.Sub(lifted) > 3*time.Second {
			t.Errorf("after %v ann has %+v, %v", g.at.Sub(lifted), g.Grant.Lease, g.err)
		}
		if g := <-bob; !errors.Is(g.err, leadership.LeaseHeld) {
			t.Errorf("bob has %+v, %v", g.Grant.Lease, g.err)
		}
	})
}
