package relay_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/relay"
)

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
		w.wait(40 * time.Second)
		w.settle(time.Minute)
		w.topic.checkEV()
		if n := w.terms(); n != 1 {
			t.Errorf("the outage made %d terms, want 1", n)
		}
		w.leads("")
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
		w.wait(20 * time.Second)
		if took := stopped - granted; took != 10*time.Second || stopped-began >= 5*time.Second {
			t.Errorf("it published from %v after the grant until %v, want until its first renewal", began-granted, took)
		}
		if !w.log.has("stopped before all was published") {
			t.Error("nobody was told why")
		}
	})
}

func TestARelayThatCannotRenewStopsAtItsDeadline(t *testing.T) {
	for renewals := range 2 {
		t.Run(fmt.Sprintf("after %d renewals", renewals), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) { cannotRenew(t, w, renewals) })
		})
	}
}

func cannotRenew(t *testing.T, w *world, renewals int) {
	w.instance("dead").change("jobs")
	a := w.instance("a")
	var sent, stopped time.Duration
	left := 1 + renewals
	a.before = func(_ context.Context, call string) error {
		if call != "renew" && call != "update relay" {
			return nil
		}
		if left == 0 {
			return fmt.Errorf("%w: %w", leadership.StoreUnavailable, errPlanted)
		}
		left--
		sent = w.clock()
		time.Sleep(200 * time.Millisecond) // on its way
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
	w.wait(45 * time.Second)
	if got, want := stopped-sent, 30*time.Second*999/1000-time.Second; got != want {
		t.Errorf("it stopped %v after it had last asked with success, want %v", got, want)
	}
	if !w.log.has("could not be renewed in time") {
		t.Error("nobody was told why")
	}
	if n := a.count("renew"); n < 15 || n > 25 {
		t.Errorf("it tried to renew %d times, want once a second for the last two thirds", n)
	}
}

func TestARelayThatWasSuspendedKnowsThatItsTermIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.instance("dead").change("jobs")
		a := w.instance("a")
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if events[0].Election == "jobs" {
				return 0, errPlanted
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		w.wait(2500 * time.Millisecond)
		w.leads("a")
		tried := a.count("publish")
		a.suspended.Store(int64(time.Hour))
		w.wait(5 * time.Second) // the next attempt comes after a second, and the next renewal after 10
		w.leads("")
		if n := a.count("publish"); n != tried+1 {
			t.Errorf("it published %d times, want only the end of its term", n-tried)
		}
	})
}

func TestWhenNobodyCanHaveTheLeaseWhatWasLeftBehindIsAnnouncedAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dead := w.instance("dead")
		g, err := dead.service.Acquire(t.Context(), leadership.AcquireRequest{Election: relay.Election, CandidateID: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = dead.service.Delete(t.Context(), leadership.DeleteRequest{
			Election: relay.Election, DeleteCommand: leadership.DeleteCommand{IfRevision: g.Revision, Force: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		dead.change("jobs")
		w.instance("a").run()
		w.settle(30 * time.Second)
		w.topic.checkEV()
		if !w.log.has("no lease to be had") {
			t.Error("nobody was told")
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
		keys := make(map[leadership.KeyHash]bool)
		a.publish = func(ctx context.Context, events []leadership.Event) (int, error) {
			if snap, _ := w.store.Get(ctx, relay.Election); snap.Live() {
				keys[snap.Record.KeyHash] = true
			}
			return a.acceptAll(ctx, events)
		}
		a.run()
		w.wait(30 * time.Second)
		if calls < 4 {
			t.Errorf("the relays' election was asked %d times, want a grant and three releases at least", calls)
		}
		dead.change("jobs")
		w.wait(30 * time.Second)
		if n := w.terms(); n < 2 || len(keys) != int(n) {
			t.Errorf("there were %d terms, want two or more, with %d keys", n, len(keys))
		}
		w.topic.checkEV()
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
