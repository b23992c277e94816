package hub_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/store/memory"
)

func TestAnEventThatFollowsIsPassedOnFromMemory(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 3)
		r := w.watches(h, jobs, 3)
		h.wants(t, 1, 0, "a first watch")
		for range 5 {
			h.Publish(w.change(jobs, 1)...)
		}
		r.wants("in order", 4, 5, 6, 7, 8)
		h.wants(t, 0, 0, "five events in order")
	})
}

func TestEventsInTheWrongOrderArriveInOrderAndOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		r := w.watches(h, jobs, 0)
		listener := h.listen(jobs)
		defer listener.Close()
		synctest.Wait()
		events := w.change(jobs, 6)
		for _, n := range []int{1, 0, 0, 1, 4, 2, 3, 5, 2} {
			h.Publish(events[n])
		}
		r.wants("in the wrong order", 1, 2, 3, 4, 5, 6)
		if newest := listener.newest(); newest != 6 {
			t.Errorf("the newest event is said to be %d, want 6", newest)
		}
		for _, e := range events {
			h.Publish(e)
		}
		h.reads()
		r.wants("heard again", 1, 2, 3, 4, 5, 6)
		h.wants(t, 0, 0, "old news")
	})
}

func TestOldEventWakesNoReader(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.watches(h, jobs, 0)
		listener := h.listen(jobs)
		defer listener.Close()
		synctest.Wait()
		events := w.change(jobs, 3)
		h.Publish(events...)
		<-listener.C()
		h.Publish(events[0])
		h.Publish(events[2])
		select {
		case <-listener.C():
			t.Error("a listener was woken by old news")
		default:
		}
		if r := listener.newest(); r != 3 {
			t.Errorf("the newest event is said to be %d, want 3", r)
		}
	})
}

func TestEventHeardDuringALookNeedsNoOtherLook(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 5)
		gate := make(chan struct{})
		h.set(nil, gate)
		r := w.watches(h, jobs, 5)
		synctest.Wait()
		h.Publish(w.change(jobs, 2)...)
		synctest.Wait()
		close(gate)
		r.wants("after the look", 6, 7)
		h.wants(t, 1, 0, "a first watch")
	})
}

func TestEventsInMemoryNeedNoStore(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		watch := h.Watch(jobs, 0)
		defer watch.Close()
		w.change(jobs, 1)
		if _, err := watch.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.set(away, nil)
		events := w.change(jobs, 2)
		h.Publish(events[1])
		h.Publish(events[0])
		if got, err := watch.Next(t.Context()); err != nil || len(got) != 2 || watch.After() != 3 {
			t.Errorf("got %v, %v; want two events", got, err)
		}
	})
}

func TestWhatWasHeardArrivesHoweverItWasOrdered(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		r := w.watches(h, jobs, 0)
		synctest.Wait()
		events := w.change(jobs, 4)
		h.Publish(events[3], events[2], events[1], events[0])
		r.wants("backwards", 1, 2, 3, 4)
	})
}

func TestALostEventArrivesWithTheNext(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		r := w.watches(h, jobs, 0)
		synctest.Wait()
		h.Publish(w.change(jobs, 1)...)
		w.change(jobs, 2)
		time.Sleep(time.Hour)
		r.wants("while nothing else is heard", 1)
		h.Publish(w.change(jobs, 1)...)
		r.wants("with the next event", 1, 2, 3, 4)
		h.wants(t, 2, 0, "the first watch, and the gap")
		h.Publish(w.change(jobs, 1)...)
		r.wants("with the one after that", 1, 2, 3, 4, 5)
		h.wants(t, 0, 0, "once there is no gap")
	})
}

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

func TestALookThatBeganBeforeTheHubWasLiveDoesNotCount(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(false)
		early := make(chan struct{})
		h.set(nil, early)
		r := w.watches(h, jobs, 0)
		synctest.Wait()
		w.change(jobs, 1) // not announced, and the look was too early to see it
		h.SetLive(true)
		h.set(nil, nil)
		close(early)
		r.wants("by another look", 1)
		h.wants(t, 2, 0, "a look that was too early, and another")
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

func TestAHubThatIsNotLiveLooksOncePerPollHoweverManyWatch(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(false)
		h.takes = 500 * time.Millisecond
		w.change(jobs, 7)
		var readers []*reader
		for range 100 {
			readers = append(readers, w.watches(h, jobs, 7))
		}
		time.Sleep(time.Second)
		readers = append(readers, w.watches(h, jobs, 1000), w.watches(h, jobs, 2000)) // revisions that do not exist
		h.wants(t, 1, 0, "102 watches")
		for range 10 {
			time.Sleep(poll)
			h.wants(t, 1, 0, "a poll")
		}
		w.change(jobs, 2)
		time.Sleep(poll)
		time.Sleep(time.Second)
		for _, r := range readers[:100] {
			r.wants("within a poll", 8, 9)
		}
		h.wants(t, 1, 0, "a poll that finds something")
		h.Publish(w.change(jobs, 1)...)
		readers[0].wants("though the hub is not live", 8, 9, 10)
		h.reads()
		time.Sleep(10 * poll)
		h.wants(t, 10, 0, "ten polls")
		h.SetLive(true)
		time.Sleep(10 * poll)
		h.wants(t, 1, 0, "once the hub is live")
	})
}

func TestAHubThatIsNotLiveGoesOnPollingWhileAnEventIsLookedFor(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := runs(t, w.service, false)
		r := w.watches(h, jobs, 0)
		synctest.Wait()
		h.Publish(leadership.Event{Election: jobs, Revision: 99})
		time.Sleep(11 * time.Second) // it is looked for less and less often
		w.change(jobs, 1)
		time.Sleep(poll)
		r.wants("within a poll", 1)
	})
}

func TestWhatOneWatchMakesOfItsEventsIsNothingToAnother(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		watch := h.Watch(jobs, 0)
		defer watch.Close()
		watch.Ready(t.Context())
		h.Publish(w.change(jobs, 3)...)
		events, err := watch.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.Publish(w.change(jobs, 1)...)
		_ = append(events, leadership.Event{Election: jobs, Revision: 99})
		w.watches(h, jobs, 0).wants("from memory", 1, 2, 3, 4)
	})
}

func TestAWatchBeginsAnywhere(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		const n = 2*leadership.MaxPageSize + 500
		h := w.hub(true)
		w.change(jobs, n)
		var readers []*reader
		for after := range leadership.Revision(n + 1) {
			if after%250 == 0 || after > n-10 {
				readers = append(readers, w.watches(h, jobs, after))
			}
		}
		synctest.Wait()
		h.Publish(w.change(jobs, 1)...)
		for _, r := range readers {
			r.wants("to the end", revisionsOf(w.history(jobs, r.from))...)
		}
	})
}

func TestUnknownElectionCanBeWatched(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		r := w.watches(h, jobs, 0)
		h.wants(t, 1, 0, "an election that is not there")
		h.Publish(w.change(jobs, 1)...)
		r.wants("once it is there", 1)
		h.wants(t, 0, 0, "its first event")
	})
}

func TestADeletedElectionCanBeWatched(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 1)
		if _, err := w.service.Delete(t.Context(), leadership.DeleteRequest{Election: jobs}); err != nil {
			t.Fatal(err)
		}
		r := w.watches(h, jobs, 0)
		synctest.Wait()
		h.Publish(w.change(jobs, 1)...)
		r.wants("its end, and its return", 1, 2, 3)
	})
}

func TestWatchFromAFutureRevisionDelaysNoOther(t *testing.T) {
	const madeUp = 1000
	for name, order := range map[string][]leadership.Revision{
		"it comes first": {madeUp, 3, 3},
		"it comes last":  {3, 3, madeUp},
		"it is alone":    {madeUp},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, w *cluster) {
				h := w.hub(true)
				w.change(jobs, 3)
				var readers []*reader
				for _, after := range order {
					readers = append(readers, w.watches(h, jobs, after))
					synctest.Wait()
				}
				if events, _, _ := h.reads(); events > 2 {
					t.Errorf("the history was read %d times, want 2 at most", events)
				}
				h.Publish(w.change(jobs, 1)...)
				h.wants(t, 0, 0, "an event that follows")
				for _, r := range readers {
					r.wants("its own", revisionsOf(w.history(jobs, min(r.from, 4)))...)
				}
				events := w.change(jobs, madeUp)
				h.Publish(events[madeUp-1])
				for _, r := range readers {
					r.wants("its own", revisionsOf(w.history(jobs, r.from))...)
				}
			})
		})
	}
}

func TestFutureRevisionMayBeLookedUpLast(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 3)
		first, second := make(chan struct{}), make(chan struct{})
		h.set(nil, first)
		r := w.watches(h, jobs, 3)
		synctest.Wait()
		h.set(nil, second)
		w.watches(h, jobs, 1000)
		synctest.Wait()
		close(first)
		synctest.Wait()
		close(second)
		h.wants(t, 2, 0, "two watches")
		h.Publish(w.change(jobs, 1)...)
		r.wants("what follows", 4)
		h.wants(t, 0, 0, "an event that follows")
	})
}

func TestWatchFromAFutureRevisionKeepsNoListenerFromHearing(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.watches(h, jobs, 1000)
		listener := h.listen(jobs)
		defer listener.Close()
		synctest.Wait()
		for range 3 {
			h.Publish(w.change(jobs, 1)...)
			<-listener.C()
			if got, want := listener.newest(), w.history(jobs, 0); got != want[len(want)-1].Revision {
				t.Errorf("the newest event is said to be %d, want %d", got, len(want))
			}
		}
	})
}

func TestHistoryThatIsNotKeptIsToldAsSuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, memory.Config{History: leadership.MinHistory})
		h := w.hub(true)
		w.change(jobs, 5)
		time.Sleep(2 * leadership.MinHistory)
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
		if _, err := late.Ready(t.Context()); !errors.Is(err, errStore) {
			t.Errorf("who comes meanwhile got %v, want the store's error", err)
		}
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

func TestALookGoesOnForTheOthersWhenTheFirstWatchGivesUp(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 2)
		gate := make(chan struct{})
		h.set(nil, gate)
		ctx, cancel := context.WithCancel(t.Context())
		impatient := h.Watch(jobs, 0)
		gone := make(chan error, 1)
		go func() {
			_, err := impatient.Next(ctx)
			gone <- err
		}()
		synctest.Wait()
		patient := []*reader{w.watches(h, jobs, 0), w.watches(h, jobs, 0)}
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch that gave up got %v, want %v", err, context.Canceled)
		}
		impatient.Close()
		close(gate)
		for _, r := range patient {
			r.wants("a watch that was patient", 1, 2)
		}
		h.wants(t, 1, 0, "one look for all")
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

func TestReadyDoesNotWaitForNews(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		watch := h.Watch(jobs, 0)
		defer watch.Close()
		ready := func(when string, want ...leadership.Revision) {
			t.Helper()
			events, err := watch.Ready(t.Context())
			if got := revisionsOf(events); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: got %v, %v; want %v", when, got, err, want)
			}
		}
		ready("an election that is not there")
		w.change(jobs, 2)
		ready("a revision that does not exist")
		h.Publish(w.change(jobs, 1)...)
		ready("a gap", 1, 2, 3)
		h.Publish(leadership.Event{Election: jobs, Revision: 99})
		ready("an election that does not exist")
		h.Publish(w.change(jobs, 1)...)
		ready("what follows", 4)
		if watch.After() != 4 {
			t.Errorf("the watch has come to %d, want 4", watch.After())
		}
	})
}

func TestAnEventThatIsHeardWhileOthersLookIsNotForgotten(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 50)
		gate := make(chan struct{})
		h.set(nil, gate)
		var readers []*reader
		for after := range leadership.Revision(51) {
			readers = append(readers, w.watches(h, jobs, after))
		}
		synctest.Wait() // all looks are under way, and know nothing of what comes now
		time.Sleep(time.Millisecond)
		w.change(jobs, 1)
		h.Publish(w.change(jobs, 1)...)
		h.set(nil, nil)
		close(gate)
		for _, r := range readers {
			r.wants("to the end", revisionsOf(w.history(jobs, r.from))...)
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

func TestAnEventThatIsInTheHistoryOnlyLaterArrives(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		r := w.watches(h, jobs, 0)
		synctest.Wait()
		h.Publish(leadership.Event{Election: jobs, Revision: 2})
		time.Sleep(time.Second)
		w.change(jobs, 2) // and it is not published
		time.Sleep(10 * time.Second)
		r.wants("once it is there", 1, 2)
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
		if r := listener.newest(); r != 6 {
			t.Errorf("the newest event is said to be %d, want 6", r)
		}
		h.Publish(w.change(jobs, 1)...)
		for _, r := range readers {
			r.wants("afterwards", 4, 5, 6, 7)
		}
		h.wants(t, 0, 0, "afterwards")
	})
}

func TestARunOfEventsThatWereMadeUpIsForgotten(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 3)
		watch := h.Watch(jobs, 3)
		defer watch.Close()
		if _, err := watch.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range leadership.Revision(100) { // more than is kept in memory
			h.Publish(leadership.Event{Election: jobs, Revision: 4 + n})
		}
		waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if events, err := watch.Next(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v; want nothing", events, err)
		}
		if events, _, _ := h.reads(); events > 12 {
			t.Errorf("the history was read %d times, want 12 at most", events)
		}
		h.Publish(w.change(jobs, 1)...)
		if _, err := watch.Next(t.Context()); err != nil || watch.After() != 4 {
			t.Errorf("got to revision %d, %v; want 4", watch.After(), err)
		}
		h.wants(t, 0, 0, "afterwards")
	})
}

func TestASlowWatchMissesNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		minute := func() time.Duration { return time.Minute }
		slow := []*reader{w.reads(h, jobs, 0, minute), w.reads(h, jobs, 0, minute)}
		quick := w.watches(h, jobs, 0)
		synctest.Wait()
		h.Publish(w.change(jobs, 1)...)
		synctest.Wait()
		h.reads()
		h.takes = time.Millisecond
		for range 300 {
			h.Publish(w.change(jobs, 1)...)
			synctest.Wait()
		}
		quick.wants("as they come", revisionsOf(w.history(jobs, 0))...)
		h.wants(t, 0, 0, "as they come")
		time.Sleep(2 * time.Minute)
		for _, r := range slow {
			r.wants("in its own time", revisionsOf(w.history(jobs, 0))...)
		}
		h.wants(t, 1, 0, "two that were late in the same way")
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
		if err := h.Cause(); err != nil {
			t.Errorf("a hub that is open has the cause %v", err)
		}
		before := time.Now()
		h.Close(draining)
		h.Close(errors.New("again"))
		go next(h.Watch("fourth", 0))
		go next(rich) // though there is an event for it
		for range 6 {
			if err := <-ended; !errors.Is(err, draining) {
				t.Errorf("got %v, want %v", err, draining)
			}
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("it took %v", took)
		}
		<-h.Done()
		if err := h.Cause(); !errors.Is(err, draining) {
			t.Errorf("the hub's cause is %v, want %v", err, draining)
		}
		if h.listened(jobs) || h.listened("other") {
			t.Error("watches that are closed still listen")
		}
	})
}
