package hub_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/rule"
	"regent/store/memory"
)

func TestALostEventArrivesWhenTheHubIsLiveAnew(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		for _, before := range []bool{true, false} {
			h := w.hub(before)
			r := w.watches(h, jobs, 0)
			synctest.Wait()
			w.change(jobs, 1)
			h.SetLive(true)
			r.wants("once the hub is live anew", revisionsOf(w.history(jobs, 0))...)
			h.wants(t, 2, 0, "the first watch, and SetLive")
			time.Sleep(time.Hour)
			h.wants(t, 0, 0, "an hour without news")
		}
	})
}

func TestALookThatBeganBeforeTheHubWasLiveIsNotShared(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(false)
		early, late := make(chan struct{}), make(chan struct{})
		h.set(nil, early)
		readers := []*reader{w.watches(h, jobs, 0)}
		synctest.Wait()
		w.change(jobs, 1)
		h.SetLive(true)
		h.set(nil, late)
		readers = append(readers, w.watches(h, jobs, 0))
		synctest.Wait()
		close(early)
		synctest.Wait()
		readers = append(readers, w.watches(h, jobs, 0))
		synctest.Wait()
		close(late)
		for _, r := range readers {
			r.wants("by the second look", 1)
		}
		h.wants(t, 2, 0, "a look that was too early, and another")
	})
}

func TestHistoryThatIsNotKeptIsToldAsSuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, memory.Config{History: rule.MinHistory})
		h := w.hub(true)
		w.change(jobs, 5)
		time.Sleep(2 * rule.MinHistory)
		w.change(jobs, 1)
		watch := h.Watch(jobs, 2)
		defer watch.Close()
		for range 2 {
			_, err := watch.Next(t.Context())
			var refusal *leadership.Error
			if !errors.As(err, &refusal) || refusal.Code != leadership.HistoryCompacted || refusal.Oldest != 6 {
				t.Errorf("got %v, want %s with the oldest revision 6", err, leadership.HistoryCompacted)
			}
		}
		w.watches(h, jobs, 5).wants("from memory", 6)
	})
}

func TestAStoreThatIsAwayIsAskedOnceInASecondHoweverManyWatch(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		h.set(away, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for n := range 100 {
			watch := h.Watch(jobs, leadership.Revision(n%3))
			t.Cleanup(watch.Close)
			go func() {
				for ctx.Err() == nil { // and does not wait
					watch.Next(ctx)
				}
			}()
		}
		time.Sleep(5500 * time.Millisecond)
		if events, _, _ := h.reads(); events > 3*6 {
			t.Errorf("the history was read %d times in 6 s, from 3 revisions on", events)
		}
		late := h.Watch(jobs, 0)
		defer late.Close()
		_, err := late.Ready(t.Context())
		assert.ErrorIs(t, err, errStore, "who comes meanwhile")
		if events, _, _ := h.reads(); events > 0 {
			t.Errorf("who comes meanwhile has the history read %d times", events)
		}
		h.set(nil, nil)
		w.change(jobs, 1)
		time.Sleep(time.Second)
		if events, err := late.Ready(t.Context()); err != nil || len(events) != 1 {
			t.Errorf("once the store is there came %v, %v; want one event", events, err)
		}
		<-ctx.Done()
		synctest.Wait()
	})
}

func TestAStoreThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		h.set(nil, make(chan struct{}))
		watch := h.Watch(jobs, 0)
		defer watch.Close()
		_, err := watch.Next(context.Background())
		if !errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %s, and nothing of a deadline that the caller did not set", err, leadership.StoreUnavailable)
		}
	})
}

func TestEventsThatAreHeardDuringALookAndMoreThanFitInMemoryArrive(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		r := w.watches(h, jobs, 0)
		synctest.Wait()
		h.Publish(w.change(jobs, 1)...)
		r.wants("at first", 1)
		gate := make(chan struct{})
		h.set(nil, gate)
		h.SetLive(true)
		synctest.Wait()
		time.Sleep(time.Millisecond)
		h.Publish(w.change(jobs, 100)...)
		h.set(nil, nil)
		close(gate)
		r.wants("after the look", revisionsOf(w.history(jobs, 0))...)
	})
}

func TestAnEventThatWasMadeUpIsForgotten(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 3)
		var readers []*reader
		for range 20 {
			readers = append(readers, w.watches(h, jobs, 3))
		}
		listener := h.listen(jobs)
		defer listener.Close()
		synctest.Wait()
		h.reads()
		phantom := leadership.Event{Election: jobs, Revision: 1 << 40}
		h.Publish(phantom)
		h.Publish(phantom)
		synctest.Wait()
		h.Publish(w.change(jobs, 1)...)
		readers[0].wants("while the phantom is looked for", 4)
		w.change(jobs, 1)
		h.Publish(w.change(jobs, 1)...)
		readers[0].wants("with a lost event", 4, 5, 6)
		time.Sleep(time.Minute)
		if events, _, _ := h.reads(); events > 11 {
			t.Errorf("the history was read %d times, want 10 for the phantom and one for the event that was lost, at most", events)
		}
		assert.EqualValues(t, 6, listener.newest(), "the newest event is said to be")
		h.Publish(w.change(jobs, 1)...)
		for _, r := range readers {
			r.wants("afterwards", 4, 5, 6, 7)
		}
		h.wants(t, 0, 0, "afterwards")
	})
}

func TestCurrentRevisionNeedsNoLook(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		current := func(when string, want bool, r leadership.Revision) {
			t.Helper()
			if synctest.Wait(); h.Current(jobs, r) != want {
				t.Errorf("%s: revision %d is known to be current: %v, want %v", when, r, !want, want)
			}
		}
		w.change(jobs, 3)
		current("while the hub is not live", false, 3)
		listener := h.listen(jobs)
		defer listener.Close()
		current("before the first look", false, 3)
		current("before the first look", false, 0)
		w.watches(h, jobs, 3)
		current("after a look", true, 3)
		current("after a look", false, 2)
		h.Publish(w.change(jobs, 1)...)
		current("after the next event", false, 3)
		current("after the next event", true, 4)
		h.set(away, nil)
		w.change(jobs, 1)
		h.Publish(w.change(jobs, 1)...)
		current("with a gap", false, 4)
		h.set(nil, nil)
		time.Sleep(time.Minute)
		current("without it", true, 6)
		h.SetLive(false)
		current("while the hub is not live", false, 6)
	})
}

func TestClosingTheHubEndsAllThatWait(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		draining := errors.New("draining")
		ended := make(chan error, 100)
		next := func(watch *hub.Watch) {
			_, err := watch.Next(context.Background())
			ended <- err
			watch.Close()
			watch.Close()
		}
		rich := h.Watch("third", 0)
		rich.Ready(t.Context())
		go next(h.Watch(jobs, 0))
		go next(h.Watch(jobs, 0))
		synctest.Wait()
		h.set(nil, make(chan struct{}))
		go next(h.Watch("other", 0)) // is stuck in a look
		go next(h.Watch("other", 0)) // shares it
		h.Publish(w.change("third", 1)...)
		synctest.Wait()
		assert.NoError(t, h.Cause(), "a hub that is open has the cause")
		before := time.Now()
		h.Close(draining)
		h.Close(errors.New("again"))
		go next(h.Watch("fourth", 0))
		go next(rich) // though there is an event for it
		for range 6 {
			assert.ErrorIs(t, <-ended, draining)
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("it took %v", took)
		}
		<-h.Done()
		assert.ErrorIs(t, h.Cause(), draining, "the hub's cause")
		if h.listened(jobs) || h.listened("other") {
			t.Error("watches that are closed still listen")
		}
	})
}

func TestAnErrorOfTheStoreIsPassedOnAndNothingIsLost(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 2)
		h.set(away, nil)
		watch := h.Watch(jobs, 0)
		defer watch.Close()
		for range 3 {
			if events, err := watch.Next(t.Context()); !errors.Is(err, errStore) || len(events) > 0 {
				t.Errorf("got %v, %v; want the store's error", events, err)
			}
		}
		h.set(nil, nil)
		if events, err := watch.Next(t.Context()); err != nil || len(events) != 2 || watch.After() != 2 {
			t.Errorf("got %v, %v, and after it %d; want two events", events, err, watch.After())
		}
	})
}

func TestWatchFromAFutureRevisionDelaysNoOther(t *testing.T) {
	inCluster(t, func(_ *testing.T, w *cluster) {
		const madeUp = 1000
		h := w.hub(true)
		w.change(jobs, 3)
		readers := []*reader{w.watches(h, jobs, madeUp)}
		synctest.Wait()
		readers = append(readers, w.watches(h, jobs, 3))
		synctest.Wait()
		h.reads()
		h.Publish(w.change(jobs, 1)...)
		h.wants(w.t, 0, 0, "an event that follows")
		h.Publish(w.change(jobs, madeUp)[madeUp-1])
		for _, r := range readers {
			r.wants("its own", revisionsOf(w.history(jobs, r.from))...)
		}
	})
}
