package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/relay"
)

func TestWhatADeadInstanceCommittedIsAnnouncedByAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead, a := w.instance("dead"), w.instance("a").run()
		for e := range 50 {
			dead.changes(election(e), 3)
		}
		time.Sleep(3 * time.Second)
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
		time.Sleep(time.Hour)
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

func TestOneRelaysAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead := w.instance("dead")
		for e := range 200 {
			dead.changes(election(e), 1)
		}
		var all []*instance
		var now, most atomic.Int32
		for k := range 8 {
			i := w.instance(leadership.CandidateID(fmt.Sprintf("i%d", k)))
			i.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
				if events[0].Election != relay.Election { // which the announcer publishes
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
				}
				time.Sleep(500 * time.Millisecond)
				return i.acceptAll(ctx, events)
			}
			all = append(all, i.run())
		}
		w.settle(time.Minute)
		w.topic.checkEV()
		if n := w.topic.duplicates(); n != 0 {
			t.Errorf("%d duplicates", n)
		}
		if n := most.Load(); n != parallel {
			t.Errorf("%d elections were published at the same time, want %d", n, parallel)
		}
		relays := 0
		for _, i := range all {
			if i.count("publish") > 0 {
				relays++
			}
		}
		if relays != 1 {
			t.Errorf("%d instances published", relays)
		}
		w.leads("")
	})
}

func TestALongOutageIsOneTermAndBoundedLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		broken.Store(true)
		var all []*instance
		for k := range 3 {
			i := w.instance(leadership.CandidateID(fmt.Sprintf("i%d", k)))
			i.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
				if broken.Load() {
					return 0, errPlanted
				}
				return i.acceptAll(ctx, events)
			}
			all = append(all, i.run())
		}
		for k := range 360 {
			all[k%3].change(election(k % 20))
			time.Sleep(5 * time.Second)
		}
		tried, looks := 0, 0
		for _, i := range all {
			tried += i.count("publish")
			looks += i.count("look")
		}
		if n := w.terms(); n != 1 {
			t.Errorf("half an hour of outage made %d terms, want 1", n)
		}
		if tried > 3000 || looks > 1500 {
			t.Errorf("the topic was tried %d times, and the outbox looked at %d times", tried, looks)
		}
		broken.Store(false)
		time.Sleep(40 * time.Second)
		w.settle(time.Minute)
		w.topic.checkEV()
		if n := w.terms(); n != 1 {
			t.Errorf("the outage made %d terms, want 1", n)
		}
		w.leads("")
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
		time.Sleep(20 * time.Second)
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
		time.Sleep(time.Minute)
		if n := a.count("update relay") + b.count("update relay"); n != 0 {
			t.Error("somebody relayed what was on its way")
		}
	})
}

func TestARelayThatLosesItsLeaseStopsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead := w.instance("dead")
		dead.change("jobs")
		a := w.instance("a")
		var granted, began, stopped time.Duration
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			switch {
			case events[0].Election == relay.Election || stopped > 0:
				return a.acceptAll(ctx, events)
			case granted == 0:
				granted = w.clock()
				time.Sleep(5 * time.Second)
				return 0, errPlanted
			}
			began = w.clock()
			_, err := dead.service.Delete(context.Background(), leadership.DeleteRequest{
				Election: relay.Election, DeleteCommand: leadership.DeleteCommand{Force: true},
			})
			if err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			stopped = w.clock()
			return 0, ctx.Err()
		}
		a.run()
		time.Sleep(20 * time.Second)
		if took := stopped - granted; took != 10*time.Second || stopped-began >= 5*time.Second {
			t.Errorf("it published from %v after the grant until %v, want until its first renewal", began-granted, took)
		}
		if !w.log.has("stopped before all was published") {
			t.Error("nobody was told why")
		}
	})
}

func TestARelayThatCannotRenewStopsAtItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.instance("dead").change("jobs")
		a := w.instance("a")
		var sent, stopped time.Duration
		a.before = func(_ context.Context, call string) error {
			if sent > 0 && (call == "renew" || call == "update relay") {
				return fmt.Errorf("%w: %w", leadership.StoreUnavailable, errPlanted)
			}
			if call == "update relay" {
				sent = w.clock()
				time.Sleep(200 * time.Millisecond) // on its way
			}
			return nil
		}
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == relay.Election {
				return a.acceptAll(ctx, events)
			}
			<-ctx.Done()
			stopped = w.clock()
			return 0, ctx.Err()
		}
		a.run()
		time.Sleep(40 * time.Second)
		if got, want := stopped-sent, 30*time.Second*999/1000-time.Second; got != want {
			t.Errorf("it stopped %v after it had asked for the lease, want %v", got, want)
		}
		if !w.log.has("could not be renewed in time") {
			t.Error("nobody was told why")
		}
		if n := a.count("renew"); n < 15 || n > 25 {
			t.Errorf("it tried to renew %d times, want once a second for the last two thirds", n)
		}
	})
}

func TestALeaseThatWasGrantedInALostReplyIsFoundAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.instance("dead").change("jobs")
		a := w.instance("a")
		lost := false
		a.after = func(_ context.Context, call string) error {
			if call == "update relay" && !lost {
				lost = true
				return fmt.Errorf("%w: %w", leadership.OutcomeUnknown, errPlanted)
			}
			return nil
		}
		a.run()
		w.settle(30 * time.Second)
		w.topic.checkEV()
		if n := w.terms(); n != 1 || !lost {
			t.Errorf("there were %d terms, want 1", n)
		}
		w.leads("")
	})
}

func TestAReleaseIsRepeatedUntilItIsAnsweredAndItsKeyIsSpent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead := w.instance("dead")
		dead.change("jobs")
		a := w.instance("a")
		calls := 0
		a.after = func(_ context.Context, call string) error {
			if call != "update relay" {
				return nil
			}
			if calls++; calls == 2 || calls == 3 {
				return fmt.Errorf("%w: %w", leadership.OutcomeUnknown, errPlanted)
			}
			return nil
		}
		a.run()
		time.Sleep(30 * time.Second)
		if calls < 4 {
			t.Errorf("the relay's election was asked %d times, want a grant and three releases", calls)
		}
		before := w.terms()
		dead.change("jobs")
		time.Sleep(30 * time.Second)
		if n := w.terms(); n != before+1 {
			t.Errorf("there were %d terms, want one more than %d", n, before)
		}
		w.topic.checkEV()
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
		time.Sleep(time.Minute)
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
		time.Sleep(5 * time.Second)
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

// leads says who must lead the relays' election.
func (w *world) leads(want leadership.CandidateID) {
	w.t.Helper()
	snap, err := w.store.Get(w.t.Context(), relay.Election)
	if got := snap.Record.LeaderID; err != nil || got != want {
		w.t.Errorf("%q leads the relays' election, %v; want %q", got, err, want)
	}
}

// terms is how many there were in the relays' election.
func (w *world) terms() leadership.Token {
	w.t.Helper()
	snap, err := w.store.Get(w.t.Context(), relay.Election)
	if err != nil {
		w.t.Error(err)
	}
	return snap.Record.Token
}
