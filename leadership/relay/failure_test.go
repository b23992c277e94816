package relay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
)

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
		w.wait(8 * time.Second)
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
		var broken atomic.Bool
		broken.Store(true)
		a.before = func(_ context.Context, call string) error {
			if call == "look" && broken.Load() {
				return errPlanted // nobody relays
			}
			return nil
		}
		var tried []time.Duration
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if broken.Load() {
				tried = append(tried, w.clock())
				return 0, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		for len(tried) < 9 {
			a.change("jobs")
			w.wait(100 * time.Millisecond)
		}
		for k, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
			want *= time.Second
			if got := tried[k+1] - tried[k]; got < want*3/4 || got > want*5/4+100*time.Millisecond {
				t.Errorf("pause %d took %v, want %v, a quarter more or less", k+1, got, want)
			}
		}
		broken.Store(false)
		w.wait(8 * time.Second) // for the relay; the pause of the announcer would take 22 s at least
		if n := w.outbox(); n != 0 {
			t.Fatalf("%d events wait", n)
		}
		a.change("jobs")
		synctest.Wait()
		if n := w.outbox(); n != 1 || w.topic.duplicates() > 0 {
			t.Errorf("%d events wait, want one to be marked", n)
		}
		w.topic.expect("jobs", seq(int(w.made.Load()))...)
		broken.Store(true)
		a.change("jobs")
		synctest.Wait()
		w.wait(1250 * time.Millisecond)
		n := len(tried)
		a.change("jobs")
		synctest.Wait()
		if len(tried) != n+1 {
			t.Error("the first pause after the topic had answered is longer than a second")
		}
	})
}

func TestElectionsThatFailTogetherMakeOnePauseAndThoseInLineAreNotTried(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.publish = func(context.Context, []leadership.Event) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return 0, errPlanted
		}
		a.run()
		synctest.Wait() // for the first look
		for e := range 5 * parallel {
			a.change(election(e))
		}
		w.wait(time.Second)
		if n := a.count("publish"); n != parallel {
			t.Errorf("the topic was tried %d times, want %d", n, parallel)
		}
		w.wait(400 * time.Millisecond)
		a.change("jobs")
		synctest.Wait()
		if n := a.count("publish"); n != parallel+1 {
			t.Error("the pause is longer than a second")
		}
	})
}

func TestWhenTheOutboxCannotBeReadTheRelayTakesOverSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.before = func(_ context.Context, call string) error {
			if call == "read" && a.count("read") == 1 {
				return errPlanted
			}
			return nil
		}
		a.run()
		synctest.Wait() // for the first look
		w.instance("dead").change("jobs")
		a.change("jobs")
		w.wait(8 * time.Second)
		w.topic.expect("jobs", 1, 2)
		w.topic.checkEV()
	})
}

func TestAStoreThatFailsIsNotAskedAtEachEventThatIsLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.before = func(_ context.Context, call string) error {
			if call == "look" || call == "read" {
				return errPlanted
			}
			return nil
		}
		a.run()
		w.instance("dead").change("jobs")
		for range 600 {
			a.change("jobs")
			w.wait(100 * time.Millisecond)
		}
		if n := a.count("look"); n < 20 || n > 35 {
			t.Errorf("it was looked at %d times in a minute, want once each 2 s", n)
		}
	})
}

func TestAnAcknowledgementOfAPartCountsForThatPart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		first := true
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if first {
				first = false
				a.acceptAll(ctx, events[:min(4, len(events))])
				return 2, nil // without an error, which is no reason to believe that it was all
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		synctest.Wait() // for the first look
		w.instance("dead").changes("jobs", 5)
		a.change("jobs")
		w.wait(200 * time.Millisecond)
		if n := w.outbox(); n != 4 {
			t.Errorf("%d events are not marked, want the 4 that were not acknowledged", n)
		}
		w.settle(8 * time.Second)
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
		if !w.log.has("the announcer takes no more") {
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
		w.wait(time.Minute)
		if n := a.count("mark"); n > 30 {
			t.Errorf("a store that fails was asked %d times in a minute", n)
		}
		broken.Store(false)
		w.settle(time.Minute)
		w.topic.expect("jobs", 1)
	})
}
