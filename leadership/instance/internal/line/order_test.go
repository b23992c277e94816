package line_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
)

func TestWithoutAWaitTheStoreIsAskedAtOnceAndTheLineLearnsTheAnswer(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		g := i.leads("ann")
		i.waits(request("bob"))
		i.wants(1, "as bob joins")
		time.Sleep(lease / 2)
		r := request("cy")
		r.Wait = 0
		_, err := i.queue.Acquire(t.Context(), r)
		require.ErrorIs(t, err, leadership.LeaseHeld, "cy")
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
	alone(t, func(t *testing.T, i *instance) {
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

func TestTenThousandWaitersCostOneAttemptForEachTakeover(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
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
	alone(t, func(t *testing.T, i *instance) {
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

func TestALockDelayIsWaitedForWithoutAsking(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		const delay = 9 * time.Second
		i.locks(delay)
		i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		i.wants(1, "as bob joins")
		time.Sleep(lease + time.Second)
		_, err := i.Expire(t.Context(), jobs)
		require.NoError(t, err)
		bob.after(lease+delay+guard, lease+delay+guard+100*time.Millisecond)
		bob.leads()
		i.wants(1, "for the takeover")
		cy.leads()
		i.wants(1, "for the next takeover, after another lock delay")
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
			stopped(ctx, r, service.New(w.store).Acquire) // of an unknown outcome there is no event yet
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

func TestAnotherIncarnationOfTheLeaderWaitsLikeEveryoneElse(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
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
