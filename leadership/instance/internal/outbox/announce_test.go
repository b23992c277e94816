package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/instance/internal/outbox"
	"regent/leadership/service"
)

func TestEventWaitsForTheOneBeforeItThatAnotherInstanceCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		f.instance("dead").changes("jobs", 3)
		a := f.instance("a").run()
		synctest.Wait()
		a.change("jobs")
		synctest.Wait()
		f.topic.expect("jobs", 1, 2, 3, 4)
		if n := a.count("read"); n != 1 {
			t.Errorf("the outbox of the election was read %d times, want once", n)
		}
		a.change("jobs")
		synctest.Wait()
		f.topic.expect("jobs", 1, 2, 3, 4, 5)
		if n := a.count("read"); n != 1 {
			t.Error("the outbox of the election was read again")
		}
		f.settle(time.Second)
	})
}

// torn is a store whose first reads of an election's outbox see the last event alone, as reads that
// are not of one moment may.
type torn struct {
	service.Store
	reads int
}

func (s *torn) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	page, err := s.Store.Unannounced(ctx, e, limit)
	if e != "" && s.reads > 0 {
		s.reads--
		page = page[len(page)-1:]
	}
	return page, err
}

func TestEventsMissedByAReadAreStillPublished(t *testing.T) {
	for reads, want := range map[int][]leadership.Revision{
		1: {1, 2, 3, 4, 5, 6, 7}, // the second read sees them
		2: {1, 2, 3, 4, 7, 5, 6}, // they come late
	} {
		t.Run(fmt.Sprintf("%d reads", reads), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fleet) {
				a := f.instance("a")
				store := &torn{Store: a.store.Store}
				a.store.Store = store
				f.topic.overtakes = reads > 1
				a.run()
				synctest.Wait()
				a.changes("jobs", 4)
				f.settle(time.Second)
				f.instance("dead").changes("jobs", 2)
				store.reads = reads
				a.change("jobs")
				f.settle(bound)
				f.topic.expect("jobs", want...)
				f.topic.expectAll()
			})
		})
	}
}

func TestLimitedNumberOfElectionsIsPublishedAtTheSameTime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		var now, most atomic.Int32
		a := f.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return a.acceptAll(ctx, events)
		}
		a.run()
		synctest.Wait()
		for e := range 3 * parallel {
			a.change(election(e))
		}
		f.wait(3*time.Second + 2*markDelay)
		if n := most.Load(); n != parallel {
			t.Errorf("%d elections were published at the same time, want %d", n, parallel)
		}
		if n := f.topic.expectAll(); n != 3*parallel {
			t.Errorf("there are %d events", n)
		}
	})
}

func TestStrayMessageKeepsNothingFromBeingAnnounced(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a").run()
		synctest.Wait()
		a.Heard(leadership.Event{Election: "jobs", Revision: 1_000_000})
		a.changes("jobs", 3)
		f.settle(bound)
		f.topic.expect("jobs", 1, 2, 3)
	})
}

func TestForgottenElectionIsRead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a").run()
		a.change("jobs")
		synctest.Wait()
		for k := range outbox.MaxKnown + 10 {
			a.Heard(leadership.Event{Election: election(k), Revision: 7})
		}
		if n := a.Remembered(); n > outbox.MaxKnown {
			t.Errorf("%d elections are remembered, want at most %d", n, outbox.MaxKnown)
		}
		f.instance("dead").change("jobs")
		a.change("jobs")
		synctest.Wait()
		f.topic.expect("jobs", 1, 2, 3)
	})
}

func TestPublishDoesNotBlockAndLeavesExcessEventsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
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
		if a.CannotAnnounce() == nil || !f.log.has("too many events wait") {
			t.Error("nothing is said of events that were left behind")
		}
		stalled.Store(false)
		f.settle(time.Minute)
		if n := f.topic.expectAll(); n != 12_000 {
			t.Errorf("there are %d events, want 12,000", n)
		}
		f.wait(interval)
		assert.NoError(t, a.CannotAnnounce(), "all is announced, and events are left behind")
	})
}

func TestAtTheEndWhatWaitsIsPublishedAndMarked(t *testing.T) {
	for _, elections := range []int{10, 5 * parallel} {
		t.Run(fmt.Sprintf("%d elections", elections), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fleet) { atTheEnd(t, f, elections) })
		})
	}
}

func atTheEnd(t *testing.T, f *fleet, elections int) {
	a := f.instance("a")
	a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
		time.Sleep(200 * time.Millisecond)
		return a.acceptAll(ctx, events)
	}
	a.run()
	for range 2 { // the second waits for the first
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
	f.topic.expectAll()
	a.change("jobs") // too late
	synctest.Wait()
	f.topic.expect("jobs")
}

func TestEndComesThoughTopicOrStoreStalls(t *testing.T) {
	for _, stalled := range []string{"publish", "mark", "read", "look"} {
		t.Run(stalled, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fleet) {
				a := f.instance("a")
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
				f.instance("dead").change("jobs")
				a.run()
				synctest.Wait()
				a.change("jobs")
				a.change("reports")
				time.Sleep(time.Second)
				started := time.Now()
				a.end()
				if took := time.Since(started); took > 2*time.Second {
					t.Errorf("the end took %v, want 2 s at most", took)
				}
			})
		})
	}
}
