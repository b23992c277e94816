package line_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
)

func TestWaiterThatDisconnectsAsItsTurnComesIsNeverGranted(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		leader := i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		i.called()
		bob.cancel() // and at once, before its goroutine has noticed:
		i.releases(leader)
		bob.refused(leadership.StoreUnavailable)
		if g := cy.leads(); g.Token != leader.Token+1 {
			t.Errorf("cy has token %d, want %d: bob was granted the lease", g.Token, leader.Token+1)
		}
		cy.after(0, 0)
		i.wants(1, "for the one waiter")
	})
}

func TestWaiterThatDisconnectsDuringItsAttemptIsNotGrantedAndTheNextIsTriedAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		hold, begun, release := held()
		i.hooks(hold)
		bob := i.waits(request("bob"))
		<-begun
		cy := i.waits(request("cy"))
		bob.cancel()
		bob.waiting("before its attempt has ended")
		release()
		bob.refused(leadership.StoreUnavailable)
		if g := cy.leads(); g.Token != 1 {
			t.Errorf("cy has token %d, want 1", g.Token)
		}
		cy.after(0, 0)
	})
}

// tooLate goes on after the caller has gone, as a commit does that was on its way.
func tooLate(h hook) hook {
	return func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
		return h(context.WithoutCancel(ctx), r, ask)
	}
}

func TestLeaseWhoseKeyWasNotReturnedIsReleasedAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		hold, begun, release := held()
		i.hooks(tooLate(hold))
		bob := i.waits(request("bob"))
		<-begun
		cy := i.waits(request("cy"))
		bob.cancel()
		release()
		bob.refused(leadership.StoreUnavailable)
		if g := cy.leads(); g.Token != 2 {
			t.Errorf("cy has token %d, want 2, after that of bob", g.Token)
		}
		cy.after(0, 0)
	})
}

func TestALeaseWithAKeyOfTheCallersOwnIsNotReleasedThoughItHasGone(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		hold, begun, release := held()
		i.hooks(tooLate(hold))
		ask := keyed(request("bob"))
		bob := i.waits(ask)
		<-begun
		cy := i.waits(request("cy"))
		bob.cancel()
		release()
		<-bob.done
		cy.waiting("while bob may ask again")
		again := i.waits(ask)
		again.after(0, 0)
		if g := again.leads(); g.Token != 1 {
			t.Errorf("bob has token %d, want 1", g.Token)
		}
		cy.waiting("while bob leads")
	})
}

func TestWaitThatIsOverIsAnsweredWithTheKnownLease(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.leads("ann")
		i.waits(request("cy"))
		time.Sleep(2 * time.Second)
		r := request("bob")
		r.Wait = 3 * time.Second
		bob := i.waits(r)
		refusal := bob.refused(leadership.LeaseHeld)
		bob.after(3*time.Second, 3*time.Second)
		got := refusal.Lease
		const left = lease - 5*time.Second
		if refusal.Reason != leadership.ReasonHeld || got.LeaderID != "ann" || got.ExpiresIn != left || refusal.RetryAfter != left+guard {
			t.Errorf("got %+v with %+v, want %v of ann's lease", refusal, got, left)
		}
		if got.RenewIn != 0 || !got.ReadAt.Equal(time.Now()) {
			t.Errorf("got %+v, want it as of now", got)
		}
		r.CandidateID = "ann"
		if refusal := i.waits(r).refused(leadership.LeaseHeld); refusal.Reason != leadership.ReasonIncarnation {
			t.Errorf("got %+v, want %s", refusal, leadership.ReasonIncarnation)
		}
	})
}

func TestAWaitThatIsOverAfterALeaseElsewhereNamesTheNewLeader(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(latest), w.instance()
		leader := other.leads("ann")
		i.waits(request("cy"))
		r := request("bob")
		r.Wait = time.Second
		bob := i.waits(r)
		time.Sleep(r.Wait - w.delay - 1)
		if _, err := service.New(w.store).Do(t.Context(), leadership.Release{LeaseRequest: of(leader)}); err != nil { // of which i does not hear
			t.Fatal(err)
		}
		other.leads("dee")
		got := bob.refused(leadership.LeaseHeld)
		if got.Lease != nil || !strings.Contains(got.Detail, `"dee" leads election "jobs"`) {
			t.Errorf("got %+v with %+v, want the new leader's name, and no lease: only an event has told of it", got, got.Lease)
		}
	})
}

func TestAWaitThatIsOverDuringTheAttemptIsAnsweredByIt(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		hold, begun, release := held()
		i.hooks(hold)
		r := request("bob")
		r.Wait = time.Second
		bob := i.waits(r)
		<-begun
		r.CandidateID = "cy"
		cy := i.waits(r)
		time.Sleep(2 * time.Second)
		if refusal := cy.refused(leadership.LeaseHeld); refusal.Lease != nil || refusal.Detail == "" {
			t.Errorf("got %+v, want that others come first, for nothing else is known", refusal)
		}
		bob.waiting("before its attempt has ended")
		release()
		bob.leads()
	})
}

func TestCandidateThatAsksAgainInTimeKeepsItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		again time.Duration
		first leadership.CandidateID
	}{
		"in time":  {5 * time.Second, "bob"},
		"too late": {5*time.Second + 1, "cy"},
	} {
		for how, leave := range map[string]func(*waiter){
			"after its wait":              func(*waiter) {},
			"after its connection is cut": func(w *waiter) { w.cancel() },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				alone(t, func(t *testing.T, i *instance) {
					leader := i.leads("ann")
					ask := keyed(request("bob"))
					ask.Wait = time.Second
					bob := i.waits(ask)
					cy := i.waits(request("cy"))
					leave(bob)
					<-bob.done
					time.Sleep(c.again)
					ask.Wait = leadership.MaxWait
					bob = i.waits(ask)
					i.called()
					i.releases(leader)
					line := map[leadership.CandidateID]*waiter{"bob": bob, "cy": cy}
					line[c.first].leads()
					delete(line, c.first)
					for _, other := range line {
						other.waiting("though it comes second")
					}
					i.wants(1, "for the takeover")
				})
			})
		}
	}
}

func TestAPlaceThatIsTakenAgainIsNoLongerKept(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.leads("ann")
		ask := keyed(request("bob"))
		for range 3 {
			bob := i.waits(ask)
			bob.cancel()
			<-bob.done
			require.EqualValues(t, 1, i.queue.Kept(jobs), "places are kept")
		}
		i.waits(ask)
		assert.Zero(t, i.queue.Kept(jobs), "places are kept")
	})
}

func TestTwoCallsOfOneCandidateStandInOnePlace(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		leader := i.leads("ann")
		ask := keyed(request("bob"))
		first := i.waits(ask)
		cy := i.waits(request("cy"))
		time.Sleep(3 * time.Second)
		second := i.waits(ask)
		time.Sleep(time.Second)
		i.called()
		i.releases(leader)
		a, b := first.leads(), second.leads()
		if a.Token != b.Token || a.Key != b.Key || a.Waited != 4*time.Second || b.Waited != time.Second {
			t.Errorf("got %+v and %+v, want one lease after 4 s and 1 s", a, b)
		}
		cy.waiting("though bob leads")
		i.wants(1, "for both calls")
	})
}

// The client counts its deadline from when it sent the call. A lease that was granted before that
// has less left.
func TestACallThatComesDuringTheAttemptCountsTheLeaseFromBefore(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.hooks(func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
			g, err := ask(ctx, r)
			time.Sleep(3 * time.Second) // the reply's way
			return g, err
		})
		ask := keyed(request("bob"))
		first := i.waits(ask)
		time.Sleep(2 * time.Second)
		second := i.waits(ask)
		a, b := first.leads(), second.leads()
		if a.Waited != 0 || a.ExpiresIn != lease {
			t.Errorf("the first got %+v, want all of the lease", a)
		}
		if b.Waited != 0 || b.ExpiresIn != lease-2*time.Second || b.RenewIn != lease/3-2*time.Second {
			t.Errorf("the second got %+v, want 2 s less", b)
		}
	})
}
