package hub_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

// cached is a hub, and a store with one answer.
type cached struct {
	*hub.Hub
	t     *testing.T
	start time.Time

	mu     sync.Mutex
	ahead  time.Duration // what the clock has leapt by
	lease  leadership.Lease
	err    error
	before func(context.Context) // runs in a read of the store before it looks
	after  func(context.Context) // runs in a read of the store after it has looked
	gets   int
}

// withCache runs the test in a bubble. The store has a lease of an hour, with revision 7.
func withCache(t *testing.T, test func(t *testing.T, w *cached)) {
	t.Helper()
	withCacheOf(t, hub.Config{}, test)
}

func withCacheOf(t *testing.T, c hub.Config, test func(t *testing.T, w *cached)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &cached{t: t, start: time.Now()}
		w.stores(heldAt(7, time.Hour))
		c.Store, c.Now = stub{get: w.get}, w.now
		w.Hub = newHub(t, c)
		test(t, w)
		w.WaitReads()
	})
}

func heldAt(r leadership.Revision, left time.Duration) leadership.Lease {
	return leadership.Lease{Election: jobs, State: leadership.Held, LeaderID: "ann", Token: 1, Revision: r, ExpiresIn: left, RenewIn: left / 3}
}

func vacantAt(r leadership.Revision, locked time.Duration) leadership.Lease {
	return leadership.Lease{Election: jobs, State: leadership.Vacant, Token: 1, Revision: r, LockedFor: locked}
}

// stub is a store of which only some calls are made.
type stub struct {
	hub.Store
	get, expire func(context.Context, leadership.Election) (leadership.Lease, error)
}

func (s stub) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	return s.get(ctx, e)
}

func (s stub) Expire(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	return s.expire(ctx, e)
}

// Learn is what the instance does with an answer to a question that was asked at that time.
func (w *cached) Learn(l leadership.Lease, asked time.Duration) { w.Hub.Learn(&l, view.Read, asked) }

// remembered is how many elections a hub remembers.
func remembered(h *hub.Hub) (n int) {
	h.View(func(v *view.View, _ time.Duration) { n = v.Elections() })
	return n
}

func (w *cached) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.start) + w.ahead
}

func (w *cached) leap(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

// stores sets what the store has.
func (w *cached) stores(l leadership.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lease, w.err = l, nil
}

func (w *cached) fails(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// takes sets how long the store takes before and after it has looked.
func (w *cached) takes(before, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after = sleeper(before), sleeper(after)
}

func sleeper(d time.Duration) func(context.Context) {
	return func(ctx context.Context) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}

func (w *cached) get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	w.mu.Lock()
	w.gets++
	before, after := w.before, w.after
	w.mu.Unlock()
	if before != nil {
		before(ctx)
	}
	w.mu.Lock()
	l, err := w.lease, w.err
	w.mu.Unlock()
	l.Election, l.ReadAt = e, time.Now()
	if after != nil {
		after(ctx)
	}
	if ctx.Err() != nil {
		return leadership.Lease{}, fmt.Errorf("test: %w: %w", leadership.StoreUnavailable, ctx.Err())
	}
	return l, err
}

// read reads, and fails the test if that fails.
func (w *cached) read(known leadership.Revision) leadership.Reading {
	w.t.Helper()
	reading, err := w.Read(w.t.Context(), leadership.ReadRequest{Election: jobs, Known: known})
	require.NoError(w.t, err)
	return reading
}

// background begins a read, and returns its outcome once it has ended.
func (w *cached) background(known leadership.Revision) (outcome func() (leadership.Reading, error)) {
	var mu sync.Mutex
	var reading leadership.Reading
	err := errors.New("the read has not ended")
	go func() {
		r, e := w.Read(w.t.Context(), leadership.ReadRequest{Election: jobs, Known: known})
		mu.Lock()
		defer mu.Unlock()
		reading, err = r, e
	}()
	synctest.Wait()
	return func() (leadership.Reading, error) {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return reading, err
	}
}

func (w *cached) wantGets(want int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gets != want {
		w.t.Errorf("the store was asked %d times, want %d", w.gets, want)
	}
}

// wantSlots checks how many elections take up memory.
func (w *cached) wantSlots(want int) {
	w.t.Helper()
	assert.Equal(w.t, want, remembered(w.Hub), "elections take up memory")
}

func (w *cached) wantRevision(got leadership.Reading, want leadership.Revision) {
	w.t.Helper()
	assert.Equal(w.t, want, got.Revision, "got revision")
}

func TestTheStoreIsAskedOnceWithinTheExpiry(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.takes(time.Second, time.Second)
		asked := time.Now()
		for _, pause := range []time.Duration{0, time.Second, 2*time.Second - 1} {
			time.Sleep(pause)
			got := w.read(0)
			age := time.Since(asked)
			want := heldAt(7, time.Hour)
			want.ExpiresIn -= age
			want.RenewIn -= age
			want.ReadAt = asked.Add(time.Second)
			assert.Empty(t, cmp.Diff(leadership.Reading{Lease: want, Age: age, Bound: hub.DefaultExpiry}, got), "after %v (-want +got)", age)
		}
		w.wantGets(1)
		time.Sleep(time.Nanosecond)
		if got := w.read(0); got.Age != 2*time.Second {
			t.Errorf("past the expiry the age is %v, want that of another read, 2s", got.Age)
		}
		w.wantGets(2)
	})
}

func TestAnEntryIsOverWhenItsLeaseMayHaveEnded(t *testing.T) {
	t.Parallel()
	for name, lease := range map[string]leadership.Lease{
		"lease":      heldAt(7, 3*time.Second),
		"lock delay": vacantAt(7, 3*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			withCache(t, func(t *testing.T, w *cached) {
				w.takes(0, time.Second)
				w.stores(lease)
				w.read(0)
				time.Sleep(2*time.Second - 1)
				if got := w.read(0); got.ExpiresIn+got.LockedFor != 1 {
					t.Errorf("got %v left of the lease and %v of the delay, want 1ns of one", got.ExpiresIn, got.LockedFor)
				}
				w.wantGets(1)
				time.Sleep(time.Nanosecond)
				w.stores(heldAt(7, time.Hour)) // renewed through another instance, say
				if got := w.read(0); got.State != leadership.Held {
					t.Errorf("got %s, want what the store has", got.State)
				}
				w.wantGets(2)
			})
		})
	}
}

func TestAMachineThatWasSuspendedTakesNoOldEntryForAFreshOne(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.read(0)
		w.leap(time.Hour)
		w.stores(heldAt(8, time.Hour))
		w.wantRevision(w.read(0), 8)

		w.leap(time.Hour)
		w.takes(0, time.Second)
		late := w.background(0)
		w.leap(time.Hour)
		time.Sleep(time.Second)
		_, err := late()
		assert.ErrorIs(t, err, leadership.StoreUnavailable, "a read that was under way meanwhile")
	})
}

func TestEachWaitsForItselfAndTheReadGoesOnForTheOthers(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.takes(time.Second, time.Second)
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var readers sync.WaitGroup
		readers.Go(func() {
			_, err := w.Read(first, leadership.ReadRequest{Election: jobs})
			if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.DeadlineExceeded) || w.now() != time.Second {
				t.Errorf("the first, with a deadline of one second: got %v after %v; want %s, with the cause", err, w.now(), leadership.StoreUnavailable)
			}
		})
		synctest.Wait()
		readers.Go(func() { w.wantRevision(w.read(0), 7) })
		readers.Wait()
		w.wantGets(1)
	})
}

func TestAReadMayTakeAsLongAsAReadingMayBeOld(t *testing.T) {
	withCacheOf(t, hub.Config{Expiry: 2 * time.Second}, func(t *testing.T, w *cached) {
		w.takes(time.Second, time.Second-1)
		w.read(0)
		time.Sleep(time.Minute)

		w.takes(time.Second, time.Hour)
		before := w.now()
		_, err := w.Read(t.Context(), leadership.ReadRequest{Election: jobs})
		if took := w.now() - before; !errors.Is(err, leadership.StoreUnavailable) || took != 2*time.Second {
			t.Errorf("a store that does not answer: got %v after %v, want %s after 2s", err, took, leadership.StoreUnavailable)
		}

		w.before = func(context.Context) { time.Sleep(3 * time.Second) } // does not heed its ctx
		w.after = nil
		if got, err := w.Read(t.Context(), leadership.ReadRequest{Election: jobs}); !errors.Is(err, leadership.StoreUnavailable) {
			t.Errorf("a store that answers too late: got %+v and %v, want %s", got, err, leadership.StoreUnavailable)
		}
	})
}

func TestPastTheBoundAFailingStoreIsAnErrorAndNeverOldData(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.read(0)
		down := fmt.Errorf("test: %w", leadership.StoreUnavailable)
		w.fails(down)
		time.Sleep(hub.DefaultExpiry - 1)
		w.wantRevision(w.read(0), 7)
		time.Sleep(time.Nanosecond)
		if got, err := w.Read(t.Context(), leadership.ReadRequest{Election: jobs}); !errors.Is(err, down) || got != (leadership.Reading{}) {
			t.Errorf("got %+v and %v, want only the store's error", got, err)
		}
	})
}

func TestErrorsAreSharedAndNotKept(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.takes(time.Second, 0)
		w.fails(leadership.RecordTooNew)
		first, second := w.background(0), w.background(0)
		time.Sleep(time.Second)
		for _, outcome := range []func() (leadership.Reading, error){first, second} {
			_, err := outcome()
			assert.ErrorIs(t, err, leadership.RecordTooNew)
		}
		w.wantGets(1)
		w.stores(heldAt(8, time.Hour))
		w.wantRevision(w.read(0), 8)
	})
}

func TestPanicReachesAllWaitingReaders(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.before = func(context.Context) { time.Sleep(time.Second); panic("boom") }
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				defer func() {
					if v := recover(); v != "boom" {
						t.Errorf("recovered %v, want the panic of Get", v)
					}
				}()
				w.read(0)
			})
		}
		readers.Wait()
		w.before = nil
		w.wantRevision(w.read(0), 7)
	})
}

func TestAgeCountsFromWhenTheStoreWasAsked(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.read(0)
		asked := w.now()
		time.Sleep(2 * time.Second)
		learnt := heldAt(8, time.Hour)
		learnt.ReadAt = time.Now()
		w.Learn(learnt, asked)
		if got := w.read(0); got.Revision != 8 || got.Age != 2*time.Second {
			t.Errorf("got revision %d of age %v, want 8 of 2s", got.Revision, got.Age)
		}
		time.Sleep(3 * time.Second)
		w.read(0)
		w.wantGets(2)
	})
}

func TestADeletedElectionIsNotShown(t *testing.T) {
	t.Parallel()
	refusal := tombstone()
	for name, happens := range map[string]func(*cached){
		"deleted here": func(w *cached) { w.Learn(*refusal.Lease, w.now()) },
		"deleted elsewhere, which a strong read finds": func(w *cached) {
			w.wantAbsent(leadership.ReadRequest{Strong: true})
		},
		"deleted elsewhere, which one who knows more finds": func(w *cached) {
			w.wantAbsent(leadership.ReadRequest{Known: 8})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withCache(t, func(_ *testing.T, w *cached) {
				w.read(0)
				w.fails(refusal)
				happens(w)
				w.wantAbsent(leadership.ReadRequest{})
			})
		})
	}
}

// news is what makes a cache know that the store has come to revision 8.
var news = map[string]func(*cached){
	"an event is heard":       func(w *cached) { w.Publish(leadership.Event{Election: jobs, Revision: 8}) },
	"a change here is learnt": func(w *cached) { w.Learn(heldAt(8, time.Hour), w.now()) },
}

func TestReaderJoinsNoReadThatMayHaveBegunBeforeTheNews(t *testing.T) {
	t.Parallel()
	for name, happens := range news {
		t.Run(name, func(t *testing.T) {
			withCache(t, func(t *testing.T, w *cached) {
				w.takes(0, 3*time.Second)
				early := w.background(0) // sees 7
				time.Sleep(time.Second)
				w.stores(heldAt(8, time.Hour))
				happens(w)
				late := w.background(0) // must see 8
				time.Sleep(2 * time.Second)
				if got, err := early(); err != nil || got.Revision != 7 {
					t.Errorf("who asked before the news: got revision %d, %v; want 7", got.Revision, err)
				}
				between := w.background(0) // must see 8, though 7 has come back
				time.Sleep(time.Second)
				for _, outcome := range []func() (leadership.Reading, error){late, between} {
					if got, err := outcome(); err != nil || got.Revision != 8 {
						t.Errorf("who asked after the news: got revision %d, %v; want 8", got.Revision, err)
					}
				}
				w.wantRevision(w.read(0), 8)
				w.wantGets(2)
			})
		})
	}
}

func TestAReaderIsShownNothingOlderThanItKnows(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.read(0)
		w.wantRevision(w.read(7), 7)
		w.wantGets(1)
		w.stores(heldAt(8, time.Hour))
		w.wantRevision(w.read(8), 8)
		w.wantGets(2)
		w.wantRevision(w.read(0), 8)
		w.wantGets(2)
	})
}

func TestReaderThatKnowsMoreThanTheStoreGetsAnError(t *testing.T) {
	t.Parallel()
	for _, strong := range []bool{false, true} {
		t.Run(fmt.Sprintf("strong=%v", strong), func(t *testing.T) {
			withCache(t, func(t *testing.T, w *cached) {
				w.read(0)
				reading, err := w.Read(t.Context(), leadership.ReadRequest{Election: jobs, Known: 9, Strong: strong})
				refusal, ok := errors.AsType[*leadership.Error](err)
				if !ok || refusal.Code != leadership.RevisionMismatch || refusal.Lease == nil || refusal.Lease.Revision != 7 || reading != (leadership.Reading{}) {
					t.Errorf("got %+v and %v, want only %s with the lease as it is", reading, err, leadership.RevisionMismatch)
				}
				w.wantGets(2)
				w.read(0) // others still read from the cache
				w.wantGets(2)
			})
		})
	}
}

func TestFullCacheDropsEntriesThatAreOverAndKeepsTheRest(t *testing.T) {
	withCacheOf(t, hub.Config{Size: 2}, func(t *testing.T, w *cached) {
		read := func(e leadership.Election, want int) {
			t.Helper()
			_, err := w.Read(t.Context(), leadership.ReadRequest{Election: e})
			assert.NoError(t, err)
			w.wantGets(want)
		}
		read("a", 1)
		time.Sleep(time.Second)
		read("b", 2)
		read("c", 3) // there is no room
		read("a", 3)
		read("b", 3)
		read("c", 4)
		time.Sleep(4 * time.Second) // a is over
		read("c", 5)
		read("c", 5)
		read("b", 5)
		read("a", 6) // there is no room
		read("a", 7)
		w.Publish(leadership.Event{Election: "b", Revision: 8})
		read("a", 8)
		read("a", 8)
		w.Learn(leadership.Lease{Election: "a", Revision: 8, State: leadership.Held, ExpiresIn: time.Hour}, w.now())
		read("a", 8)
		read("c", 8)
	})
}

func TestAnElectionThatIsNotKeptTakesUpNoMemory(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.read(0)
		w.wantSlots(1)
		w.Publish(leadership.Event{Election: jobs, Revision: 8})
		w.wantSlots(0)

		w.fails(leadership.NotFound)
		w.wantAbsent(leadership.ReadRequest{})
		w.wantSlots(0)

		w.takes(time.Second, 0)
		w.background(0)
		w.Publish(leadership.Event{Election: jobs, Revision: 8})
		w.background(0)
		w.wantSlots(1)
		time.Sleep(2 * time.Second)
		w.wantSlots(0)
	})
}

func TestInvalidConfigIsNamed(t *testing.T) {
	t.Parallel()
	var some stub
	for name, c := range map[string]hub.Config{
		"no store":        {},
		"too long":        {Store: some, Expiry: hub.MaxExpiry + 1},
		"negative":        {Store: some, Expiry: -1},
		"a negative size": {Store: some, Size: -1},
	} {
		if _, err := hub.New(c); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	_, err := hub.New(hub.Config{Store: some, Expiry: hub.MaxExpiry})
	assert.NoError(t, err, "the longest expiry")
}

func TestAPanicOfAReadLeavesTheHubUnlocked(t *testing.T) {
	t.Parallel()
	assert.False(t, hub.LockedAfterAPanic(), "it is locked")
}
