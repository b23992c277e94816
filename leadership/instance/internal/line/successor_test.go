package line_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
	"regent/leadership/rule"
)

// handsOver lets the leader name its successor, through this instance.
func (i *instance) handsOver(g leadership.Grant, to leadership.CandidateID, within time.Duration) {
	i.Helper()
	l, err := i.Do(context.Background(), leadership.HandOver{LeaseRequest: of(g), To: to, Within: within})
	require.NoError(i, err)
	i.learns(l)
}

// saysReady lets the successor say that it is ready.
func (i *instance) saysReady(r leadership.AcquireRequest) {
	i.Helper()
	now, err := i.Get(context.Background(), jobs)
	require.NoError(i, err)
	_, err = i.Do(context.Background(), leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: jobs, CandidateID: r.CandidateID, Key: *r.Key, Token: now.Token}})
	require.NoError(i, err)
}

// yields lets the leader stop.
func (i *instance) yields(g leadership.Grant) {
	i.Helper()
	l, err := i.Do(context.Background(), leadership.Yield{LeaseRequest: of(g)})
	require.NoError(i, err)
	i.learns(l)
}

// called returns how often all queues have asked the store since that was asked last.
func (w *cluster) called() (n int64) {
	synctest.Wait()
	for _, i := range w.instances {
		n += i.called()
	}
	return n
}

func TestNoOtherCandidateIsAskedForWhileTheLeaseIsYielded(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		a, b := w.instance(), w.instance()
		ann := a.leads("ann")
		cy := keyed(request("cy"))
		gone := b.waits(cy)
		first := a.waits(request("bob"))
		b.waits(request("dee"))
		a.handsOver(ann, "cy", leadership.DefaultWithin)
		a.saysReady(cy)
		gone.cancel() // killed before the yield
		time.Sleep(time.Second)
		w.called()
		a.yields(ann)
		a.waits(request("eve"))
		b.waits(request("fay"))
		time.Sleep(rule.YieldWindow - time.Millisecond)
		if n := w.called(); n != 0 {
			t.Errorf("the store was asked %d times while the lease was yielded, want 0", n)
		}
		first.waiting("before the end")
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if l, err := a.Get(t.Context(), jobs); err != nil || l.State != leadership.Held || l.LeaderID == "ann" {
			t.Errorf("after the end: %+v, %v; want another leader", l, err)
		}
		if n := w.called(); n > 3 {
			t.Errorf("the store was asked %d times at the end", n)
		}
	})
}

func TestAnotherIncarnationOfTheSuccessorIsRefusedLikeTheOthers(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		ann := i.leads("ann")
		thief := i.waits(keyed(request("cy")))
		cy := keyed(request("cy"))
		i.handsOver(ann, "cy", leadership.DefaultWithin)
		i.saysReady(cy)
		i.called()
		i.yields(ann)
		time.Sleep(time.Second)
		thief.waiting("with another key")
		i.wants(1, "for the candidate with another key")
		waits := i.waits(cy)
		waits.leads()
		waits.after(0, 0)
		i.wants(2, "for the one that is ready, and then for the other, which may have the new lease")
		thief.waiting("with another key")
	})
}

func TestTheKeyOfACandidateIsThatOfTheIncarnationThatWaits(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.leads("ann")
		dead, alive := keyed(request("bob")), keyed(request("bob"))
		wants := func(what string, want leadership.KeyHash) {
			t.Helper()
			if got := i.queue.KeyOf(jobs, "bob"); got != want {
				t.Errorf("%s: another key", what)
			}
		}
		i.waits(request("bob"))
		wants("without a key of its own", leadership.KeyHash{})
		i.waits(dead).cancel()
		synctest.Wait()
		wants("it may be back", dead.Key.Hash())
		i.waits(alive)
		wants("it was started anew", alive.Key.Hash())
		i.waits(keyed(request("bob")))
		wants("another comes later", alive.Key.Hash())
	})
}

// saysReadyHere is saysReady as the API does it: the instance learns what the store has answered.
func (i *instance) saysReadyHere(r leadership.AcquireRequest) {
	i.Helper()
	l, err := i.Do(context.Background(), leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: jobs, CandidateID: r.CandidateID, Key: *r.Key, Token: 1}})
	require.NoError(i, err)
	i.hub.Learn(&l, view.Read, i.hub.Now())
}

// deaf starts instances that hear nothing of each other.
func (w *cluster) deaf() (a, b, c *instance) {
	w.delay = 24 * time.Hour
	a, b, c = w.instance(), w.instance(), w.instance()
	for _, i := range w.instances {
		i.hub.SetLive(false)
	}
	return a, b, c
}

func TestWithoutEventsASuccessorAtAnotherInstanceLeadsHalfASecondAfterTheYield(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		a, b, c := w.deaf()
		ann := a.leadsFor("ann", 10*time.Minute)
		b.waits(request("dee"))
		cy := keyed(request("cy"))
		waits := b.waits(cy)
		bob := c.waits(request("bob"))
		a.handsOver(ann, "cy", 5*time.Minute)
		time.Sleep(8 * time.Second) // the next poll tells of the hand-over
		w.called()
		b.saysReadyHere(cy)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		synctest.Wait()
		if n := b.called(); n < 18 || n > 22 {
			t.Errorf("in 10 s the successor's instance has asked the store %d times, want once in half a second", n)
		}
		if n := c.called(); n > 2 {
			t.Errorf("in 10 s another instance has asked the store %d times, want once in 5 s", n)
		}
		before := time.Now()
		a.yields(ann)
		time.Sleep(time.Second)
		waits.leads()
		if took := waits.ended.Sub(before); took > 500*time.Millisecond {
			t.Errorf("the successor leads %v after the yield, want half a second at most", took)
		}
		bob.waiting("by the hand-over")
	})
}

func TestAHandOverThatIsNeverYieldedCostsABoundedNumberOfLooks(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		a, b, _ := w.deaf()
		ann := a.leadsFor("ann", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cy := keyed(request("cy"))
		go func() {
			for ctx.Err() == nil {
				b.queue.Acquire(ctx, cy)
			}
		}()
		synctest.Wait()
		a.handsOver(ann, "cy", leadership.MaxWithin)
		time.Sleep(10 * time.Minute)
		b.saysReadyHere(cy)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := b.called(); n < 400 || n > 240+18*60/5 {
			t.Errorf("the store was asked %d times in 20 minutes, want 240 times for the hand-over in two of them and about once in 5 s in the others", n)
		}
	})
}

func TestAWaitThatEndsDuringAHandOverSaysSo(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		ann := i.leads("ann")
		cy, bob := keyed(request("cy")), request("bob")
		bob.Wait = 3 * time.Second
		other := i.waits(bob)
		i.handsOver(ann, "cy", 20*time.Second)
		i.saysReady(cy)
		i.yields(ann)
		refusal := other.refused(leadership.LeaseHeld)
		if s := refusal.Lease.Succession; refusal.Reason != leadership.ReasonHeld || s.To != "cy" || !s.Ready || !s.Yielded {
			t.Errorf("another candidate was told %+v: %v", s, refusal)
		}
	})
}

func TestTheSuccessorIsAskedForAtOnceWhereverItStands(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		ann := i.leads("ann")
		bob := i.waits(request("bob"))
		cy := keyed(request("cy"))
		waits := i.waits(cy)
		dee := i.waits(request("dee"))
		i.handsOver(ann, "cy", leadership.DefaultWithin)
		time.Sleep(time.Second)
		i.saysReady(cy)
		time.Sleep(time.Second)
		i.called()
		before := time.Now()
		i.yields(ann)
		if g := waits.leads(); g.Token != ann.Token+1 {
			t.Errorf("token %d, want %d", g.Token, ann.Token+1)
		}
		if took := waits.ended.Sub(before); took != 0 {
			t.Errorf("the successor leads %v after the yield, want at once", took)
		}
		i.wants(1, "for the successor")
		bob.waiting("by the hand-over")
		dee.waiting("by the hand-over")
	})
}
