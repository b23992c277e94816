package line_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
)

func TestOldNewsMovesNothing(t *testing.T) {
	for name, old := range map[string]func(leadership.Lease) leadership.Lease{
		"a reply to an earlier renewal": func(l leadership.Lease) leadership.Lease {
			l.LeaseExpiration = l.LeaseExpiration.Add(-time.Second)
			l.ExpiresIn = time.Second
			return l
		},
		"a reply that was long on its way": func(l leadership.Lease) leadership.Lease {
			l.ExpiresIn = time.Hour
			return l
		},
		"an older revision": func(l leadership.Lease) leadership.Lease {
			return leadership.Lease{Election: jobs, State: leadership.Vacant, Revision: l.Revision - 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, i *instance) {
				leader := i.leads("ann")
				bob := i.waits(request("bob"))
				time.Sleep(lease / 3)
				l, err := i.Renew(t.Context(), of(leader))
				if err != nil {
					t.Fatal(err)
				}
				i.learns(l)
				i.learns(old(l))
				bob.after(lease/3+lease+guard, lease/3+lease+guard+100*time.Millisecond)
				i.wants(2, "as bob joins, and for the takeover")
			})
		})
	}
}

func TestALeaseThatIsOverIsNotHeldAgain(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		const delay = 5 * time.Second
		i.locks(delay)
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		i.called()
		time.Sleep(lease + time.Second)
		l, err := i.Get(t.Context(), jobs)
		if err != nil || !l.Lapsed {
			t.Fatalf("got %+v, %v; want a lease that has run out unseen", l, err)
		}
		i.learns(l)
		i.learns(leader.Lease)
		if _, err := i.Expire(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		if refusal := i.waits(briefly(request("cy"))).refused(leadership.LeaseHeld); refusal.RetryAfter != delay-time.Second+guard-brief {
			t.Errorf("got %+v, want the remaining lock delay", refusal)
		}
		bob.after(lease+delay+guard, lease+delay+guard+100*time.Millisecond)
		i.wants(1, "for the takeover")
	})
}

func TestHeadsOfDifferentInstancesKeepApart(t *testing.T) {
	const most = 100*time.Millisecond - 1
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance(latest)
		leader := i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		time.Sleep(time.Second)
		i.renews(leader)
		bob.after(time.Second+lease+guard+most, time.Second+lease+guard+most)
		bob.leads()
		cy.after(time.Second+2*(lease+guard+most), time.Second+2*(lease+guard+most))
	})
}

func TestWhatPutsOffTheHeadDoesNotPutOffAReleaseThatWasHeard(t *testing.T) {
	for name, distract := range map[string]func(*instance){
		"a configuration": func(i *instance) {
			_, err := i.Configure(i.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: leadership.ConfigureCommand{
				Config: leadership.Config{LeaseDuration: time.Minute},
			}})
			if err != nil {
				i.Fatal(err)
			}
		},
		"the hub beginning anew": func(i *instance) { i.instances[0].hub.SetLive(true) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i, other := w.instance(latest), w.instance()
				leader := other.leads("ann")
				bob := i.waits(request("bob"))
				other.releases(leader)
				time.Sleep(w.delay + time.Millisecond)
				distract(other)
				bob.after(0, 2*w.delay+10*time.Millisecond)
				bob.leads()
			})
		})
	}
}

func TestAfterASuspensionTheHeadAsksSoon(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.leadsFor("ann", time.Hour)
		i.waits(request("bob"))
		i.called()
		i.suspended.Store(int64(2 * time.Hour))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		i.wants(1, "though timers stood still")
	})
}

func TestDeletedElectionAnswersAllWaitersWithOneCall(t *testing.T) {
	for name, here := range map[string]bool{"here": true, "elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, i *instance) {
				i.leads("ann")
				var line []*waiter
				for c := range 100 {
					line = append(line, i.waits(request(leadership.CandidateID(fmt.Sprint("agent-", c)))))
				}
				i.called()
				l := i.deletes()
				if here {
					synctest.Wait()
					i.learns(l)
				}
				for _, c := range line {
					c.refused(leadership.ElectionDeleted)
					c.after(0, 10*time.Millisecond)
				}
				i.wants(1, "after the deletion")
			})
		})
	}
}

func TestCorruptRecordAnswersAllWaitersWithOneCall(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		leader := i.leads("ann")
		first := keyed(request("bob"))
		first.Wait = time.Second
		bob := i.waits(first)
		line := []*waiter{i.waits(request("cy")), i.waits(request("dee"))}
		bob.refused(leadership.LeaseHeld)
		i.called()
		i.hooks(always(leadership.Corrupt(jobs, errors.New("moths"))))
		i.releases(leader)
		for _, c := range line {
			c.refused(leadership.RecordCorrupt)
		}
		i.wants(1, "for all who wait")
	})
}
