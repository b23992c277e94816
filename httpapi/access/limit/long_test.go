package limit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/limit"
	"regent/leadership"
	"regent/leadership/instance"
)

// long runs a test in a bubble, on a service that handles concurrency requests at a time.
func long(t *testing.T, concurrency int, test func(t *testing.T, s *instance.Guarded, refused *int)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		gate := limit.NewLong(concurrency, 0, func(context.Context, bool) { refused++ })
		test(t, instance.Guard(serve(t), gate), &refused)
	})
}

func TestLongCallsOfAllPrincipalsTogetherLeaveRoomForRenewals(t *testing.T) {
	long(t, 10, func(t *testing.T, s *instance.Guarded, refused *int) {
		lead, err := acquire(s, t.Context(), "reports", "ann", 0)
		require.NoError(t, err)
		ctx, hangUp := context.WithCancel(t.Context())
		var open sync.WaitGroup
		for i := range 3 {
			open.Go(func() {
				acquire(s, by(ctx, fmt.Sprint("waiter ", i)), "reports", leadership.CandidateID(fmt.Sprint("bob-", i)), time.Minute)
			})
			open.Go(func() {
				s.Await(by(ctx, fmt.Sprint("poller ", i)), leadership.ReadRequest{Election: "reports", Known: 1}, time.Minute)
			})
		}
		_, watch, err := s.Watch(by(ctx, "watcher"), leadership.WatchRequest{Election: "reports"})
		require.NoError(t, err)
		feed, err := s.Feed(by(ctx, "reader"), leadership.Selection{}, instance.Cursor{})
		require.NoError(t, err)
		defer feed.Close()
		synctest.Wait()

		_, err = acquire(s, by(ctx, "late"), "reports", "cy", time.Minute)
		wantLimited(t, "a ninth long call of ten, which waits", err)
		_, _, err = s.Await(ctx, leadership.ReadRequest{Election: "reports", Known: 1}, time.Minute)
		wantLimited(t, "a long poll", err)
		_, err = s.Feed(ctx, leadership.Selection{}, instance.Cursor{})
		wantLimited(t, "a stream of all", err)
		if *refused != 3 {
			t.Errorf("%d refusals were told, want 3", *refused)
		}
		if _, err := s.Renew(ctx, leadership.LeaseRequest{Election: "reports", CandidateID: "ann", Key: lead.Key, Token: lead.Token}); err != nil {
			t.Errorf("a renewal: %v", err)
		}
		if _, err := s.Read(ctx, leadership.ReadRequest{Election: "reports"}); err != nil {
			t.Errorf("a read: %v", err)
		}
		watch.Close()
		hangUp()
		open.Wait()
		for range 7 {
			if _, watch, err = s.Watch(t.Context(), leadership.WatchRequest{Election: "reports"}); err != nil {
				t.Fatalf("after all have hung up: %v", err)
			}
			defer watch.Close()
		}
	})
}

func TestAnInstanceOfTwoRequestsAtATimeTakesOneLongCall(t *testing.T) {
	long(t, 2, func(t *testing.T, s *instance.Guarded, _ *int) {
		_, watch, err := s.Watch(t.Context(), leadership.WatchRequest{Election: "reports"})
		if err != nil {
			t.Fatalf("a first stream: %v", err)
		}
		defer watch.Close()
		_, err = acquire(s, t.Context(), "reports", "ann", time.Second)
		wantLimited(t, "a candidate that would wait", err)
		if _, err := acquire(s, t.Context(), "reports", "ann", 0); err != nil {
			t.Errorf("a candidate that would not: %v", err)
		}
	})
}

func TestOnePrincipalGetsHalfOfTheLongCallsOfAnInstance(t *testing.T) {
	for name, at := range map[string]struct{ concurrency, connections int }{"concurrency": {10, 1000}, "connections": {0, 8}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := instance.Guard(serve(t), limit.NewLong(at.concurrency, at.connections, nil))
				watch := func(who string) (*instance.Watch, error) {
					_, w, err := s.Watch(by(t.Context(), who), leadership.WatchRequest{Election: "reports"})
					return w, err
				}
				for range 4 {
					w, err := watch("ann")
					require.NoError(t, err)
					defer w.Close()
				}
				_, err := watch("ann")
				wantLimited(t, "more than half", err)
				other, err := watch("bob")
				if err != nil {
					t.Fatalf("another principal: %v", err)
				}
				other.Close()
			})
		})
	}
}
