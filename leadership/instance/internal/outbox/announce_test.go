package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/outbox"
)

func TestChangeIsAnnouncedAtOnceAndMarkedSoonAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a").run()
		synctest.Wait()
		a.change("jobs")
		synctest.Wait()
		f.topic.expect("jobs", 1)
		if n := f.waiting(); n != 1 {
			t.Errorf("%d events wait to be marked, want 1", n)
		}
		f.wait(markDelay)
		if n := f.waiting(); n != 0 {
			t.Errorf("%d events wait to be marked after %v", n, markDelay)
		}
	})
}

func TestBothEventsOfATakeoverAreAnnouncedTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a").run()
		for _, candidate := range []leadership.CandidateID{"ann", "bob"} {
			_, err := a.service.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: candidate})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(leadership.DefaultLeaseDuration)
		}
		f.topic.expect("jobs", 1, 2, 3)
		if n := a.count("publish"); n != 2 {
			t.Errorf("the topic was called %d times, want once for each change", n)
		}
	})
}

func TestHealthyChangeCostsOnePublishAndItsShareOfAMark(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a").run()
		const rounds, elections = 100, 20
		for range rounds {
			for e := range elections {
				a.change(election(e))
			}
			time.Sleep(markDelay)
		}
		f.settle(time.Second)
		if n := a.count("mark"); n < rounds/2 || n > rounds {
			t.Errorf("%d changes took %d marks, want one for each 100 ms", rounds*elections, n)
		}
		if n := a.count("read"); n != 0 {
			t.Errorf("the outbox of an election was read %d times", n)
		}
		if n := a.count("publish"); n != rounds*elections {
			t.Errorf("the topic was called %d times for %d changes", n, rounds*elections)
		}
		f.topic.expectDuplicates(0)
		f.topic.expectAll()
	})
}

func TestFullBatchIsMarkedAtOnceAndTheRestSoonAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a").run()
		synctest.Wait()
		for e := range 700 {
			a.change(election(e))
			synctest.Wait()
		}
		if n := f.waiting(); n != 200 {
			t.Errorf("%d events wait to be marked, want the 200 beyond a full batch", n)
		}
		f.wait(markDelay)
		if n, marks := f.waiting(), a.count("mark"); n != 0 || marks != 2 {
			t.Errorf("%d events wait to be marked after %d calls, want none after 2", n, marks)
		}
	})
}

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

func TestEventThatFollowsWhatWasHeardNeedsNoRead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a, b := f.instance("a").run(), f.instance("b").run()
		f.topic.hearers = append(f.topic.hearers, a.Heard, b.Heard)
		for range 10 {
			a.change("jobs")
			synctest.Wait()
			b.change("jobs")
			synctest.Wait()
		}
		f.settle(time.Second)
		if n := a.count("read") + b.count("read"); n != 0 {
			t.Errorf("the outbox of the election was read %d times", n)
		}
		f.topic.expectDuplicates(0)
		f.topic.expectAll()
	})
}

// torn is a store whose first reads of an election's outbox see the last event alone, as reads that
// are not of one moment may.
type torn struct {
	leadership.Store
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

func TestChangesToldInTheWrongOrderAreAnnouncedInTheRightOne(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy %t", busy), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fleet) { wrongOrder(t, f, busy) })
		})
	}
}

// wrongOrder tells of four changes in the wrong order: one after the other, or all but the first
// while the first is on its way.
func wrongOrder(t *testing.T, f *fleet, busy bool) {
	a := f.instance("a")
	var kept []leadership.Event
	a.tell = func(events ...leadership.Event) { kept = append(kept, events...) }
	a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
		time.Sleep(100 * time.Millisecond)
		return a.acceptAll(ctx, events)
	}
	a.run()
	synctest.Wait()
	a.changes("jobs", 4)
	order := []int{3, 1, 0, 2}
	if busy {
		order = []int{0, 3, 1, 2}
	}
	for _, k := range order {
		a.Publish(kept[k])
		if !busy {
			f.wait(time.Second)
		}
	}
	f.wait(time.Second)
	f.topic.expect("jobs", 1, 2, 3, 4)
	if n := a.count("read"); busy && n > 0 {
		t.Errorf("the outbox of the election was read %d times", n)
	}
}

func TestWhatWaitsIsPublishedTogetherAndInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			time.Sleep(time.Second)
			return a.acceptAll(ctx, events)
		}
		a.run()
		synctest.Wait()
		a.change("jobs")
		synctest.Wait()
		a.changes("jobs", 250) // while the first is on its way
		f.wait(time.Minute)
		if n := a.count("publish"); n != 1+3 {
			t.Errorf("the topic was called %d times, want once, and three times for up to 100 events", n)
		}
		f.topic.expect("jobs", seq(251)...)
		f.topic.expectAll()
	})
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

func TestStalledElectionHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
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
			f.topic.expect(election(e), 1)
			time.Sleep(100 * time.Millisecond) // 20 s in all: the stalled one is tried again
		}
		f.topic.expect("stalled")
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
		if err := a.CannotAnnounce(); err != nil {
			t.Errorf("all is announced, and events are left behind: %v", err)
		}
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

func TestEndDoesNotWaitForLaterCommits(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
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
		f.wait(time.Second)
		started := time.Now()
		a.end()
		if took := time.Since(started); took > 500*time.Millisecond {
			t.Errorf("the end took %v", took)
		}
		changing.Wait()
	})
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
