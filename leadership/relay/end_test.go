package relay_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/relay"
)

func TestAtTheEndWhatWaitsIsPublishedAndMarked(t *testing.T) {
	for _, elections := range []int{10, 5 * parallel} {
		t.Run(fmt.Sprintf("%d elections", elections), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) { atTheEnd(t, w, elections) })
		})
	}
}

func atTheEnd(t *testing.T, w *world, elections int) {
	a := w.instance("a")
	a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
		time.Sleep(200 * time.Millisecond)
		return a.acceptAll(ctx, events)
	}
	a.run()
	for range 2 { // the second of which waits for the first
		for e := range elections {
			a.change(election(e))
		}
		synctest.Wait()
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
}

func TestTheEndDoesNotWaitForWhatIsCommittedAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return a.acceptAll(ctx, events)
		}
		a.run()
		var changing sync.WaitGroup
		changing.Go(func() {
			for range 100 {
				a.change("jobs")
				time.Sleep(30 * time.Millisecond)
			}
		})
		w.wait(time.Second)
		started := time.Now()
		a.end()
		if took := time.Since(started); took > 500*time.Millisecond {
			t.Errorf("the end took %v", took)
		}
		changing.Wait()
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

func TestTheLeaseIsGivenBackAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.instance("dead").change("jobs")
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == relay.Election {
				return a.acceptAll(ctx, events)
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		a.run()
		w.wait(5 * time.Second)
		w.leads("a")
		started := time.Now()
		a.end()
		if took := time.Since(started); took > 2*time.Second {
			t.Errorf("the end took %v", took)
		}
		w.leads("")
		w.topic.expect(relay.Election, 1, 2)
		if n := w.outbox(); n != 1 {
			t.Errorf("%d events wait, want the one that could not be published", n)
		}
	})
}
