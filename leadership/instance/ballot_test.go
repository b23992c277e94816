package instance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
)

// elects sets who should lead.
func (c *cluster) elects(p leadership.BallotPolicy) {
	c.Helper()
	_, err := c.a.Configure(c.Context(), leadership.ConfigureRequest{Election: "jobs", ConfigureCommand: leadership.ConfigureCommand{
		Config: leadership.Config{Ballot: p},
	}})
	if err != nil {
		c.Fatal(err)
	}
}

// leadInTurn makes a candidate lead that is alone.
func (c *cluster) leadInTurn(on *instance.Instance, candidate leadership.CandidateID) leadership.LeaseRequest {
	c.Helper()
	g, err := on.Acquire(c.Context(), c.ask(candidate, leadership.MaxWait))
	if err != nil {
		c.Fatal(err)
	}
	return leadership.LeaseRequest{Election: "jobs", CandidateID: candidate, Key: g.Key, Token: g.Token}
}

func TestABallotOfManyCostsABidForEachInstanceAndAGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.elects(leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
		lease := c.leadInTurn(c.a, "ann")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		granted := make(chan leadership.Grant, 1000)
		for n := range 500 {
			for at, on := range []*instance.Instance{c.a, c.b} {
				all.Go(func() {
					r := leadership.AcquireRequest{Election: "jobs", CandidateID: leadership.CandidateID(fmt.Sprintf("agent-%d-%d", at, n)), Wait: time.Minute}
					r.Priority = int64((n*37 + at) % 1000)
					if g, err := on.Acquire(ctx, r); err == nil {
						granted <- g
					}
				})
			}
		}
		time.Sleep(2 * time.Second)
		c.take()
		c.release(c.a, lease)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if a, b := c.ca.Take()["Update"]-1, c.cb.Take()["Update"]; a > 3 || b > 3 || a+b > 5 {
			t.Errorf("the store was asked %d and %d times, want a bid each, the grant, and once or twice by the one that lost", a, b)
		}
		best := leadership.CandidateID("")
		most := -1
		for n := range 500 {
			for at := range 2 {
				if p := (n*37 + at) % 1000; p > most || p == most && leadership.CandidateID(fmt.Sprintf("agent-%d-%d", at, n)) < best {
					best, most = leadership.CandidateID(fmt.Sprintf("agent-%d-%d", at, n)), p
				}
			}
		}
		if len(granted) != 1 {
			t.Fatalf("%d candidates lead", len(granted))
		}
		if g := <-granted; g.LeaderID != best {
			t.Errorf("%s leads, want %s", g.LeaderID, best)
		}
		cancel()
		all.Wait()
	})
}

func TestWhatALineHasLeftInTheStoreIsTakenBackWhenItsLastCandidateGoes(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]leadership.BallotPolicy{
		"a bid":       {Strategy: leadership.StrategyPriority, Window: 10 * time.Second},
		"a challenge": {Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.elects(p)
				if p.Preempt {
					c.leadInTurn(c.a, "ann")
				}
				left := func() string {
					s, err := c.store.Get(t.Context(), "jobs")
					if err != nil {
						t.Fatal(err)
					}
					return string(s.Record.Standing.Bids) + string(s.Record.Standing.Challenger)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					r := c.ask("bob", time.Minute)
					r.Priority = 9
					c.b.Acquire(ctx, r)
				}()
				synctest.Wait()
				if left() == "" {
					t.Fatal("the store has nothing of bob")
				}
				cancel()
				<-done
				synctest.Wait()
				if s := left(); s != "" {
					t.Errorf("the store still has %s", s)
				}
			})
		})
	}
}

func TestAWitnessInLineIsExplainedAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.lead(c.a, "ann")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := c.ask("wit", time.Minute)
			r.Role = leadership.RoleWitness
			c.b.Acquire(ctx, r)
		}()
		synctest.Wait()
		for id, want := range map[leadership.CandidateID]leadership.Reason{"wit": leadership.ReasonWitness, "bob": leadership.ReasonNotAsking} {
			x, err := c.b.Explain(t.Context(), leadership.ExplainRequest{Election: "jobs", CandidateID: id})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(x.Causes, func(c leadership.Cause) bool { return c.Code == want }) {
				t.Errorf("%s: got %+v, want %s", id, x.Causes, want)
			}
		}
		cancel()
		<-done
	})
}
