package limit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/limit"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

func by(ctx context.Context, name string) context.Context {
	return authn.With(ctx, authn.Principal{Issuer: "test", Subject: name, Email: name + "@test"})
}

// bubble runs a test in a synctest bubble, on a service whose principals have the limits.
func bubble(t *testing.T, limits limit.Limits, test func(*testing.T, *instance.Guarded)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, instance.Guard(serve(t), limit.New(limit.Config{Limits: always(limits)}))) })
}

func always(l limit.Limits) func(authn.Principal) limit.Limits {
	return func(authn.Principal) limit.Limits { return l }
}

func serve(t *testing.T) instance.Service {
	t.Helper()
	start := time.Now()
	i, err := instance.New(instance.Config{
		Store: memory.New(memory.Config{}), Name: "test", Alone: true, Now: func() time.Duration { return time.Since(start) },
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { i.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return i
}

func acquire(s *instance.Guarded, ctx context.Context, e leadership.Election, id leadership.CandidateID, wait time.Duration) (leadership.Grant, error) {
	return s.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: id, Wait: wait})
}

// wantLimited requires that a call was refused by a limit, and returns when to retry.
func wantLimited(t *testing.T, what string, err error) time.Duration {
	t.Helper()
	var refusal *leadership.Error
	if !errors.As(err, &refusal) || refusal.Code != wire.RateLimited || refusal.RetryAfter <= 0 {
		t.Fatalf("%s: %v, want RATE_LIMITED and when to come again", what, err)
	}
	return refusal.RetryAfter
}

// Each call enters under its verb, and has that verb's cost, as leadership/instance shows. Here is
// one of each cost, and of each kind of stream.
func TestACallerThatExceedsItsRateIsRefusedUntilThereIsRoom(t *testing.T) {
	limits := limit.Limits{Renewals: 10, Campaigns: 10, Reads: 10}
	for name, call := range map[string]func(*instance.Guarded, context.Context) error{
		"acquire": func(s *instance.Guarded, ctx context.Context) error {
			_, err := acquire(s, ctx, "reports", "ann", 0)
			return err
		},
		"renew": func(s *instance.Guarded, ctx context.Context) error {
			_, err := s.Renew(ctx, leadership.LeaseRequest{})
			return err
		},
		"read": func(s *instance.Guarded, ctx context.Context) error {
			_, err := s.Read(ctx, leadership.ReadRequest{})
			return err
		},
		"watch as a member": func(s *instance.Guarded, ctx context.Context) error {
			_, _, err := s.Watch(ctx, leadership.WatchRequest{Member: "ann"})
			return err
		},
		"feed": func(s *instance.Guarded, ctx context.Context) error {
			f, err := s.Feed(ctx, leadership.Selection{}, instance.Cursor{})
			if err == nil {
				f.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, limits, func(t *testing.T, s *instance.Guarded) {
				ann, bob := by(t.Context(), "ann"), by(t.Context(), "bob")
				for i := range 20 { // two seconds' worth
					if err := call(s, ann); errors.Is(err, wire.RateLimited) {
						t.Fatalf("call %d: %v", i+1, err)
					}
				}
				after := wantLimited(t, "call 21", call(s, ann))
				if err := call(s, bob); errors.Is(err, wire.RateLimited) {
					t.Errorf("another principal pays for it: %v", err)
				}
				time.Sleep(after)
				if err := call(s, ann); errors.Is(err, wire.RateLimited) {
					t.Errorf("it came again when it was told to: %v", err)
				}
			})
		})
	}
}

func TestWaitingCandidatesAreLimited(t *testing.T) {
	bubble(t, limit.Limits{Waiters: 2}, func(t *testing.T, s *instance.Guarded) {
		ann := by(t.Context(), "ann")
		if _, err := acquire(s, ann, "reports", "leader", 0); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(ann)
		var line sync.WaitGroup
		for i := range 2 {
			line.Go(func() { acquire(s, ctx, "reports", leadership.CandidateID(fmt.Sprintf("c-%d", i)), time.Minute) })
		}
		synctest.Wait()
		_, err := acquire(s, ann, "reports", "c-3", time.Minute)
		wantLimited(t, "the third in line", err)
		leave()
		line.Wait()
		if _, err := acquire(s, ann, "other", "c-3", time.Minute); err != nil {
			t.Errorf("after the others left: %v", err)
		}
	})
}

func TestStreamsAndLongPollsAreLimited(t *testing.T) {
	bubble(t, limit.Limits{Watchers: 2}, func(t *testing.T, s *instance.Guarded) {
		ann := by(t.Context(), "ann")
		open := func() (interface{ Close() }, error) {
			_, w, err := s.Watch(ann, leadership.WatchRequest{Election: "reports"})
			return w, err
		}
		first, err := open()
		require.NoError(t, err)
		second, err := s.Feed(ann, leadership.Selection{}, instance.Cursor{})
		require.NoError(t, err)
		_, err = open()
		wantLimited(t, "the third stream", err)
		_, _, err = s.Await(ann, leadership.ReadRequest{Election: "reports"}, time.Second)
		wantLimited(t, "a long poll beside two streams", err)
		_, err = s.AwaitAcknowledgement(ann, leadership.AcknowledgementRequest{Election: "reports", Token: 1, Need: 1, Wait: time.Second})
		wantLimited(t, "an awaited acknowledgement beside two streams", err)
		_, err = s.AwaitAcknowledgement(ann, leadership.AcknowledgementRequest{Election: "reports", Token: 1, Need: 1})
		if errors.Is(err, wire.RateLimited) {
			t.Errorf("an acknowledgement that is not awaited: %v", err)
		}
		first.Close()
		first.Close() // idempotent
		third, err := open()
		if err != nil {
			t.Fatalf("after one was closed: %v", err)
		}
		_, err = open()
		wantLimited(t, "one more", err)
		second.Close()
		third.Close()
	})
}

func TestACallThatPanicsGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	s := instance.Guard(broken{}, limit.New(limit.Config{Limits: always(limit.Limits{Watchers: 1, Waiters: 1}), Asking: 1, Renewing: 1}))
	ann := by(t.Context(), "ann")
	for name, call := range map[string]func(){
		"watch": func() { s.Watch(ann, leadership.WatchRequest{}) },
		"feed":  func() { s.Feed(ann, leadership.Selection{}, instance.Cursor{}) },
		"wait":  func() { acquire(s, ann, "reports", "ann", time.Second) },
		"read":  func() { s.Read(ann, leadership.ReadRequest{}) },
		"renew": func() { s.Renew(ann, leadership.LeaseRequest{}) },
	} {
		for range 3 {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: it was refused, for no place was given back", name)
					}
				}()
				call()
			}()
		}
	}
}

// broken panics, for it has no service.
type broken struct{ instance.Service }

func TestAStrangersElectionsAreNotRemembered(t *testing.T) {
	t.Parallel()
	s := instance.Guard(denying{}, limit.New(limit.Config{Limits: always(limit.Limits{Elections: 1})}))
	for i := range 3 {
		_, err := acquire(s, by(t.Context(), "eve"), leadership.Election(fmt.Sprintf("e-%d", i)), "eve", 0)
		if !errors.Is(err, wire.PermissionDenied) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

type denying struct{ instance.Service }

func (denying) Acquire(context.Context, leadership.AcquireRequest) (leadership.Grant, error) {
	return leadership.Grant{}, &leadership.Error{Code: wire.PermissionDenied}
}

func TestElectionsOfAPrincipalAreLimited(t *testing.T) {
	bubble(t, limit.Limits{Elections: 2}, func(t *testing.T, s *instance.Guarded) {
		ann := by(t.Context(), "ann")
		for _, e := range []leadership.Election{"a", "b", "a", "b"} {
			if _, err := acquire(s, ann, e, "ann", 0); err != nil && !errors.Is(err, leadership.LeaseHeld) {
				t.Errorf("%s: %v", e, err)
			}
		}
		_, err := acquire(s, ann, "c", "ann", 0)
		wantLimited(t, "the third election", err)
		_, err = s.Do(ann, leadership.Configure{Election: "c"})
		wantLimited(t, "to configure a third", err)
		if _, err := s.Get(t.Context(), "c"); !errors.Is(err, leadership.NotFound) {
			t.Errorf("it is there: %v", err)
		}
	})
}

func TestACallOwesForWhatItReadsThoughItsAnswerIsSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		if _, err := s.Do(t.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 50}}); err != nil {
			t.Fatal(err)
		}
		for n := range 1000 { // none of which was delegated
			if _, err := s.Do(t.Context(), leadership.Configure{Election: leadership.Election(fmt.Sprint("gpu.x", n))}); err != nil {
				t.Fatal(err)
			}
		}
		s = instance.Guard(s, limit.New(limit.Config{Limits: always(limit.Limits{Reads: 20})}))
		for name, call := range map[string]func(context.Context) error{
			"explain": func(ctx context.Context) error {
				_, err := s.Explain(ctx, leadership.ExplainRequest{Election: "gpu", CandidateID: "ann"})
				return err
			},
			"tree": func(ctx context.Context) error { _, err := s.Tree(ctx, "gpu"); return err },
		} {
			ctx := by(t.Context(), name)
			if err := call(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantLimited(t, "the next call after "+name, call(ctx))
		}
	})
}

// slow is a service whose store does not answer.
type slow struct {
	instance.Service
	held    chan struct{}
	renewed atomic.Int64
}

func (s *slow) Get(context.Context, leadership.Election) (leadership.Lease, error) {
	<-s.held
	return leadership.Lease{}, nil
}

func (s *slow) Renew(context.Context, leadership.LeaseRequest) (leadership.Lease, error) {
	s.renewed.Add(1)
	return leadership.Lease{}, nil
}

func TestAFloodOfOtherCallsLeavesRoomForRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		under := &slow{held: make(chan struct{})}
		var refused atomic.Int64
		s := instance.Guard(under, limit.New(limit.Config{Limits: always(limit.Limits{}), Asking: 3, Refused: func(context.Context, bool) { refused.Add(1) }}))
		var flood sync.WaitGroup
		var limited atomic.Int64
		for i := range 100 {
			flood.Go(func() {
				_, err := s.Get(by(t.Context(), fmt.Sprintf("noisy-%d", i)), "reports")
				if errors.Is(err, wire.RateLimited) {
					limited.Add(1)
				}
			})
		}
		for range 100 {
			synctest.Wait()
			if _, err := s.Renew(by(t.Context(), "ann"), leadership.LeaseRequest{}); err != nil {
				t.Fatalf("a renewal had to wait: %v", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		close(under.held)
		flood.Wait()
		if under.renewed.Load() != 100 || limited.Load() != 97 || refused.Load() != 97 {
			t.Errorf("%d renewals; %d calls were sent away, and %d noted; want 100, 97, 97", under.renewed.Load(), limited.Load(), refused.Load())
		}
		ctx, cancel := context.WithCancel(by(t.Context(), "bob"))
		cancel()
		if _, err := s.Get(ctx, "reports"); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}

// One principal gets half of the places of either kind.
func TestOnePrincipalGetsHalfOfThePlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		under := &slow{held: make(chan struct{})}
		s := instance.Guard(under, limit.New(limit.Config{Limits: always(limit.Limits{}), Asking: 4}))
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() {
				if _, err := s.Get(by(t.Context(), "ann"), "reports"); err != nil && !errors.Is(err, wire.RateLimited) {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * time.Second)
		answered := make(chan error)
		go func() {
			_, err := s.Get(by(t.Context(), "bob"), "reports")
			answered <- err
		}()
		time.Sleep(2 * time.Second)
		close(under.held)
		if err := <-answered; err != nil {
			t.Errorf("another principal: %v", err)
		}
		asking.Wait()
	})
}

func TestChangedLimitsHoldAndForgiveNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := limit.Limits{Campaigns: 1}
		s := instance.Guard(serve(t), limit.New(limit.Config{Limits: func(authn.Principal) limit.Limits { return limits }}))
		ann := by(t.Context(), "ann")
		for range 2 {
			acquire(s, ann, "reports", "ann", 0)
		}
		_, err := acquire(s, ann, "reports", "ann", 0)
		wantLimited(t, "the third", err)
		limits.Campaigns, limits.Elections = 100, 1
		_, err = acquire(s, ann, "reports", "ann", 0)
		wantLimited(t, "one more than the limit was", err)
		time.Sleep(time.Second)
		for i := range 100 {
			if _, err := acquire(s, ann, "reports", "ann", 0); errors.Is(err, wire.RateLimited) {
				t.Errorf("%d, after the limit was raised: %v", i, err)
			}
		}
		_, err = acquire(s, ann, "more", "ann", 0)
		wantLimited(t, "an election more than are allowed by now", err)
	})
}

func TestLimitsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, l := range []limit.Limits{{Renewals: -1}, {Campaigns: -1}, {Reads: 1_000_001}, {Waiters: -1}, {Watchers: -5}, {Elections: -1}} {
		if l.Validate() == nil {
			t.Errorf("%+v are limits", l)
		}
	}
	if err := limit.Default.Validate(); err != nil {
		t.Error(err)
	}
}

func TestABatchBiggerThanTheBucketIsPaidForBeforeTheNextCall(t *testing.T) {
	bubble(t, limit.Limits{Renewals: 10}, func(t *testing.T, s *instance.Guarded) {
		var batch []leadership.LeaseRequest
		for i := range leadership.MaxBatch {
			batch = append(batch, leadership.LeaseRequest{Election: leadership.Election(fmt.Sprintf("e-%d", i))})
		}
		ann := by(t.Context(), "ann")
		start := time.Now()
		for range 3 {
			if _, err := s.BatchRenew(ann, batch); err != nil {
				time.Sleep(wantLimited(t, "a batch", err))
				if _, err = s.BatchRenew(ann, batch); err != nil {
					t.Fatal(err)
				}
			}
		}
		if took := time.Since(start); took < 2*leadership.MaxBatch/10*time.Second {
			t.Errorf("%d renewals at 10 a second took %v", 3*leadership.MaxBatch, took)
		}
	})
}

func TestAnElectionThatIsNotUsedForADayCountsNoMore(t *testing.T) {
	bubble(t, limit.Limits{Elections: 2}, func(t *testing.T, s *instance.Guarded) {
		ann := by(t.Context(), "ann")
		use := func(e leadership.Election) error {
			_, err := s.Do(ann, leadership.Configure{Election: e})
			return err
		}
		require.NoError(t, errors.Join(use("a"), use("b")))
		time.Sleep(12 * time.Hour)
		wantLimited(t, "a third", use("c"))
		require.NoError(t, use("b"))
		time.Sleep(12 * time.Hour)
		if err := use("c"); err != nil {
			t.Errorf("a day after a was used: %v", err)
		}
		wantLimited(t, "a fourth, half a day after b was used", use("d"))
		if _, err := s.Do(ann, leadership.Delete{Election: "c"}); err != nil {
			t.Fatal(err)
		}
		if err := use("d"); err != nil {
			t.Errorf("once c is deleted: %v", err)
		}
	})
}

// Data written to logs takes memory of an instance, and is kept.
func TestDataThatIsLeftBehindHasARate(t *testing.T) {
	for name, call := range map[string]func(*instance.Guarded, context.Context, int) error{
		"append": func(s *instance.Guarded, ctx context.Context, size int) error {
			_, err := s.AppendJournal(ctx, leadership.AppendRequest{Entries: []leadership.Entry{{Data: make([]byte, size-64)}}})
			return err
		},
		"append of many small entries": func(s *instance.Guarded, ctx context.Context, size int) error {
			_, err := s.AppendJournal(ctx, leadership.AppendRequest{Entries: make([]leadership.Entry, size/64)})
			return err
		},
		"snapshot": func(s *instance.Guarded, ctx context.Context, size int) error {
			_, err := s.SnapshotJournal(ctx, leadership.SnapshotRequest{Data: make([]byte, size)})
			return err
		},
		"checkpoint": func(s *instance.Guarded, ctx context.Context, size int) error {
			_, err := s.PutCheckpoint(ctx, leadership.CheckpointRequest{Data: make([]byte, size)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, limit.Limits{Bytes: 64_000}, func(t *testing.T, s *instance.Guarded) {
				ann, bob := by(t.Context(), "ann"), by(t.Context(), "bob")
				for range 8 { // what eight seconds have
					if err := call(s, ann, 64_000); errors.Is(err, wire.RateLimited) {
						t.Fatal(err)
					}
				}
				if after := wantLimited(t, "the ninth", call(s, ann, 32_000)); after != 500*time.Millisecond {
					t.Errorf("it may come again after %v, want 500ms", after)
				}
				if err := call(s, bob, 64_000); errors.Is(err, wire.RateLimited) {
					t.Errorf("of another principal: %v", err)
				}
				time.Sleep(500 * time.Millisecond)
				if err := call(s, ann, 32_000); errors.Is(err, wire.RateLimited) {
					t.Errorf("once it may come again: %v", err)
				}
				wantLimited(t, "another one", call(s, ann, 32_000))
			})
		})
	}
}

// An election that was delegated counts for its leader as one that it has acquired.
func TestDelegatedElectionsCount(t *testing.T) {
	bubble(t, limit.Limits{Elections: 2}, func(t *testing.T, s *instance.Guarded) {
		ctx := by(t.Context(), "ann")
		g, err := acquire(s, ctx, "plan", "ann", 0)
		require.NoError(t, err)
		delegate := func(child string) error {
			_, err := s.Delegate(ctx, leadership.DelegateRequest{
				LeaseRequest: leadership.LeaseRequest{Election: "plan", CandidateID: "ann", Key: g.Key, Token: g.Token}, Child: child,
			})
			return err
		}
		for _, child := range []string{"a", "a"} {
			require.NoError(t, delegate(child))
		}
		wantLimited(t, "the third election", delegate("b"))
	})
}

// A large answer is charged like many calls.
func TestAnAnswerCostsByItsRecords(t *testing.T) {
	bubble(t, limit.Limits{Reads: 10}, func(t *testing.T, s *instance.Guarded) {
		ann, bob := by(t.Context(), "ann"), by(t.Context(), "bob")
		for i := range 100 {
			if _, err := acquire(s, by(t.Context(), "cyd"), leadership.Election(fmt.Sprint("e", i)), "cyd", 0); err != nil {
				t.Fatal(err)
			}
		}
		list := func(ctx context.Context) error {
			_, err := s.List(ctx, leadership.ListRequest{Limit: 100})
			return err
		}
		for range 4 { // 6 calls each, of the 20 that two seconds have
			require.NoError(t, list(ann))
		}
		if after := wantLimited(t, "a list too many", list(ann)); after != 500*time.Millisecond {
			t.Errorf("it may come again after %v, when one of the 4 that it owes, and one more, are due: 500ms", after)
		}
		if err := list(bob); err != nil {
			t.Errorf("another principal: %v", err)
		}
	})
}
