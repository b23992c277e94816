package line_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
	"regent/leadership/rule"
)

// elects sets who should lead the election.
func (i *instance) elects(p leadership.BallotPolicy) {
	i.Helper()
	_, err := i.Do(i.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{Ballot: p}})
	require.NoError(i, err)
}

// rated asks with a priority.
func rated(c leadership.CandidateID, priority int64) leadership.AcquireRequest {
	r := request(c)
	r.Priority = priority
	return r
}

// attends asks as a witness.
func attends(c leadership.CandidateID) leadership.AcquireRequest {
	r := request(c)
	r.Role = leadership.RoleWitness
	return r
}

var byPriority = leadership.BallotPolicy{Strategy: leadership.StrategyPriority}

const window = leadership.DefaultWindow

// ballots starts so many instances on an election with that policy, which ann leads through the
// first.
func (w *cluster) ballots(n int, p leadership.BallotPolicy) (all []*instance, ann leadership.Grant) {
	for range n {
		all = append(all, w.instance())
	}
	all[0].elects(p)
	ann = all[0].elected("ann")
	return all, ann
}

// elected makes the candidate lead, alone and without the queue's doing.
func (i *instance) elected(c leadership.CandidateID) leadership.Grant {
	i.Helper()
	for {
		g, err := i.Service.Acquire(i.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: c, LeaseDuration: lease})
		if err == nil {
			i.learns(g.Lease)
			return g
		}
		refusal, ok := errors.AsType[*leadership.Error](err)
		if !ok || refusal.Reason != leadership.ReasonBallot {
			i.Fatal(err)
		}
		time.Sleep(refusal.RetryAfter)
	}
}

// asks is what was asked of the store in the name of candidates, in order.
type asks struct {
	mu  sync.Mutex
	all []leadership.AcquireRequest // guarded by mu
}

// first returns the first of them, which must be there.
func (a *asks) first() leadership.AcquireRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[0]
}

func (a *asks) hook(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
	a.mu.Lock()
	a.all = append(a.all, r)
	a.mu.Unlock()
	return ask(ctx, r)
}

func TestTheBestOfTheLineLeadsWhateverCameFirst(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		policy := byPriority
		policy.Window = leadership.NoWindow
		all, leader := w.ballots(1, policy)
		i := all[0]
		const n = 20
		line := make([]*waiter, n)
		for c := range n {
			at := (c * 7) % n
			line[at] = i.waits(rated(leadership.CandidateID(fmt.Sprint("agent-", c)), int64(n-at)))
		}
		i.wants(1, "by the first of the line")
		for _, next := range line {
			i.releases(leader)
			leader = next.leads()
			synctest.Wait()
			i.wants(1, "at a takeover")
		}
	})
}

func TestTheStoreIsToldToExpectABidAndTheGrantToTheBest(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		all, ann := w.ballots(1, byPriority)
		var expected []bool
		all[0].hooks(func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
			expected = append(expected, r.InLine.Writes)
			return ask(ctx, r)
		})
		bob := all[0].waits(request("bob"))
		all[0].releases(ann)
		bob.leads()
		if want := []bool{false, true, true}; !slices.Equal(expected, want) {
			t.Errorf("under a leader, for the bid, and for the grant a change was expected: %v, want %v", expected, want)
		}
	})
}

func TestABetterCandidateThatComesDuringABallotBidsAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		all, ann := w.ballots(1, byPriority)
		i := all[0]
		i.waits(rated("bob", 1))
		i.called()
		i.releases(ann)
		released := time.Now()
		time.Sleep(window / 2)
		i.wants(1, "for bob's bid")
		i.waits(rated("dee", 0))
		i.wants(0, "for one that is not better")
		var asked asks
		i.hooks(asked.hook)
		cy := i.waits(rated("cy", 2))
		i.wants(1, "for a better one")
		if got := asked.first(); got.CandidateID != "cy" || got.InLine.Withdraw != "bob" {
			t.Errorf("the bid is of %s and replaces that of %q", got.CandidateID, got.InLine.Withdraw)
		}
		cy.leads()
		if took := cy.ended.Sub(released); took != window {
			t.Errorf("cy leads after %v, want the window", took)
		}
		i.wants(1, "for the grant")
	})
}

func TestACandidateWhoseBidIsBeingWithdrawnIsNotToldThatItIsTheBest(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		i.elects(byPriority)
		bob := i.waits(rated("bob", 9))
		i.waits(rated("cy", 1))
		hook, begun, release := held()
		defer release()
		i.hooks(hook)
		bob.cancel()
		<-begun // for cy
		again := rated("bob", 9)
		again.Wait = 10 * time.Millisecond
		refusal := i.waits(again).refused(leadership.LeaseHeld)
		if want := "others who stand in line"; !strings.Contains(refusal.Detail, want) || refusal.Cause != nil {
			t.Errorf("bob is told %q, want that %s come first", refusal.Detail, want)
		}
	})
}

func TestAQuorumThatIsKnownCostsACallWithoutAWaitNoSecondTransaction(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance(func(c *line.Config) {
			c.Present = func(leadership.Election, leadership.CandidateID) bool { return true }
		})
		i.elects(quorate)
		_, err := i.hub.Read(t.Context(), leadership.ReadRequest{Election: jobs})
		require.NoError(t, err)
		var asked asks
		i.hooks(asked.hook)
		bob := request("bob")
		bob.Wait = 0
		i.waits(bob).refused(leadership.LeaseHeld)
		if got, want := asked.first().InLine.Quorum.Electorate, quorate.Quorum.Electorate; got != want {
			t.Errorf("the call says that the electorate is %q, want %q", got, want)
		}
	})
}

func TestABidderThatSaysSomethingElseOfItselfBidsAnew(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		all, ann := w.ballots(2, byPriority)
		other := all[1].waits(rated("other", 5))
		i := all[0]
		bob := keyed(rated("bob", 1))
		first := i.waits(bob)
		i.releases(ann)
		time.Sleep(window / 2)
		bob.Priority = 9
		i.waits(bob)
		first.leads()
		other.waiting("though bob is better now")
	})
}

func TestTheBidOfTheLastOfALineIsWithdrawn(t *testing.T) {
	for name, leave := range map[string]func(*instance, *waiter){
		"cancelled": func(_ *instance, bob *waiter) { bob.cancel() },
		"closed": func(i *instance, _ *waiter) {
			assert.NoError(i, i.queue.Close(i.Context(), leadership.StoreUnavailable))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				all, ann := w.ballots(2, byPriority)
				i, other := all[1], all[0]
				bob := i.waits(rated("bob", 9))
				dee := other.waits(rated("dee", 5))
				released := time.Now()
				other.releases(ann)
				time.Sleep(window / 2)
				leave(i, bob)
				dee.leads()
				if took := dee.ended.Sub(released); took < window || took > window+20*time.Millisecond+rule.BidTurn {
					t.Errorf("dee leads after %v, want the window", took)
				}
				assert.EqualValues(t, 1, i.withdrawn.Load(), "bids were withdrawn")
				assert.Zero(t, i.queue.Lines(), "lines are left")
			})
		})
	}
}

func TestABidWhoseWithdrawalFailsIsWithdrawnAgain(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		var tries atomic.Int64
		i := w.instance(func(c *line.Config) {
			do := c.Do
			c.Do = func(ctx context.Context, withdraw leadership.Command) (leadership.Lease, error) {
				if tries.Add(1) == 1 {
					return leadership.Lease{}, leadership.OutcomeUnknown
				}
				return do(ctx, withdraw)
			}
		})
		i.elects(byPriority)
		bob := i.waits(request("bob"))
		bob.cancel()
		time.Sleep(time.Second)
		if n := tries.Load(); n != 2 {
			t.Errorf("the withdrawal was tried %d times, want twice", n)
		}
		assert.Zero(t, i.queue.Lines(), "lines are left")
	})
}

func TestAnIneligibleCandidateIsToldSoAtOnceAndHoldsUpNoOther(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		policy := byPriority
		policy.Require = "gpu"
		i := w.instance()
		i.elects(policy)
		able := func(c leadership.CandidateID, priority int64) leadership.AcquireRequest {
			r := rated(c, priority)
			r.Capabilities = "gpu"
			return r
		}
		g := i.waits(able("ann", 0)).leads()
		bob := i.waits(able("bob", 1))
		time.Sleep(time.Second)
		i.called()
		cy := i.waits(rated("cy", 9))
		cy.after(0, 0)
		cy.refused(leadership.NotEligible)
		i.wants(1, "for one that lacks a capability")
		bob.waiting("behind one that is not eligible")
		i.releases(g)
		synctest.Wait()
		i.wants(1, "for a bid")
		bob.leads()
	})
}

func TestAWitnessIsNeverAskedForWhereACandidateStands(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		policy := leadership.BallotPolicy{Window: leadership.NoWindow}
		all, ann := w.ballots(1, policy)
		i := all[0]
		i.waits(request("zoe"))
		wit := i.waits(attends("wit"))
		bob := i.waits(request("bob"))
		i.called()
		i.releases(ann)
		time.Sleep(time.Second)
		i.wants(1, "for the candidate")
		for _, s := range i.queue.Standing(jobs) {
			if s.CandidateID == "zoe" {
				t.Error("zoe still stands in line")
			}
		}
		bob.waiting("behind zoe")
		wit.waiting("as a witness does")
	})
}

var quorate = leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("bob", "cy", "wit")}}

func TestAMemberThatJoinsTheLineCompletesTheQuorumAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		var i *instance
		i = w.instance(func(c *line.Config) {
			c.Present = func(e leadership.Election, id leadership.CandidateID) bool {
				for _, s := range i.queue.Standing(e) {
					if s.CandidateID == id {
						return true
					}
				}
				return false
			}
		})
		i.elects(quorate)
		bob := i.waits(request("bob"))
		time.Sleep(2*time.Second + time.Millisecond)
		i.called()
		i.waits(attends("wit"))
		bob.leads()
		bob.after(2*time.Second+time.Millisecond, 2*time.Second+time.Millisecond)
		i.wants(1, "for the grant")
	})
}

func TestStandingTellsWhoStandsInLine(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		all, _ := w.ballots(1, byPriority)
		i := all[0]
		before := i.queue.Version()
		bob := i.waits(rated("bob", 1))
		time.Sleep(time.Second)
		i.waits(attends("wit"))
		i.waits(rated("cy", 2))
		want := []line.Stander{
			{CandidateID: "bob", Role: leadership.RoleCandidate, Position: 2, Waited: time.Second},
			{CandidateID: "wit", Role: leadership.RoleWitness},
			{CandidateID: "cy", Role: leadership.RoleCandidate, Position: 1},
		}
		got := i.queue.Standing(jobs)
		if len(got) != len(want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		for n, s := range got {
			if s.CandidateID != want[n].CandidateID || s.Role != want[n].Role || s.Position != want[n].Position || s.Waited != want[n].Waited {
				t.Errorf("got %+v, want %+v", s, want[n])
			}
		}
		if at, of := i.queue.Position(jobs, "bob"); at != 2 || of != 2 {
			t.Errorf("bob is number %d of %d, want 2 of 2", at, of)
		}
		if e := i.queue.Elections(); len(e) != 1 || e[0] != jobs {
			t.Errorf("lines of %v, want of %s", e, jobs)
		}
		if v := i.queue.Version(); v != before+3 {
			t.Errorf("the version went from %d to %d, want one for each that came", before, v)
		}
		bob.cancel()
		synctest.Wait()
		if v := i.queue.Version(); v != before+4 {
			t.Errorf("the version is %d after one has left, want %d", v, before+4)
		}
	})
}

func TestPositionsDoNotTellASecretDraw(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		all, _ := w.ballots(1, leadership.BallotPolicy{Strategy: leadership.StrategyRandom})
		for c := range 10 {
			all[0].waits(request(leadership.CandidateID(fmt.Sprint("agent-", c))))
		}
		for n, s := range all[0].queue.Standing(jobs) {
			if at, _ := all[0].queue.Position(jobs, s.CandidateID); s.Position != n+1 || at != n+1 {
				t.Errorf("number %d of those that came is said to be number %d, and %d", n+1, s.Position, at)
			}
		}
	})
}

// The bid is that of the instance through which the candidate asked last.
func TestACandidateThatComesBackThroughAnotherInstanceKeepsItsBid(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		policy := byPriority
		policy.Window = 20 * time.Second
		all, ann := w.ballots(2, policy)
		bob := keyed(rated("bob", 9))
		first := all[0].waits(bob)
		all[0].releases(ann)
		synctest.Wait()
		released := time.Now()
		time.Sleep(12 * time.Second)
		second := all[1].waits(bob)
		synctest.Wait()
		first.cancel()
		second.leads()
		if took := second.ended.Sub(released); took > policy.Window+100*time.Millisecond {
			t.Errorf("bob leads %v after the first bid, want the window", took)
		}
	})
}

func TestTheBestOfAllInstancesLeadsAfterTheWindow(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		all, ann := w.ballots(3, byPriority)
		for n, i := range all {
			i.waits(rated(leadership.CandidateID(fmt.Sprint("low-", n)), 0))
		}
		best := all[2].waits(rated("best", 9))
		good := all[1].waits(rated("good", 5))
		time.Sleep(2 * time.Second)
		for _, i := range all {
			i.called()
		}
		released := time.Now()
		all[0].releases(ann)
		best.leads()
		if took := best.ended.Sub(released); took < window || took > window+20*time.Millisecond {
			t.Errorf("the best leads %v after the release, want the window", took)
		}
		good.waiting("though it is second")
		time.Sleep(window)
		all[2].wants(2, "for a bid and a grant")
		for _, i := range all[:2] {
			if n := i.called(); n > 2 {
				t.Errorf("the store was asked %d times, want once for a bid, and once if it was the best for a while", n)
			}
		}
		time.Sleep(time.Second)
		for _, i := range all {
			if n := i.called(); n > 1 {
				t.Errorf("the store was asked %d times to learn the end, want once", n)
			}
		}
	})
}
