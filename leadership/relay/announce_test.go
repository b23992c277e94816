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
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
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
		time.Sleep(time.Minute)
		if n := a.count("publish"); n != 1+3 {
			t.Errorf("the topic was called %d times, want once, and three times for up to 100 events", n)
		}
		w.topic.checkEV()
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
	})
}

func TestAnElectionThatStallsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == "stalled" {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		a.changes("stalled", 2)
		synctest.Wait()
		for e := range 200 {
			a.change(election(e))
			synctest.Wait()
			w.topic.expect(election(e), 1)
		}
		w.topic.expect("stalled")
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
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if n := most.Load(); n != parallel {
			t.Errorf("%d elections were published at the same time, want %d", n, parallel)
		}
		w.topic.expectOut(3*parallel)
	})
}

func TestAfterAFailureTheAnnouncerPausesAndTheRelayTakesOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		var broken atomic.Bool
		var tried []time.Duration
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if !broken.Load() {
				return a.acceptAll(ctx, events)
			}
			tried = append(tried, w.clock())
			return 0, errPlanted
		}
		a.run()
		a.change("jobs")
		synctest.Wait()
		broken.Store(true)
		for range 40 { // for less than it takes until somebody relays
			a.change("jobs")
			time.Sleep(50 * time.Millisecond)
		}
		if n := len(tried); n < 2 || n > 3 {
			t.Errorf("a topic that fails was tried %d times in 2 s: %v", n, tried)
		}
		broken.Store(false)
		time.Sleep(8 * time.Second)
		synctest.Wait()
		w.topic.checkEV()
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
		reads := a.count("read")
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs", seq(42)...)
		if a.count("read") != reads {
			t.Error("what the relay has published was not known to the announcer")
		}
	})
}

func TestPausesGrowWhileTheTopicFailsAndEndWhenItAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.before = func(_ context.Context, call string) error {
			if call == "look" {
				return errPlanted // nobody relays
			}
			return nil
		}
		var broken atomic.Bool
		broken.Store(true)
		var tried []time.Duration
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			tried = append(tried, w.clock())
			if broken.Load() {
				return 0, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		for range 2000 {
			a.change("jobs")
			time.Sleep(100 * time.Millisecond)
		}
		for k, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
			want *= time.Second
			if k+1 >= len(tried) {
				t.Fatalf("tried only at %v", tried)
			}
			if got := tried[k+1] - tried[k]; got < want*3/4 || got > want*5/4+100*time.Millisecond {
				t.Errorf("pause %d took %v, want %v, a quarter more or less", k+1, got, want)
			}
		}
		broken.Store(false)
		for len(w.topic.copies("jobs")) == 0 {
			a.change("jobs")
			time.Sleep(100 * time.Millisecond)
		}
		n := len(tried)
		a.change("jobs")
		synctest.Wait()
		if len(tried) == n {
			t.Error("the pause goes on though the topic answers")
		}
	})
}

func TestAnAcknowledgementOfAPartCountsForThatPart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.instance("dead").changes("jobs", 5)
		a := w.instance("a")
		first := true
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if first {
				first = false
				a.acceptAll(ctx, events[:4])
				return 2, nil // without an error, which is no reason to believe that it was all
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		a.change("jobs")
		time.Sleep(200 * time.Millisecond)
		if n := w.outbox(); n != 4 {
			t.Errorf("%d events are not marked, want the 4 that were not acknowledged", n)
		}
		w.settle(10 * time.Second)
		w.topic.expect("jobs", 1, 2, 3, 4, 3, 4, 5, 6)
	})
}

func TestPublishDoesNotBlockAndWhatIsTooMuchIsLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		var stalled atomic.Bool
		stalled.Store(true)
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if stalled.Load() {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		started := time.Now()
		for e := range 600 {
			a.changes(election(e), 20)
		}
		if took := time.Since(started); took > 0 {
			t.Errorf("the commits waited for %v", took)
		}
		if !w.log.has("too many events wait") {
			t.Error("nobody was told that too many wait")
		}
		stalled.Store(false)
		w.settle(5 * time.Minute)
		if n := w.topic.checkEV(); n < 12_000 {
			t.Errorf("there are %d events, want 12,000 and those of the relay", n)
		}
	})
}

func TestAStoreThatDoesNotMarkIsAskedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		left := 3
		a.before = func(_ context.Context, call string) error {
			if call == "mark" && left > 0 {
				left--
				return errPlanted
			}
			return nil
		}
		a.run()
		synctest.Wait() // for the first look
		a.change("jobs")
		w.settle(10 * time.Second)
		if got := a.count("mark"); got != 4 {
			t.Errorf("it was asked %d times, want 4", got)
		}
		w.topic.expect("jobs", 1)
	})
}

func TestWhatIsKnownToBeOutIsOnlyMarkedByTheRelay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		var broken atomic.Bool
		broken.Store(true)
		a.before = func(_ context.Context, call string) error {
			if call == "mark" && broken.Load() {
				return errPlanted
			}
			return nil
		}
		a.run()
		a.change("jobs")
		time.Sleep(time.Minute)
		if n := a.count("mark"); n > 30 {
			t.Errorf("a store that fails was asked %d times in a minute", n)
		}
		broken.Store(false)
		w.settle(time.Minute)
		w.topic.expect("jobs", 1)
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

func TestAtTheEndWhatWaitsIsPublishedAndMarked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			time.Sleep(300 * time.Millisecond)
			return a.acceptAll(ctx, events)
		}
		a.run()
		for e := range 5 * parallel {
			a.change(election(e))
		}
		started := time.Now()
		a.end()
		if took := time.Since(started); took > 2*time.Second {
			t.Errorf("it took %v, want 2 s at most", took)
		}
		w.topic.checkEV()
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs") // nobody is there any more
	})
}

func TestTheEndComesThoughTheTopicAndTheStoreStall(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, stalled := range []string{"publish", "mark", "read", "look"} {
			a := w.instance("a")
			a.before = func(ctx context.Context, call string) error {
				if call == stalled {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
			a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
				if stalled == "publish" {
					<-ctx.Done()
					return 0, ctx.Err()
				}
				return a.acceptAll(ctx, events)
			}
			a.run()
			w.instance("dead").change("jobs")
			a.change("jobs")
			a.change("reports")
			time.Sleep(time.Second)
			started := time.Now()
			a.end()
			if took := time.Since(started); took > 2*time.Second {
				t.Errorf("while %s stalls the end took %v, want 2 s at most", stalled, took)
			}
		}
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
