package instance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/store/storetest"
)

// halts halts all elections whose names begin with "jobs", or ends that.
func (c *cluster) halts(on *instance.Instance, kind leadership.OrderKind) {
	c.Helper()
	o := leadership.Order{Election: "jobs*", Kind: kind, Reason: "poisoned", Actor: "olga"}
	if kind == leadership.OrderHalt {
		o.For = time.Hour
	}
	_, err := on.Do(c.Context(), o)
	require.NoError(c, err)
	synctest.Wait()
}

// wantHalted asks for the lease, and expects the refusal for a halt.
func (c *cluster) wantHalted(on *instance.Instance, candidate leadership.CandidateID) {
	c.Helper()
	_, err := on.Acquire(c.Context(), c.ask(candidate, 0))
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Code != leadership.LeaseHeld || refusal.Reason != leadership.ReasonHalted || refusal.RetryAfter <= 0 ||
		refusal.Cause.Elections != "jobs*" || refusal.Cause.Actor != "olga" || refusal.Cause.Because != "poisoned" {
		c.Errorf("got %+v, want %s for olga's halt of jobs*", err, leadership.ReasonHalted)
	}
}

func TestAHaltIsObeyedAtOnceWhereItIsHeardAndWithinFiveSecondsElsewhere(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.release(c.b, c.lead(c.b, "ann")) // b knows that there is no halt
		c.halts(c.a, leadership.OrderHalt)
		c.wantHalted(c.a, "ann")
		c.wantHalted(c.b, "ann")
		_, err := c.b.Acquire(t.Context(), leadership.AcquireRequest{Election: "other", CandidateID: "ann"})
		assert.NoError(t, err, "an election of another name")
		c.halts(c.b, leadership.OrderUnhalt)
		lease := c.lead(c.a, "ann")

		c.lead(c.b, "ann") // b has read the halts just now
		c.bus.setCut(true)
		c.halts(c.a, leadership.OrderHalt)
		c.renew(c.b, lease, 20*time.Second) // leaders go on
		if g, err := c.b.Acquire(t.Context(), c.ask("ann", 0)); err != nil || g.Token != lease.Token {
			t.Errorf("a leader that asks again gets %+v, %v", g, err)
		}
		c.release(c.a, lease)
		c.wantHalted(c.b, "ann")
	})
}

func TestAHaltIsObeyedWithinFiveSecondsWhateverTheCacheExpiry(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		begin := time.Now()
		deaf, err := instance.New(instance.Config{Store: c.store, CacheExpiry: instance.MaxCacheExpiry, Now: func() time.Duration { return time.Since(begin) }})
		require.NoError(t, err)
		c.release(deaf, c.lead(deaf, "ann")) // it knows that there is none
		c.halts(c.a, leadership.OrderHalt)
		time.Sleep(5 * time.Second)
		c.wantHalted(deaf, "ann")
	})
}

func TestTheHaltsCostAGrantNothingWhileTheyAreCached(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.release(c.b, c.lead(c.b, "ann"))
		for _, halted := range []bool{false, true} {
			if halted {
				c.halts(c.a, leadership.OrderHalt)
				c.wantHalted(c.b, "ann")
			}
			c.take()
			for range 3 {
				if halted {
					c.wantHalted(c.b, "ann")
				} else {
					c.release(c.b, c.lead(c.b, "ann"))
				}
			}
			assert.Zero(t, c.cb.Take()["Get"], "halted %v: reads", halted)
		}
	})
}

func TestACandidateThatWaitsInAHaltCostsNothingAndLeadsOnceThatIsLifted(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.halts(c.a, leadership.OrderHalt)
		granted := make(chan error, 1)
		go func() {
			_, err := c.b.Acquire(t.Context(), c.ask("ann", time.Minute))
			granted <- err
		}()
		time.Sleep(time.Second)
		c.take()
		time.Sleep(40 * time.Second)
		if n := c.cb.Take(); n["Get"]+n["Update"] != 0 {
			t.Errorf("while it waits the store is asked %d times", n["Get"]+n["Update"])
		}
		c.halts(c.a, leadership.OrderUnhalt)
		lifted := time.Now()
		if err := <-granted; err != nil || time.Since(lifted) > 1100*time.Millisecond {
			t.Errorf("%v after the halt is lifted: %v", time.Since(lifted), err)
		}

		c.halts(c.a, leadership.OrderHalt)
		x, err := c.b.Explain(t.Context(), leadership.ExplainRequest{Election: "jobs", CandidateID: "bob"})
		if err != nil || len(x.Causes) == 0 || x.Causes[0].Code != leadership.ReasonHalted {
			t.Errorf("why: %+v, %v", x, err)
		}
		_, err = c.a.Acquire(t.Context(), leadership.AcquireRequest{Election: leadership.HaltsElection, CandidateID: "eve"})
		assert.ErrorIs(t, err, leadership.InvalidArgument, "the election of the halts is to be led")
	})
}

func TestAGrantThatTookLongerThanHaltsMayBeOldIsGivenBackIfItIsHalted(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		left := 2 // updates that are slow
		slow := c.start("slow", failing(c.store, "Update", func(e leadership.Election) error {
			if e == "jobs" && left > 0 {
				left--
				time.Sleep(6 * time.Second)
			}
			return nil
		}))
		lease := c.lead(slow, "ann") // without a halt it is granted
		c.release(c.a, lease)
		answer := make(chan error, 1)
		go func() {
			_, err := slow.Acquire(t.Context(), c.ask("ann", 0))
			answer <- err
		}()
		time.Sleep(time.Second)
		for _, l := range c.lines { // so that it does not hear of the halt
			l.mute.Store(true)
		}
		c.halts(c.a, leadership.OrderHalt)
		assert.ErrorIs(t, <-answer, leadership.StoreUnavailable)
		if l, err := c.a.Get(t.Context(), "jobs"); err != nil || l.State != leadership.Vacant || l.Token != lease.Token+1 {
			t.Errorf("got %+v, %v; want a vacant election after one more term", l, err)
		}
	})
}

func TestALeaseThatItsLeaderWasToldOfElsewhereIsNotGivenBackForAHalt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var granting atomic.Bool
		told := make(chan error)
		slow := c.start("slow", &storetest.Fake{Store: c.store, Around: func(ctx context.Context, call storetest.Call, next func(context.Context) error) error {
			err := next(ctx)
			if call.Method == "Update" && call.Election == "jobs" && granting.CompareAndSwap(true, false) { // and does not hear that it is committed for long
				time.Sleep(time.Second)
				_, again := c.b.Acquire(ctx, c.ask("ann", 0))
				c.halts(c.a, leadership.OrderHalt)
				time.Sleep(6 * time.Second)
				told <- again
			}
			return err
		}})
		c.release(slow, c.lead(slow, "ann"))
		granting.Store(true)
		answer := make(chan error, 1)
		go func() {
			_, err := slow.Acquire(context.WithoutCancel(t.Context()), c.ask("ann", 0))
			answer <- err
		}()
		require.NoError(t, <-told)
		assert.ErrorIs(t, <-answer, leadership.OutcomeUnknown)
		if l, err := c.a.Get(t.Context(), "jobs"); err != nil || l.State != leadership.Held {
			t.Errorf("got %+v, %v; want ann's lease, of which b has told her", l, err)
		}
	})
}

func TestNoLeaseIsGrantedAtAnInstanceOnceAHaltWasAnsweredThere(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		asking, asked := make(chan struct{}), make(chan struct{})
		var held atomic.Bool
		slow := c.start("slow", failing(c.store, "Update", func(e leadership.Election) error {
			if e == "jobs" && held.CompareAndSwap(false, true) {
				close(asking)
				<-asked
			}
			return nil
		}))
		answer := make(chan error, 1)
		go func() {
			_, err := slow.Acquire(t.Context(), c.ask("ann", 0))
			answer <- err
		}()
		<-asking
		c.halts(slow, leadership.OrderHalt)
		close(asked)
		if err := <-answer; err == nil {
			t.Error("the lease is granted after the halt was answered")
		}
	})
}

// Four candidates come and go at two instances, calls of the store last up to three seconds,
// messages are lost for a while, and an operator halts and lifts again.
func TestNoLineGrantsAgainstAHalt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var mu sync.Mutex // guards all below
		draw := rand.New(rand.NewPCG(11, 13))
		atMost := func(d time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if draw.IntN(8) == 0 {
				return time.Duration(draw.Int64N(int64(7 * d)))
			}
			return time.Duration(draw.Int64N(int64(d)))
		}
		takesTime := func(ctx context.Context, _ storetest.Call, next func(context.Context) error) error {
			time.Sleep(atMost(200 * time.Millisecond)) // not so long that no lease could be given back
			defer func() { time.Sleep(atMost(200 * time.Millisecond)) }()
			return next(ctx)
		}
		on := []*instance.Instance{
			c.start("x", &storetest.Fake{Store: c.store, Around: takesTime}),
			c.start("y", &storetest.Fake{Store: c.store, Around: takesTime}),
		}
		var halted *instance.Instance // where a halt was given that is not being lifted; nil for none
		var since time.Time           // when that was answered
		var granted, refused int
		check := func(at *instance.Instance, g leadership.Grant, err error) {
			mu.Lock()
			defer mu.Unlock()
			refusal, _ := errors.AsType[*leadership.Error](err)
			switch {
			case refusal != nil && refusal.Reason == leadership.ReasonHalted:
				refused++
			case err == nil:
				granted++
				if late := g.AcquiredAt.Sub(since); halted == at && late > 0 || halted != nil && late > 5*time.Second {
					t.Errorf("a lease is granted %v after a halt was answered", late)
				}
			}
		}
		var candidates sync.WaitGroup
		end := time.Now().Add(time.Hour)
		for n := range 4 {
			candidates.Go(func() {
				for i := n; time.Now().Before(end); i++ {
					at := on[i%2]
					g, err := at.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: leadership.CandidateID(rune('a' + n)), Wait: atMost(20 * time.Second)})
					check(at, g, err)
					time.Sleep(atMost(2 * time.Second))
					if err == nil {
						at.Do(t.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}}) //nolint:errcheck // it ends by itself
					}
				}
			})
		}
		for i := 0; time.Now().Before(end); i++ {
			time.Sleep(atMost(10 * time.Second))
			c.bus.setCut(i%5 > 2)
			c.halts(on[i%2], leadership.OrderHalt)
			mu.Lock()
			halted, since = on[i%2], time.Now()
			mu.Unlock()
			time.Sleep(atMost(15 * time.Second))
			mu.Lock()
			halted = nil
			mu.Unlock()
			c.halts(on[0], leadership.OrderUnhalt)
		}
		candidates.Wait()
		if granted < 100 || refused < 100 {
			t.Errorf("%d leases were granted and %d candidates refused in an hour, which proves nothing", granted, refused)
		}
	})
}
