package line_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
)

var (
	errDown = fmt.Errorf("%w: no route", leadership.StoreUnavailable)
	errLost = fmt.Errorf("%w: the reply was lost", leadership.OutcomeUnknown)
)

// fails is a hook by which attempts end with these errors, one after the other, and then as they
// would. Those whose outcome is unknown are done all the same.
func fails(errs ...error) hook {
	return func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
		if len(errs) == 0 {
			return ask(ctx, r)
		}
		err := errs[0]
		errs = errs[1:]
		if errors.Is(err, leadership.OutcomeUnknown) {
			ask(ctx, r)
		}
		return leadership.Grant{}, err
	}
}

func always(err error) hook {
	return func(context.Context, leadership.AcquireRequest, acquire) (leadership.Grant, error) {
		return leadership.Grant{}, err
	}
}

func TestAnAttemptWhoseOutcomeIsUnknownIsRepeatedWithTheSameKey(t *testing.T) {
	for name, c := range map[string]struct {
		ask     leadership.AcquireRequest
		telling bool
	}{
		"of its own":                       {keyed(request("bob")), false},
		"drawn":                            {request("bob"), false},
		"drawn, and the queue hears of it": {request("bob"), true},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, i *instance) {
				i.telling.Store(c.telling)
				leader := i.leads("ann")
				bob, cy := i.waits(c.ask), i.waits(request("cy"))
				i.called()
				i.hooks(fails(errLost))
				time.Sleep(time.Second)
				i.releases(leader)
				bob.after(1100*time.Millisecond, 1200*time.Millisecond)
				g := bob.leads()
				if g.Token != 2 || c.ask.Key != nil && g.Key != *c.ask.Key || g.Waited != bob.ended.Sub(bob.began) {
					t.Errorf("got %+v, want the lease of the first attempt, counted from the second", g)
				}
				cy.waiting("though bob leads")
				time.Sleep(2 * time.Second)
				i.wants(2, "for two attempts")
			})
		})
	}
}

// errElsewhere is the refusal of a candidate that does not lead the election which its via names:
// the store was not asked for the lease.
var errElsewhere = &leadership.Error{Code: leadership.NotEligible, Detail: "it does not lead there"}

func TestARefusalElsewhereDoesNotSettleAnAttemptOfUnknownOutcome(t *testing.T) {
	for name, ask := range map[string]leadership.AcquireRequest{"a key of its own": keyed(request("bob")), "a drawn key": request("bob")} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, i *instance) {
				leader := i.leads("ann")
				bob, cy := i.waits(ask), i.waits(request("cy"))
				i.hooks(fails(errLost, errElsewhere))
				i.releases(leader)
				time.Sleep(time.Second)
				bob.refused(leadership.OutcomeUnknown)
				time.Sleep(time.Second)
				if ask.Key != nil { // bob leads, and may ask again
					cy.waiting("though bob leads")
					i.waits(ask).leads()
					return
				}
				cy.leads()
				assert.EqualValues(t, 1, i.given.Load(), "leases were given back")
			})
		})
	}
}

func TestAWaitThatIsOverWithoutKnowingWhatWasDoneSaysSo(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.hooks(fails(errLost, errDown, errDown, errDown, errDown, errDown))
		ask := keyed(request("bob"))
		ask.Wait = time.Second
		i.waits(ask).refused(leadership.OutcomeUnknown)
		i.hooks(always(errDown))
		i.waits(ask).refused(leadership.OutcomeUnknown)
		i.hooks(nil)
		ask.Wait = leadership.MaxWait
		if g := i.waits(ask).leads(); g.Token != 1 {
			t.Errorf("got %+v, want the lease of the first attempt", g)
		}
	})
}

func TestLeaseOfAnUnknownAttemptIsReleasedIfItsKeyWasNotReturned(t *testing.T) {
	for name, c := range map[string]struct {
		ask  leadership.AcquireRequest
		errs []error
		free bool
	}{
		"drawn":                             {request("bob"), []error{errLost}, true},
		"drawn, and the store was down":     {request("bob"), []error{errLost, errDown, errDown}, true},
		"a key of the candidate's own":      {keyed(request("bob")), []error{errLost}, false},
		"drawn, and the wait was over":      {briefly(request("bob")), []error{errLost, errDown, errDown}, true},
		"of its own, and the wait was over": {briefly(keyed(request("bob"))), []error{errLost, errDown, errDown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, i *instance) {
				i.hooks(fails(c.errs...))
				bob, cy := i.waits(c.ask), i.waits(request("cy"))
				if c.ask.Wait == leadership.MaxWait {
					bob.cancel()
				}
				bob.refused(leadership.OutcomeUnknown)
				time.Sleep(2 * time.Second)
				if !c.free {
					cy.waiting("while bob may ask again")
					return
				}
				cy.after(0, 2*time.Second)
				if g := cy.leads(); g.Token != 2 {
					t.Errorf("got %+v, want token 2, after that of bob", g)
				}
			})
		})
	}
}

const brief = 50 * time.Millisecond

// briefly is the request with a wait that is over before an attempt is repeated.
func briefly(r leadership.AcquireRequest) leadership.AcquireRequest {
	r.Wait = brief
	return r
}

func TestWhileTheStoreIsDownOneHeadAsksAgainAndAgainAtLongerIntervals(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance(latest)
		leader := i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		i.called()
		i.hooks(always(errDown))
		i.releases(leader)
		synctest.Wait()
		i.wants(1, "at the release")
		for _, pause := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000} {
			time.Sleep(pause * time.Millisecond)
			i.wants(1, "after a longer pause")
		}
		i.hooks(nil)
		time.Sleep(5 * time.Second)
		bob.leads()
		cy.waiting("though bob leads")
		i.wants(1, "once the store was up again")
	})
}

func TestAWaitThatIsOverWhileTheStoreIsDownSaysSo(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.hub.SetLive(false)
		leader := i.leads("ann")
		i.waits(request("bob"))
		i.hooks(always(errDown))
		r := request("cy")
		r.Wait = 8 * time.Second
		cy := i.waits(r)
		r.CandidateID = "dee"
		r.Wait = 9 * time.Second
		dee := i.waits(r)
		cy.refused(leadership.StoreUnavailable)
		i.renews(leader) // it is up again
		if refusal := dee.refused(leadership.LeaseHeld); refusal.RetryAfter != lease-time.Second+guard {
			t.Errorf("got %+v, want the remaining time of the lease", refusal)
		}
	})
}

// A candidate whose rights have gone, or whose lease the policy allows no more, holds up none that
// is behind it.
func TestAnErrorOfTheCandidatesOwnIsItsAlone(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		leader := i.leads("ann")
		errOwn := &leadership.Error{Code: leadership.InvalidArgument}
		var refused []*waiter
		var errs []error
		for n := range 20 {
			refused, errs = append(refused, i.waits(request(leadership.CandidateID(fmt.Sprint("bob-", n))))), append(errs, errOwn)
		}
		cy := i.waits(request("cy"))
		i.hooks(fails(errs...))
		i.releases(leader)
		for _, bob := range refused {
			bob.refused(errOwn)
		}
		cy.after(0, 200*time.Millisecond)
		cy.leads()
	})
}

func TestAPanicIsTheCallersAndTheLineGoesOn(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		leader := i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		i.hooks(once(func(context.Context, leadership.AcquireRequest, acquire) (leadership.Grant, error) {
			panic("moths")
		}))
		i.releases(leader)
		if <-bob.done; bob.panicked != "moths" {
			t.Errorf("bob got %v, want the panic", bob.panicked)
		}
		cy.after(100*time.Millisecond, 200*time.Millisecond)
		cy.leads()
	})
}

func TestAnAttemptIsBounded(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.hooks(once(func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
			<-ctx.Done()
			return leadership.Grant{}, errDown
		}))
		bob := i.waits(request("bob"))
		bob.after(10100*time.Millisecond, 10200*time.Millisecond)
		bob.leads()
	})
}

func TestARefusalThatSaysNothingIsNotRepeatedAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.hooks(always(leadership.LeaseHeld))
		i.waits(request("bob"))
		time.Sleep(20 * time.Second)
		if n := i.called(); n > 100 {
			t.Errorf("the store was asked %d times in 20 s", n)
		}
	})
}

func TestWhileEventsMayBeMissedTheHeadAsksFromTimeToTime(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		silent := service.New(w.store) // its events are not announced
		leader, err := silent.Acquire(t.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "ann", LeaseDuration: time.Minute})
		require.NoError(t, err)
		bob := i.waits(request("bob"))
		i.waits(request("cy"))
		i.called()
		time.Sleep(20 * time.Second)
		i.wants(0, "while the hub is live")
		i.hub.SetLive(false)
		time.Sleep(20 * time.Second)
		if n := i.called(); n < 3 || n > 4 {
			t.Errorf("the store was asked %d times in 20 s, want once in 5 s", n)
		}
		_, err = silent.Do(t.Context(), leadership.Release{LeaseRequest: of(leader)})
		require.NoError(t, err)
		bob.after(40*time.Second, 40*time.Second+5*time.Second*5/4)
		bob.leads()
	})
}
