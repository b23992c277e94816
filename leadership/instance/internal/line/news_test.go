package line_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

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
			_, err := i.Do(i.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{LeaseDuration: time.Minute}})
			require.NoError(i, err)
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
		i.hooks(always(rule.Corrupt(jobs, errors.New("moths"))))
		i.releases(leader)
		for _, c := range line {
			c.refused(leadership.RecordCorrupt)
		}
		i.wants(1, "for all who wait")
	})
}
