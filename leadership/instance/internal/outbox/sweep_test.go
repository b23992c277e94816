package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// An instance that reaches the store and not the topic keeps no other from announcing what it
// commits, however long that lasts, and tells its own watchers what the others commit.
func TestInstanceCutFromTheTopicIsAnnouncedByAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		cut, other := f.instance("cut"), f.instance("other")
		cut.publish = func(context.Context, []leadership.Event) (int, error) { return 0, errPlanted }
		cut.run()
		time.Sleep(5 * time.Second)
		other.run()
		var total, worst time.Duration
		const changes = 200
		for k := range changes {
			time.Sleep(time.Duration(k%30) * time.Second)
			cut.change(election(k))
			took := f.settle(bound)
			total, worst = total+took, max(worst, took)
		}
		t.Logf("%d changes were announced by another instance after %v, %v at the worst", changes, total/changes, worst)
		if total/changes > 22*time.Second {
			t.Errorf("an event waited for %v in the mean", total/changes)
		}
		f.topic.expectDuplicates(0)
		if !errors.Is(cut.CannotAnnounce(), errPlanted) || other.CannotAnnounce() != nil {
			t.Errorf("cut: %v, other: %v", cut.CannotAnnounce(), other.CannotAnnounce())
		}
		other.change("news")
		f.wait(2 * interval)
		if want := (leadership.EventID{Election: election(7), Revision: 1}); !slices.Contains(other.found, want) {
			t.Error("the other instance was not told what it found in the outbox")
		}
	})
}

func TestInstanceReportsWhatOthersLeaveBehindForAsLongAsTheyDo(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		cut, other, well := f.instance("cut"), f.instance("other").run(), f.instance("well").run()
		var broken atomic.Bool
		cut.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if broken.Load() {
				return 0, errPlanted
			}
			return cut.acceptAll(ctx, events)
		}
		cut.run()
		work := func(d time.Duration, check func(after time.Duration)) {
			for began := time.Now(); time.Since(began) < d; check(time.Since(began)) {
				well.change("busy")
				cut.change("jobs")
				f.wait(3 * time.Second)
			}
		}
		work(5*time.Minute, func(time.Duration) {
			if other.OthersLeave() || well.OthersLeave() || cut.OthersLeave() {
				t.Fatal("all is announced at once, and an instance says otherwise")
			}
		})
		broken.Store(true)
		work(5*time.Minute, func(after time.Duration) {
			if after > bound && !other.OthersLeave() && !well.OthersLeave() {
				t.Fatalf("after %v no instance says that another leaves events behind", after)
			}
			require.False(t, cut.OthersLeave(), "an instance takes its own events for those of others")
		})
		broken.Store(false)
		work(5*time.Minute, func(after time.Duration) {
			if after > 2*bound && (other.OthersLeave() || well.OthersLeave()) {
				t.Fatalf("after %v another instance is still said to leave events behind", after)
			}
		})
	})
}

// The promise to watchers, that a change is found within 20 s, does not depend on the topic.
func TestTopicThatHangsDoesNotPutOffTheNextLook(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a, b := f.instance("a"), f.instance("b")
		for _, i := range []*instance{a, b} {
			i.publish = func(ctx context.Context, _ []leadership.Event) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			i.run()
		}
		for k := range 200 { // more than are published at once
			b.change(election(k))
		}
		for k := range 30 {
			f.wait(time.Duration(k) * time.Second)
			e := election(1000 + k)
			b.change(e)
			f.wait(20 * time.Second)
			a.mu.Lock()
			found := slices.Contains(a.found, leadership.EventID{Election: e, Revision: 1})
			a.mu.Unlock()
			require.True(t, found, "change %d was not found within 20 s", k)
		}
	})
}

func TestCutInstanceTellsItsWatchersEventsThatAnotherLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
		a.publish = func(context.Context, []leadership.Event) (int, error) { return 0, errPlanted }
		a.run()
		f.instance("dead").changes("jobs", 3)
		f.wait(interval * 5 / 4)
		want := []leadership.EventID{{Election: "jobs", Revision: 1}, {Election: "jobs", Revision: 2}, {Election: "jobs", Revision: 3}}
		if !slices.Equal(a.found, want) {
			t.Errorf("found %v, want %v", a.found, want)
		}
		f.wait(time.Hour)
		if !slices.Equal(a.found, want) {
			t.Errorf("what waits was found again: %v", a.found)
		}
		assert.ErrorIs(t, a.CannotAnnounce(), errPlanted, "left behind because of")
	})
}

func TestEventsOfADeadInstanceAreAnnouncedByAnother(t *testing.T) {
	for _, instances := range []int{1, 8} {
		t.Run(fmt.Sprintf("%d instances", instances), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fleet) {
				dead, all := f.instance("dead"), f.running(instances)
				const rounds = 40
				var total time.Duration
				for round := range rounds {
					f.wait(time.Duration(round) * time.Second)
					for e := range 10 {
						dead.changes(election(e), 3)
					}
					total += f.settle(bound)
				}
				t.Logf("it took %v in the mean", total/rounds)
				f.topic.expectAll()
				f.topic.expectDuplicates(0)
				calls := 0
				for _, i := range all {
					calls += i.count("publish")
				}
				if calls != 10*rounds {
					t.Errorf("the topic was called %d times, want once for each election and round", calls)
				}
			})
		})
	}
}

func TestLookThatFailsIsToldUntilOneSucceeds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
		var broken atomic.Bool
		broken.Store(true)
		a.before = func(_ context.Context, call string) error {
			if call == "look" && broken.Load() {
				return errPlanted
			}
			return nil
		}
		a.run()
		f.wait(time.Minute)
		a.change("jobs") // which the announcer announces
		f.wait(time.Minute)
		assert.ErrorIs(t, a.CannotAnnounce(), errPlanted, "no look has succeeded")
		broken.Store(false)
		f.wait(interval * 5 / 4)
		assert.NoError(t, a.CannotAnnounce(), "a look has succeeded")
	})
}

func TestOneElectionThatFailsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		dead := f.instance("dead")
		dead.changes("aaa", 1200) // more than a look has, and before all others
		for e := range 10 {
			dead.changes(election(e), 2)
		}
		var broken atomic.Bool
		broken.Store(true)
		a := f.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == "aaa" && broken.Load() {
				return 0, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		f.wait(bound)
		for e := range 10 {
			f.topic.expect(election(e), 1, 2)
		}
		assert.EqualValues(t, 1200, f.waiting(), "events wait")
		f.topic.expect("aaa")
		if a.CannotAnnounce() == nil {
			t.Error("nothing is said of what was left behind")
		}
		broken.Store(false)
		f.settle(time.Minute)
		f.topic.expect("aaa", seq(1200)...)
		assert.NoError(t, a.CannotAnnounce(), "all is announced, and events are left behind")
	})
}

func TestManyEventsOfOneElectionAreAnnouncedInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		const n = 250 // more than two calls of the topic have
		f.instance("dead").changes("jobs", n)
		f.instance("a").run()
		f.settle(2 * bound)
		f.topic.expect("jobs", seq(n)...)
		f.topic.expectDuplicates(0)
	})
}

func TestSweepGoesOnAlthoughOneElectionIsCorrupt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
		a.store.Store = damagedStore{f.store}
		a.run()
		synctest.Wait()
		dead := f.instance("dead")
		dead.change("damaged")
		a.change("damaged")
		for e := range 10 {
			dead.change(election(e))
		}
		f.wait(bound)
		for e := range 10 {
			f.topic.expect(election(e), 1)
		}
		f.topic.expect("damaged")
		if !f.log.has("an event cannot be read") || !f.log.has("damaged") {
			t.Error("the log does not name the election")
		}
		a.change("jobs")
		synctest.Wait()
		f.topic.expect("jobs", 1)
		assert.NoError(t, a.CannotAnnounce(), "one election that is corrupt makes the instance")
	})
}

// damagedStore cannot read the events of the election "damaged".
type damagedStore struct{ service.Store }

func (s damagedStore) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	events, err := s.Store.Unannounced(ctx, e, limit)
	events = slices.DeleteFunc(events, func(e leadership.Event) bool { return e.Election == "damaged" })
	if err == nil && len(events) == 0 && (e == "" || e == "damaged") {
		return nil, rule.Corrupt("damaged", errPlanted)
	}
	return events, err
}

func TestAfterAFailureTheSameInstanceSweepsSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
		var broken atomic.Bool
		var tried []time.Duration
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if !broken.Load() {
				return a.acceptAll(ctx, events)
			}
			tried = append(tried, f.clock())
			return 0, errPlanted
		}
		a.run()
		a.change("jobs")
		synctest.Wait()
		broken.Store(true)
		for range 40 {
			a.change("jobs")
			time.Sleep(50 * time.Millisecond)
		}
		if n := len(tried); n != 2 {
			t.Errorf("a topic that fails was tried %d times in 2 s, want once at once and once after a second: %v", n, tried)
		}
		broken.Store(false)
		f.settle(3 * time.Second)
		f.topic.expectDuplicates(0)
		reads := a.count("read")
		a.change("jobs")
		synctest.Wait()
		f.topic.expect("jobs", seq(42)...)
		if a.count("read") != reads {
			t.Error("the announcer does not know what the sweep has published")
		}
		assert.NoError(t, a.CannotAnnounce(), "all is announced, and events are left behind")
	})
}

func TestPausesGrowWhileTheTopicFailsAndStartAgainAfterASuccess(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
		var broken atomic.Bool
		var tried []time.Duration
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if broken.Load() {
				if now := f.clock(); len(tried) == 0 || now > tried[len(tried)-1] { // a look may fall on the change
					tried = append(tried, now)
				}
				return 0, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		for range 2 {
			broken.Store(true)
			for tried = nil; len(tried) < 9; f.wait(100 * time.Millisecond) {
				a.change("jobs")
			}
			for k, want := range []time.Duration{1, 2, 4, 8, 15, 15, 15, 15} {
				want *= time.Second
				if got := tried[k+1] - tried[k]; got < want*3/4 || got > want*5/4+100*time.Millisecond {
					t.Errorf("pause %d took %v, want %v, a quarter more or less", k+1, got, want)
				}
			}
			broken.Store(false)
			f.settle(interval * 5 / 4)
			f.wait(interval * 5 / 4)
		}
		f.topic.expect("jobs", seq(int(f.made.Load()))...)
	})
}

// counted counts the events that are read of the outbox of all elections.
type counted struct {
	service.Store
	events *atomic.Int64
}

func (c counted) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	found, err := c.Store.Unannounced(ctx, e, limit)
	if e == "" {
		c.events.Add(int64(len(found)))
	}
	return found, err
}

func TestAFullOutboxIsNotReadAgainAndAgainWhileTheTopicIsOutOfReach(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		var broken atomic.Bool
		var events atomic.Int64
		broken.Store(true)
		a, dead := f.instance("a"), f.instance("dead")
		a.store.Store = counted{f.store, &events}
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if broken.Load() {
				return 0, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		for k := range 600 {
			dead.changes(election(k), 10)
		}
		a.run()
		f.wait(time.Minute)
		events.Store(0)
		for k := range 10 {
			dead.change("last") // of all names, and none of the first 5,000 events
			f.wait(interval * 5 / 4)
			want := leadership.EventID{Election: "last", Revision: leadership.Revision(k + 1)}
			if !slices.Contains(a.found, want) {
				t.Errorf("%s is not found", name(want))
			}
		}
		if n := events.Load(); n > 10*2*500 {
			t.Errorf("%d events were read in %v, want 500 in a look", n, 10*interval*5/4)
		}
		broken.Store(false)
		f.settle(2 * bound)
		f.topic.expectAll()
	})
}

func TestPartialAcknowledgementCountsForThatPart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		a := f.instance("a")
		first := true
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if first {
				first = false
				a.acceptAll(ctx, events[:min(4, len(events))])
				return 2, nil // without an error, which does not mean all
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		synctest.Wait()
		f.instance("dead").changes("jobs", 5)
		a.change("jobs")
		f.wait(2 * markDelay)
		assert.EqualValues(t, 4, f.waiting(), "events are not marked")
		f.settle(2 * time.Second)
		f.topic.expect("jobs", 1, 2, 3, 4, 3, 4, 5, 6)
	})
}

func TestSweepAnnouncesAllThatWasLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet) {
		asleep := f.instance("asleep") // it never runs
		for e := range 10 {
			asleep.changes(election(e), 40)
		}
		started := time.Now()
		n, err := asleep.Sweep(t.Context())
		if err != nil || n != 400 {
			t.Errorf("got %d, %v; want 400", n, err)
		}
		assert.Equal(t, 2*time.Second, time.Since(started), "it took")
		f.topic.expectAll()
		f.topic.expectDuplicates(0)
		started, looks := time.Now(), asleep.count("look")
		n, err = asleep.Sweep(t.Context())
		if took := time.Since(started); err != nil || n != 0 || took != 0 || asleep.count("look") != looks+1 {
			t.Errorf("with nothing left it gave %d, %v after %v and %d looks; want one look", n, err, took, asleep.count("look")-looks)
		}
	})
}
