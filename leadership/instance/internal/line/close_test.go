package line_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

func TestALineThatIsClosedAnswersAllAndFinishesTheAttemptUnderWay(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		hold, begun, release := held()
		i.hooks(hold)
		bob := i.waits(request("bob"))
		<-begun
		kept := i.waits(keyed(request("cy")))
		kept.cancel()
		dee := i.waits(request("dee"))

		draining := errors.New("draining")
		closed := make(chan error)
		go func() { closed <- i.queue.Close(t.Context(), draining) }()
		dee.refused(draining)
		dee.after(0, 0)
		bob.waiting("before its attempt has ended")
		select {
		case <-closed:
			t.Error("closed before all were answered")
		default:
		}
		i.waits(request("eve")).refused(draining)
		release()
		bob.leads()
		start := time.Now()
		if err := <-closed; err != nil || time.Since(start) > 0 {
			t.Errorf("closed with %v after another %v, want at once", err, time.Since(start))
		}
		i.wants(1, "in all")
		assert.NoError(t, i.queue.Close(t.Context(), errors.New("another cause")))
		i.waits(request("eve")).refused(draining)
	})
}

func TestCloseWaitsNoLongerThanItIsTold(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		hold, begun, release := held()
		i.hooks(hold)
		defer release()
		i.waits(request("bob"))
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, i.queue.Close(ctx, errTestOver), context.DeadlineExceeded)
	})
}

func TestAHubThatIsClosedAnswersAllWithItsCause(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		leader := i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(keyed(request("cy")))
		i.called()
		draining := errors.New("draining")
		i.hub.Close(draining)
		for _, c := range []*waiter{bob, cy} {
			c.refused(draining)
			c.after(0, 0)
		}
		i.releases(leader)
		i.waits(request("dee")).refused(draining)
		i.wants(0, "after the hub was closed")
	})
}

func TestEmptyLineIsForgotten(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(keyed(request("cy")))
		bob.cancel()
		cy.cancel()
		<-cy.done
		if synctest.Wait(); i.queue.Lines() != 1 {
			t.Errorf("there are %d lines, want the one in which cy has a place", i.queue.Lines())
		}
		time.Sleep(11 * time.Second)
		if synctest.Wait(); i.queue.Lines() != 0 || i.listened(jobs) || i.listened("") {
			t.Errorf("there are %d lines, want none", i.queue.Lines())
		}
	})
}

func TestClosedLinesAreGoneAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		r := keyed(request("cy"))
		r.Election = "kept"
		_, err := i.Service.Acquire(t.Context(), leadership.AcquireRequest{Election: r.Election, CandidateID: "ann"})
		require.NoError(t, err)
		cy := i.waits(r)
		cy.cancel()
		<-cy.done
		synctest.Wait()
		i.called()
		start := time.Now()
		i.releases(leader) // and bob's turn has come, but:
		if err := i.queue.Close(t.Context(), errTestOver); err != nil || time.Since(start) > 0 {
			t.Errorf("closed with %v after %v, want at once", err, time.Since(start))
		}
		bob.refused(errTestOver)
		i.wants(0, "though a lease was released")
	})
}
