package line_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

const part = jobs + ".part"

// delegates lets the leader make the election part.
func (i *instance) delegates(g leadership.Grant) {
	i.Helper()
	r := leadership.DelegateRequest{LeaseRequest: of(g), Child: "part", Limits: leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: leadership.AsParent}}
	_, err := i.Delegate(i.Context(), r)
	require.NoError(i, err)
}

func inPart(r leadership.AcquireRequest) leadership.AcquireRequest {
	r.Election = part
	return r
}

func TestCandidatesOfAPartLeadOnceItsParentHasALeader(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		a, b := w.instance(), w.instance()
		ann := a.leads("ann")
		a.delegates(ann)
		a.releases(ann)
		var waiting []*waiter
		for n := range 20 {
			waiting = append(waiting, w.instances[n%2].waits(inPart(request(leadership.CandidateID(fmt.Sprint("agent-", n))))))
		}
		time.Sleep(50 * time.Second)
		if n := w.called(); n > 2*7 {
			t.Errorf("the store was asked %d times in 50 s without a leader of the parent, want 7 times by each of two instances at most", n)
		}
		b.leads("bob")
		before := time.Now()
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		led := 0
		for _, one := range waiting {
			if one.answered() {
				one.leads()
				led++
				if took := one.ended.Sub(before); took > 30*time.Millisecond {
					t.Errorf("a candidate leads %v after the parent has a leader", took)
				}
			}
		}
		assert.EqualValues(t, 1, led, "candidates lead")
		if n := w.called(); n > 2 {
			t.Errorf("the store was asked %d times for it, want once by each instance at most", n)
		}
	})
}

func TestALineForgetsItsParentWhenItEnds(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		ann := i.leads("ann")
		i.delegates(ann)
		i.releases(ann)
		one := i.waits(inPart(request("bob")))
		assert.True(t, i.listened(jobs), "the line does not listen to its parent")
		one.cancel()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if i.listened(jobs) || i.listened(part) {
			t.Error("a line that is over still listens")
		}
	})
}
