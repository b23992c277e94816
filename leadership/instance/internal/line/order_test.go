package line_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
)

func TestAVacantElectionIsGrantedAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		g := i.waits(request("ann")).leads()
		if g.Waited != 0 || g.Token != 1 || g.Key == (leadership.Key{}) {
			t.Errorf("got %+v, want token 1 without a wait, and a key", g)
		}
		i.wants(1, "for a vacant election")
	})
}

func TestWithoutAWaitTheStoreIsAskedAtOnceAndTheLineLearnsTheAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		g := i.leads("ann")
		i.waits(request("bob"))
		i.wants(1, "as bob joins")
		time.Sleep(lease / 2)
		r := request("cy")
		r.Wait = 0
		if _, err := i.queue.Acquire(t.Context(), r); !errors.Is(err, leadership.LeaseHeld) {
			t.Fatalf("cy got %v, want %v", err, leadership.LeaseHeld)
		}
		r = request("ann")
		r.Wait, r.Key = 0, &g.Key
		if again, err := i.queue.Acquire(t.Context(), r); err != nil || again.Token != g.Token {
			t.Fatalf("ann got %+v, %v; want her own lease", again, err)
		}
		i.wants(2, "by those who do not wait")
		time.Sleep(lease - time.Second)
		i.wants(0, "until the end that ann's second call has moved")
	})
}

func TestARequestThatCannotBeIsRefusedAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		i.leads("ann")
		i.waits(request("bob"))
		i.called()
		r := request("no such name!")
		i.waits(r).refused(leadership.InvalidArgument)
		r = request("cy")
		r.Wait = leadership.MaxWait + 1
		i.waits(r).refused(leadership.InvalidArgument)
		i.wants(0, "for requests that cannot be")
	})
}

func TestTheFirstToComeIsTheFirstToLead(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		const n = 20
		var line []*waiter
		for c := range n {
			line = append(line, i.waits(request(leadership.CandidateID(fmt.Sprint("agent-", c)))))
		}
		i.wants(1, "by the first of the line")
		for c, next := range line {
			i.releases(leader)
			leader = next.leads()
			synctest.Wait()
			i.wants(1, "at a takeover")
			if leader.Token != leadership.Token(c+2) {
				t.Fatalf("%s has token %d, want %d", next.candidate, leader.Token, c+2)
			}
		}
	})
}

func TestTenThousandWaitersCostOneAttemptForEachTakeover(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		const n = 10_000
		line := make([]*waiter, n)
		line[0] = i.waits(request("agent-0"))
		for c := 1; c < n; c++ {
			line[c] = i.begins(request(leadership.CandidateID(fmt.Sprint("agent-", c))))
		}
		synctest.Wait()
		i.wants(1, "as the line begins")
		for range 4 {
			time.Sleep(lease / 3)
			i.renews(leader)
		}
		i.wants(0, "while they wait and the leader renews")

		i.releases(leader)
		synctest.Wait()
		i.wants(1, "after the release")
		leader = leading(t, line)
		time.Sleep(lease / 3)
		i.wants(0, "while the next leads")

		i.renews(leader)
		time.Sleep(lease + time.Second)
		i.wants(1, "after the leader died")
		leading(t, line)
	})
}

// leading returns the grant of the one who leads by the last token.
func leading(t *testing.T, line []*waiter) (leader leadership.Grant) {
	t.Helper()
	synctest.Wait()
	for _, w := range line {
		select {
		case <-w.done:
			if w.grant.Token > leader.Token {
				leader = w.grant
			}
		default:
		}
	}
	if leader.Token == 0 {
		t.Fatal("no candidate was granted the lease")
	}
	return leader
}

func TestAfterAReleaseHereTheNextLeadsAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		time.Sleep(7 * time.Second)
		i.releases(leader)
		if g := bob.leads(); g.Waited != 7*time.Second {
			t.Errorf("bob has waited %v, want 7s", g.Waited)
		}
		bob.after(7*time.Second, 7*time.Second)
	})
}

func TestAfterAReleaseElsewhereTheNextLeadsWithinMilliseconds(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := other.leads("ann")
		bob := i.waits(request("bob"))
		time.Sleep(7 * time.Second)
		other.releases(leader)
		bob.after(7*time.Second+w.delay, 7*time.Second+w.delay+10*time.Millisecond)
		bob.leads()
	})
}

func TestAfterADeathTheNextLeadsAtTheEndAndNotBefore(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		i.wants(1, "as bob joins")
		time.Sleep(lease / 3)
		i.renews(leader)
		bob.after(lease/3+lease+guard, lease/3+lease+guard+100*time.Millisecond)
		bob.leads()
		i.wants(1, "for the takeover")
	})
}

func TestALeaseThatIsGrantedAfterTheFirstRefusalIsWaitedForWithTheGuard(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		bob.leads()
		cy.leads()
		cy.after(2*(lease+guard), 2*(lease+guard+100*time.Millisecond))
		i.wants(3, "for a refusal and two takeovers")
	})
}

func TestALockDelayIsWaitedForWithoutAsking(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		const delay = 9 * time.Second
		i.locks(delay)
		i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		i.wants(1, "as bob joins")
		time.Sleep(lease + time.Second)
		if _, err := i.Expire(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		bob.after(lease+delay+guard, lease+delay+guard+100*time.Millisecond)
		bob.leads()
		i.wants(1, "for the takeover")
		cy.leads()
		i.wants(1, "for the next takeover, after another lock delay")
	})
}

func TestALockDelayThatRunsAlreadyIsWaitedFor(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		const delay = 9 * time.Second
		i.locks(delay)
		i.leads("ann")
		time.Sleep(lease + time.Second)
		bob := i.waits(request("bob"))
		bob.after(delay-time.Second+guard, delay-time.Second+guard+100*time.Millisecond)
		bob.leads()
		i.wants(2, "as bob joins, and for the takeover")
	})
}

func TestTwoInstancesAskOnceEachForEachTakeoverAndOneWins(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		a, b := w.instance(), w.instance()
		leader := a.leads("ann")
		line := []*waiter{a.waits(request("a-1")), b.waits(request("b-1")), a.waits(request("a-2")), b.waits(request("b-2"))}
		a.wants(1, "as a's line begins")
		b.wants(1, "as b's line begins")

		a.releases(leader)
		line[0].leads()
		time.Sleep(2 * time.Second)
		a.wants(1, "at a, after a release through it")
		b.wants(1, "at b, after a release through a")

		time.Sleep(lease) // a-1 is dead
		a.wants(1, "at a, after a death")
		b.wants(1, "at b, after a death")
		won := 0
		for _, c := range line[1:] {
			if c.answered() {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d candidates lead, want 1", won)
		}
	})
}

func TestLeaderThatCallsAgainDoesNotWaitForItsOwnLease(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		ask := keyed(request("ann"))
		g := i.waits(ask).leads()
		i.waits(request("bob"))
		i.called()
		time.Sleep(time.Second)
		again := i.waits(ask)
		again.after(0, 0)
		if got := again.leads(); got.Token != g.Token || got.Waited != 0 {
			t.Errorf("got %+v, want the lease of token %d", got, g.Token)
		}
		i.wants(1, "for the call that was repeated")
		time.Sleep(lease - time.Second)
		i.wants(0, "until the end that it has moved")
	})
}

func TestLeaderOfAnotherInstanceDoesNotWaitForItsOwnLease(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(latest), w.instance()
		leader := other.leads("ann")
		i.waits(request("bob"))
		other.releases(leader)
		ask := keyed(request("cy"))
		g, err := other.Service.Acquire(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(w.delay + time.Millisecond)
		i.called()
		cy := i.waits(ask)
		cy.after(0, 0)
		if got := cy.leads(); got.Token != g.Token {
			t.Errorf("got %+v, want the lease of token %d", got, g.Token)
		}
		i.wants(1, "for the leader")
	})
}

// A server that is stopped makes its callers hang up; its attempt is done all the same.
func TestALeaderThatReturnsDuringARivalsAttemptDoesNotWaitForItsOwnLease(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		ask := keyed(request("bob"))
		bob, cy := i.waits(ask), i.waits(request("cy"))
		stopped, sent, goOn := slowly()
		i.hooks(tooLate(func(ctx context.Context, r leadership.AcquireRequest, _ acquire) (leadership.Grant, error) {
			stopped(ctx, r, leadership.New(w.store).Acquire) // of an unknown outcome there is no event yet
			return leadership.Grant{}, errLost
		}))
		i.releases(leader)
		<-sent
		bob.cancel()
		hold, asked, answer := held()
		i.hooks(hold)
		goOn()
		<-asked
		again := i.waits(ask)
		answer()
		again.after(0, 0)
		if g := again.leads(); g.Token != 2 {
			t.Errorf("got %+v, want the lease of the first attempt", g)
		}
		cy.waiting("though bob leads")
	})
}

func TestALeaderThatIsHeardOfWhileItStandsInLineIsAnsweredAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(latest), w.instance()
		leader := i.leads("ann")
		ask := keyed(request("bob"))
		cy, bob := i.waits(request("cy")), i.waits(ask)
		other.releases(leader)
		g, err := other.Service.Acquire(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		i.called()
		bob.after(0, 2*w.delay)
		if got := bob.leads(); got.Token != g.Token {
			t.Errorf("got %+v, want the lease of token %d", got, g.Token)
		}
		cy.waiting("though bob leads")
		time.Sleep(lease - time.Second)
		i.wants(1, "for the leader, and nothing after that")
	})
}

func TestAnIncarnationThatWaitsIsAskedForOnceWhenAnotherOneLeads(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		i.waits(request("cy"))
		waiting := []*waiter{i.waits(keyed(request("bob"))), i.waits(keyed(request("bob")))}
		i.called()
		i.releases(leader)
		g := i.leads("bob")
		synctest.Wait()
		i.wants(2, "once for each of the others")
		for range 12 {
			time.Sleep(lease / 4)
			i.renews(g)
		}
		i.wants(0, "while a third one leads and renews")
		for _, bob := range waiting {
			bob.waiting("while a third one leads")
		}
	})
}

func TestAnotherIncarnationOfTheLeaderWaitsLikeEveryoneElse(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		other := i.waits(keyed(request("ann")))
		other.waiting("while ann leads with another key")
		nameless := i.waits(request("ann"))
		nameless.waiting("while ann leads with another key")
		i.wants(2, "as bob joins, and by the one that may have been the leader")
		i.releases(leader)
		i.releases(bob.leads())
		i.releases(other.leads())
		nameless.leads()
	})
}

func TestFormerLeaderDoesNotJumpTheLine(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance(func(c *line.Config) { c.Jitter = func(limit time.Duration) time.Duration { return limit - 1 } })
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		time.Sleep(lease + guard)
		r := request("ann")
		r.Key = &leader.Key
		i.waits(r).waiting("before bob")
		bob.leads()
	})
}
