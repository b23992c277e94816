package relay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/relay"
)

func TestASweepAnnouncesAllThatWasLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		asleep := w.instance("asleep") // it never runs
		for e := range 10 {
			asleep.changes(election(e), 40)
		}
		started := time.Now()
		n, err := asleep.relay.Sweep(t.Context())
		if err != nil || n != 400 {
			t.Errorf("got %d, %v; want 400", n, err)
		}
		if took := time.Since(started); took != 2*time.Second {
			t.Errorf("it took %v, want one gap", took)
		}
		if n := w.topic.checkEV(); n != 400 {
			t.Errorf("a sweep made %d events of its own", n-400)
		}
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
		started, looks := time.Now(), asleep.count("look")
		n, err = asleep.relay.Sweep(t.Context())
		if took := time.Since(started); err != nil || n != 0 || took != 0 || asleep.count("look") != looks+1 {
			t.Errorf("with nothing left it gave %d, %v after %v and %d looks; want one look", n, err, took, asleep.count("look")-looks)
		}
	})
}

func TestASweepDoesNotWaitForARelayThatIsAsleep(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		_, err := a.service.Acquire(t.Context(), leadership.AcquireRequest{Election: relay.Election, CandidateID: "sleeper", LeaseDuration: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		a.change("jobs")
		n, err := a.relay.Sweep(t.Context())
		if err != nil || n != 2 {
			t.Errorf("got %d, %v; want 2", n, err)
		}
		w.topic.checkEV()
	})
}

func TestASweepTellsWhatItCouldNotDo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == "jobs" {
				n, _ := a.acceptAll(ctx, events[:1])
				return n, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		a.changes("jobs", 3)
		a.changes("reports", 3)
		n, err := a.relay.Sweep(t.Context())
		if !errors.Is(err, errPlanted) || n != 4 {
			t.Errorf("got %d, %v; want 4 and why it was not more", n, err)
		}
		if left := w.outbox(); left != 2 {
			t.Errorf("%d events wait, want 2", left)
		}
		a.before = func(_ context.Context, call string) error {
			if call == "look" {
				return errPlanted
			}
			return nil
		}
		if n, err := a.relay.Sweep(t.Context()); !errors.Is(err, errPlanted) || n != 0 {
			t.Errorf("got %d, %v of a store that fails", n, err)
		}
	})
}

func TestASweepEndsWithItsContextAndMarksWhatWasAcknowledged(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		ctx, cancel := context.WithCancel(t.Context())
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == "jobs" {
				n, _ := a.acceptAll(ctx, events)
				cancel()
				return n, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		a.changes("jobs", 3)
		a.changes("reports", 3)
		n, err := a.relay.Sweep(ctx)
		if err == nil || n != 3 || w.outbox() != 3 {
			t.Errorf("got %d, %v with %d waiting; want 3, an error, and 3", n, err, w.outbox())
		}
	})
}
