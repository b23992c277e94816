package relay_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/relay"
)

func TestAChangeIsAnnouncedAtOnceAndMarkedSoonAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a").run()
		synctest.Wait()
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs", 1)
		if n := w.outbox(); n != 1 {
			t.Errorf("%d events wait to be marked, want 1", n)
		}
		w.wait(100 * time.Millisecond)
		if n := w.outbox(); n != 0 {
			t.Errorf("%d events wait to be marked after 100 ms", n)
		}
	})
}

func TestBothEventsOfATakeoverAreAnnouncedTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a").run()
		for _, candidate := range []leadership.CandidateID{"ann", "bob"} {
			if _, err := a.service.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: candidate}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(leadership.DefaultLeaseDuration)
		}
		w.topic.expect("jobs", 1, 2, 3)
		if n := a.count("publish"); n != 2 {
			t.Errorf("the topic was called %d times, want once for each change", n)
		}
	})
}

func TestWhileAllIsWellAChangeCostsItsShareOfOneMark(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a").run()
		const rounds, elections = 100, 20
		for range rounds {
			for e := range elections {
				a.change(election(e))
			}
			time.Sleep(markDelay)
		}
		w.settle(time.Second)
		if n := a.count("mark"); n < rounds/2 || n > rounds {
			t.Errorf("%d changes took %d marks, want one for each 100 ms", rounds*elections, n)
		}
		if n := a.count("read"); n != 0 {
			t.Errorf("the outbox of an election was read %d times", n)
		}
		if n := a.count("publish"); n != rounds*elections {
			t.Errorf("the topic was called %d times for %d changes", n, rounds*elections)
		}
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
		if n := a.count("update relay"); n != 0 {
			t.Errorf("the relay's election was asked %d times", n)
		}
		w.topic.checkEV()
	})
}

func TestAsManyAsAStoreTakesAreMarkedAtOnceAndTheRestSoonAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a").run()
		synctest.Wait() // for the first look
		w.instance("dead").changes("reports", 299)
		for range 400 {
			a.change("jobs")
			synctest.Wait()
		}
		a.change("reports") // and all before it
		synctest.Wait()
		if n := w.outbox(); n != 200 {
			t.Errorf("%d events wait to be marked, want the 200 beyond a full batch", n)
		}
		w.wait(markDelay)
		if n, marks := w.outbox(), a.count("mark"); n != 0 || marks != 2 {
			t.Errorf("%d events wait to be marked after %d calls, want none after 2", n, marks)
		}
	})
}

func TestAnEventWaitsForTheOneBeforeItThoughAnotherInstanceCommittedThat(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead := w.instance("dead") // it commits, and never publishes
		dead.changes("jobs", 3)
		a := w.instance("a").run()
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs", 1, 2, 3, 4)
		if n := a.count("read"); n != 1 {
			t.Errorf("the outbox of the election was read %d times, want once", n)
		}
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs", 1, 2, 3, 4, 5)
		if n := a.count("read"); n != 1 {
			t.Errorf("the outbox of the election was read again")
		}
		w.settle(time.Second)
	})
}

func TestAnEventThatFollowsWhatWasHeardNeedsNoLook(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.instance("a").run(), w.instance("b").run()
		w.topic.hearers = append(w.topic.hearers, a.relay.Heard, b.relay.Heard)
		for range 10 {
			a.change("jobs")
			synctest.Wait()
			b.change("jobs")
			synctest.Wait()
		}
		w.settle(time.Second)
		if n := a.count("read") + b.count("read"); n != 0 {
			t.Errorf("the outbox of the election was read %d times", n)
		}
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
		w.topic.checkEV()
	})
}

func TestWhatWasHeardIsNotPublishedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead, a := w.instance("dead"), w.instance("a").run()
		dead.changes("jobs", 4)
		events, _ := w.store.Events(t.Context(), "jobs", 0, 3)
		for _, e := range events {
			w.topic.accept(e)
		}
		a.relay.Heard(events[1])
		a.relay.Heard(events[0]) // late, and no step back
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs", 1, 2, 3, 3, 4, 5)
	})
}

func TestOfTwoChangesToldInTheWrongOrderBothAreAnnouncedInTheRightOne(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		var kept []leadership.Event
		a.tell = func(events ...leadership.Event) { kept = append(kept, events...) }
		a.run()
		a.changes("jobs", 4)
		for _, k := range []int{3, 1, 0, 2} {
			a.relay.Publish(kept[k])
			synctest.Wait()
		}
		w.topic.expect("jobs", 1, 2, 3, 4)
	})
}

func TestOfTwoChangesThatWaitNoneNeedsALookThoughTheyWereToldInTheWrongOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		var kept []leadership.Event
		a.tell = func(events ...leadership.Event) { kept = append(kept, events...) }
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return a.acceptAll(ctx, events)
		}
		a.run()
		a.changes("jobs", 4)
		a.relay.Publish(kept[0])
		synctest.Wait()
		for _, k := range []int{3, 1, 2} {
			a.relay.Publish(kept[k])
		}
		w.wait(time.Second)
		w.topic.expect("jobs", 1, 2, 3, 4)
		if n := a.count("read"); n != 0 {
			t.Errorf("the outbox of the election was read %d times", n)
		}
	})
}

func TestWhatWaitsIsPublishedTogetherAndInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			time.Sleep(time.Second)
			return a.acceptAll(ctx, events)
		}
		a.run()
		a.changes("jobs", 1)
		synctest.Wait()
		a.changes("jobs", 250) // while the first is on its way
		w.wait(time.Minute)
		if n := a.count("publish"); n != 1+3 {
			t.Errorf("the topic was called %d times, want once, and three times for up to 100 events", n)
		}
		w.topic.checkEV()
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
	})
}

func TestSoManyElectionsArePublishedSideBySideAndNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var now, most atomic.Int32
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			n := now.Add(1)
			defer now.Add(-1)
			most.Store(max(most.Load(), n))
			time.Sleep(time.Second)
			return a.acceptAll(ctx, events)
		}
		a.run()
		synctest.Wait() // for the first look
		for e := range 3 * parallel {
			a.change(election(e))
		}
		w.wait(3*time.Second + time.Millisecond)
		if n := most.Load(); n != parallel {
			t.Errorf("%d elections were published at the same time, want %d", n, parallel)
		}
		w.topic.expectOut(3 * parallel)
	})
}

func TestAStrayMessageOnTheTopicKeepsNothingFromBeingAnnounced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a").run()
		synctest.Wait() // for the first look
		a.relay.Heard(leadership.Event{Election: "jobs", Revision: 1_000_000})
		a.changes("jobs", 3)
		w.settle(30 * time.Second)
		w.topic.expect("jobs", 1, 2, 3)
	})
}

func TestAnElectionThatWasForgottenIsLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a").run()
		a.change("jobs")
		synctest.Wait()
		for k := range relay.MaxKnown + 10 {
			a.relay.Heard(leadership.Event{Election: election(k), Revision: 7})
		}
		if n := a.relay.Remembered(); n > relay.MaxKnown {
			t.Errorf("%d elections are remembered, want at most %d", n, relay.MaxKnown)
		}
		w.instance("dead").change("jobs")
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs", 1, 2, 3)
	})
}

// What the package promises.
const (
	parallel  = 64
	markDelay = 100 * time.Millisecond
)

func election(n int) leadership.Election { return leadership.Election(fmt.Sprintf("e%06d", n)) }

// seq is 1 to n.
func seq(n int) []leadership.Revision {
	var all []leadership.Revision
	for r := range n {
		all = append(all, leadership.Revision(r+1))
	}
	return all
}
