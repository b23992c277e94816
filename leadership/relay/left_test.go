package relay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
)

func TestWhatADeadInstanceCommittedIsAnnouncedByAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead, a := w.instance("dead"), w.instance("a").run()
		for e := range 50 {
			dead.changes(election(e), 3)
		}
		w.wait(3 * time.Second)
		w.settle(20 * time.Second)
		if n := w.topic.checkEV(); n != 150+2 {
			t.Errorf("there are %d events, want 150 and the two of the term", n)
		}
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
		w.leads("")
		if n := a.count("publish"); n > 50+2+5 {
			t.Errorf("the topic was called %d times for 50 elections", n)
		}
	})
}

func TestAnIdleDeploymentReadsOnceAnIntervalAndWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a").run()
		w.wait(time.Hour)
		if n := a.count("look"); n < 3600/19 || n > 3600/11 {
			t.Errorf("the outbox was looked at %d times in an hour, want one each 15 s, a quarter more or less", n)
		}
		if n := a.count("update relay") + a.count("mark") + a.count("read"); n != 0 {
			t.Errorf("there were %d other calls of the store", n)
		}
	})
}

func TestWhatALiveAnnouncerIsJustPublishingIsNotLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			time.Sleep(800 * time.Millisecond)
			return a.acceptAll(ctx, events)
		}
		a.run()
		w.instance("b").run()
		for range 3000 { // so that each look finds something
			a.change("jobs")
			time.Sleep(100 * time.Millisecond)
		}
		if n := a.count("update relay"); n != 0 {
			t.Errorf("somebody asked for the relay's lease %d times", n)
		}
		w.settle(time.Minute)
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
	})
}

func TestOneElectionThatFailsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead := w.instance("dead")
		dead.changes("aaa", 1200) // more than a page, and before all others
		for e := range 10 {
			dead.changes(election(e), 2)
		}
		var broken atomic.Bool
		broken.Store(true)
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == "aaa" && broken.Load() {
				return 0, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		w.wait(20 * time.Second)
		for e := range 10 {
			w.topic.expect(election(e), 1, 2)
		}
		if n := w.outbox(); n != 1200 {
			t.Errorf("%d events wait, want the 1200 that fail", n)
		}
		w.topic.expect("aaa")
		broken.Store(false)
		w.settle(time.Minute)
		w.topic.expect("aaa", seq(1200)...)
	})
}

func TestAGreatBacklogIsWorkedOffWithoutWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead := w.instance("dead")
		for e := range 300 {
			dead.changes(election(e), 20)
		}
		w.instance("a").run()
		w.settle(10 * time.Second)
		w.topic.checkEV()
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
	})
}

func TestAFullOutboxThatMovesIsNotLeftBehindAtTheFirstLook(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.instance("a").run(), w.instance("b")
		a.tell = func(events ...leadership.Event) {
			time.AfterFunc(time.Second, func() { a.relay.Publish(events...) })
		}
		for e := range 200 {
			a.change(election(e))
		}
		b.run()
		w.settle(5 * time.Second)
		w.wait(time.Minute)
		if n := a.count("update relay") + b.count("update relay"); n != 0 {
			t.Error("somebody relayed what was on its way")
		}
	})
}

func TestAnEventThatShowsItselfLateIsNotOvertaken(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead, a := w.instance("dead"), w.instance("a")
		dead.changes("jobs", 2)
		a.hide = func(e leadership.Event) bool { return e.Revision == 1 && w.clock() < time.Second }
		a.run()
		w.settle(20 * time.Second)
		w.topic.expect("jobs", 1, 2)
	})
}

func TestAnEventThatCannotBeReadIsToldOfAndHoldsUpNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.before = func(_ context.Context, call string) error {
			if call == "look" && w.outbox() == 0 {
				return leadership.Corrupt("damaged", errPlanted)
			}
			return nil
		}
		a.run()
		w.instance("dead").change("jobs")
		w.settle(30 * time.Second)
		w.wait(time.Minute)
		w.topic.checkEV()
		if !w.log.has("an event cannot be read") || !w.log.has("damaged") {
			t.Error("nobody was told")
		}
		w.leads("")
		a.change("jobs")
		synctest.Wait()
		w.topic.expect("jobs", 1, 2)
	})
}
