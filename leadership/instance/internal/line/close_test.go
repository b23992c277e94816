package line_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
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
		if err := i.queue.Close(t.Context(), errors.New("another cause")); err != nil {
			t.Error(err)
		}
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
		if err := i.queue.Close(ctx, errTestOver); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
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
