package renewals_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/renewals"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

// world is a store of which the test knows when each batch was sent, and which takes a while.
type world struct {
	t     *testing.T
	store *renewals.Store
	below *memory.Store
	begin time.Time

	mu      sync.Mutex // guards all below
	sent    []string   // each batch, with when it was sent
	takes   func(leases []rule.Renewal) time.Duration
	fails   func(leases []rule.Renewal) error // after that time
	context []context.Context                 // of each batch
}

// inWorld runs a test on a store where a batch takes 50 ms.
func inWorld(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, below: memory.New(memory.Config{}), begin: time.Now()}
		w.takes = func([]rule.Renewal) time.Duration { return 50 * time.Millisecond }
		w.fails = func([]rule.Renewal) error { return nil }
		w.store = renewals.New(&storetest.Fake{Store: w.below, Around: w.around})
		test(t, w)
	})
}

func (w *world) around(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
	if c.Method != "Renew" {
		return next(ctx)
	}
	var line strings.Builder
	line.WriteString(fmt.Sprintf("%v:", time.Since(w.begin)))
	for _, l := range c.Leases {
		line.WriteString(" " + string(l.Election))
	}
	w.mu.Lock()
	w.sent, w.context = append(w.sent, line.String()), append(w.context, ctx)
	takes := w.takes(c.Leases)
	w.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", leadership.StoreUnavailable, ctx.Err())
	}
	if err := w.fails(c.Leases); err != nil {
		return err
	}
	return next(ctx)
}

// lease grants one.
func (w *world) lease(e leadership.Election) rule.Renewal {
	w.t.Helper()
	c := rule.AcquireCommand{CandidateID: "ann", KeyHash: leadership.KeyHash{1}, LeaseDuration: time.Hour}
	snap, err := w.below.Update(w.t.Context(), e, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) { return rule.Acquire(s, c) })
	require.NoError(w.t, err)
	return rule.Renewal{Election: e, CandidateID: "ann", KeyHash: c.KeyHash, Token: snap.Record.Token}
}

// renew begins to renew the elections, in that order, and returns where their answers come.
func (w *world) renew(ctx context.Context, elections ...leadership.Election) []<-chan rule.Renewed {
	w.t.Helper()
	var all []<-chan rule.Renewed
	for _, e := range elections {
		lease, answer := w.lease(e), make(chan rule.Renewed, 1)
		go func() { answer <- w.store.Renew(ctx, []rule.Renewal{lease})[0] }()
		synctest.Wait() // so that they come in order
		all = append(all, answer)
	}
	return all
}

// done waits for the answers, and fails if one is not that the lease was renewed.
func (w *world) done(elections []leadership.Election, answers []<-chan rule.Renewed) {
	w.t.Helper()
	for i, answer := range answers {
		if a := <-answer; a.Err != nil || a.Record.Election != elections[i] {
			w.t.Errorf("%s: the answer is for %q, %v", elections[i], a.Record.Election, a.Err)
		}
	}
}

func (w *world) wantSent(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Empty(w.t, cmp.Diff(want, w.sent), "batches (-want +got)")
}

func TestABatchHasAHundredAtMostAndDoesNotWaitOnceItIsFull(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var elections []leadership.Election
		for i := range 1 + 2*renewals.MaxTogether + 5 {
			elections = append(elections, leadership.Election(fmt.Sprintf("e%03d", i)))
		}
		w.done(elections, w.renew(t.Context(), elections...))
		batch := func(at string, from, to int) string {
			var line strings.Builder
			line.WriteString(at + ":")
			for _, e := range elections[from:to] {
				line.WriteString(" " + string(e))
			}
			return line.String()
		}
		w.wantSent(batch("0s", 0, 1), batch("0s", 1, 101), batch("0s", 101, 201), batch("50ms", 201, 206))
	})
}

func TestNoElectionIsTwiceInABatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		elections := []leadership.Election{"a", "b", "b", "c", "b"}
		w.done(elections, w.renew(t.Context(), elections...))
		w.wantSent("0s: a", "50ms: b c", "100ms: b", "150ms: b")
	})
}

// An answer that tells of a heartbeat before the call would let the caller count its lease from too
// late.
func TestARenewalIsAnsweredByOneThatWasSentAfterItCame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.renew(t.Context(), "a")
		<-time.After(10 * time.Millisecond)
		came := time.Now()
		again := <-w.renew(t.Context(), "a")[0]
		if again.Err != nil || again.Now.Before(came) {
			t.Errorf("the heartbeat was at %v, %v; want %v or later", again.Now, again.Err, came)
		}
		assert.Equal(t, 100*time.Millisecond, time.Since(w.begin), "answered after")
		w.done([]leadership.Election{"a"}, first)
		w.wantSent("0s: a", "50ms: a")
	})
}

func TestEachCallerGetsTheAnswerToItsOwnRenewal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		answers := w.renew(t.Context(), "a", "b")
		lost := w.lease("c")
		lost.Token++
		mine := make(chan rule.Renewed, 1)
		go func() { mine <- w.store.Renew(t.Context(), []rule.Renewal{lost})[0] }()
		synctest.Wait()
		answers = append(answers, w.renew(t.Context(), "d")...)
		if a := <-mine; !errors.Is(a.Err, rule.ErrNotRenewed) {
			t.Errorf("the lease that is another's: %v, want %v", a.Err, rule.ErrNotRenewed)
		}
		w.done([]leadership.Election{"a", "b", "d"}, answers)
		w.wantSent("0s: a", "50ms: b c d")
	})
}

func TestACallerThatGoesAwayBeforeItsRenewalIsSentLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		staying := w.renew(t.Context(), "a")
		leaving := w.renew(ctx, "b")
		staying = append(staying, w.renew(t.Context(), "c")...)
		cancel()
		a := <-leaving[0]
		if !errors.Is(a.Err, leadership.StoreUnavailable) || !errors.Is(a.Err, context.Canceled) || errors.Is(a.Err, leadership.OutcomeUnknown) {
			t.Errorf("got %v, want %s because of %v", a.Err, leadership.StoreUnavailable, context.Canceled)
		}
		assert.Zero(t, time.Since(w.begin), "answered after")
		w.done([]leadership.Election{"a", "c"}, staying)
		if a := w.store.Renew(ctx, []rule.Renewal{w.lease("d")})[0]; !errors.Is(a.Err, leadership.StoreUnavailable) {
			t.Errorf("a caller that had gone before: %v, want %s", a.Err, leadership.StoreUnavailable)
		}
		w.wantSent("0s: a", "50ms: c")
	})
}

func TestACallerThatGoesAwayAfterwardsDoesNotKnowAndTheOthersAreRenewed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		first := w.renew(t.Context(), "a")
		leaving := w.renew(ctx, "b") // the one whose context the batch begins with
		staying := w.renew(t.Context(), "c")
		<-first[0]
		synctest.Wait()
		cancel()
		a := <-leaving[0]
		if !errors.Is(a.Err, leadership.OutcomeUnknown) || !errors.Is(a.Err, context.Canceled) || errors.Is(a.Err, leadership.StoreUnavailable) {
			t.Errorf("got %v, want %s because of %v", a.Err, leadership.OutcomeUnknown, context.Canceled)
		}
		w.done([]leadership.Election{"c"}, staying)
		w.wantSent("0s: a", "50ms: b c")
	})
}

func TestAPanicOfTheStoreIsTheCallers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fails = func(leases []rule.Renewal) error {
			if len(leases) == 2 {
				panic("planted")
			}
			return nil
		}
		first := w.renew(t.Context(), "a")
		caught := make(chan any, 2)
		for _, e := range []leadership.Election{"b", "c"} {
			lease := w.lease(e)
			go func() {
				defer func() { caught <- recover() }()
				w.store.Renew(t.Context(), []rule.Renewal{lease})
			}()
		}
		w.done([]leadership.Election{"a"}, first)
		for range 2 {
			assert.EqualValues(t, "planted", <-caught, "a caller caught")
		}
		w.done([]leadership.Election{"d"}, w.renew(t.Context(), "d"))
	})
}

// Renewals come at random, batches take up to two seconds, and some callers leave.
func TestNoRenewalWaitsLongAndNoneIsSentTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		random, durations := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
		came, sent := make(map[leadership.Election]time.Time), make(map[leadership.Election]int)
		w.takes = func(leases []rule.Renewal) time.Duration {
			if len(leases) > renewals.MaxTogether {
				t.Errorf("%d renewals in a batch", len(leases))
			}
			for _, c := range leases {
				sent[c.Election]++
				if waited := time.Since(came[c.Election]); waited > renewals.Patience {
					t.Errorf("%s was sent after %v", c.Election, waited)
				}
			}
			return time.Duration(durations.IntN(2000)) * time.Millisecond
		}
		var unknown []leadership.Election
		var all sync.WaitGroup
		for i := range 1000 {
			lease := w.lease(leadership.Election(fmt.Sprint("e", i)))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if random.IntN(5) == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Duration(random.IntN(1000))*time.Millisecond)
			}
			w.mu.Lock()
			came[lease.Election] = time.Now()
			w.mu.Unlock()
			all.Go(func() {
				defer cancel()
				a := w.store.Renew(ctx, []rule.Renewal{lease})[0]
				w.mu.Lock()
				defer w.mu.Unlock()
				switch n := sent[lease.Election]; {
				case a.Err == nil && (n != 1 || a.Record.Election != lease.Election || a.Now.Before(came[lease.Election])):
					t.Errorf("%s: sent %d times; %+v", lease.Election, n, a.Snapshot())
				case errors.Is(a.Err, leadership.OutcomeUnknown):
					unknown = append(unknown, lease.Election)
				case errors.Is(a.Err, leadership.StoreUnavailable) && n != 0:
					t.Errorf("%s: sent %d times; %v", lease.Election, n, a.Err)
				case a.Err != nil && ctx.Err() == nil:
					t.Errorf("%s: %v", lease.Election, a.Err)
				}
			})
			if random.IntN(20) == 0 {
				time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
			}
		}
		all.Wait()
		synctest.Wait() // a batch may have been taken at the instant at which a caller went
		for _, e := range unknown {
			if sent[e] != 1 {
				t.Errorf("%s: sent %d times, and its outcome was unknown", e, sent[e])
			}
		}
	})
}

func TestABatchOfACallerGoesToTheStoreAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.renew(t.Context(), "a")
		for i, a := range w.store.Renew(t.Context(), []rule.Renewal{w.lease("b"), w.lease("c")}) {
			if a.Err != nil {
				t.Errorf("renewal %d: %v", i, a.Err)
			}
		}
		if len(w.store.Renew(t.Context(), nil)) != 0 {
			t.Error("no renewals have an answer")
		}
		w.done([]leadership.Election{"a"}, first)
		if !slices.Contains(w.sent, "0s: b c") {
			t.Errorf("sent %q, want b and c at once", w.sent)
		}
	})
}

// both is a store with its journal.
type both struct {
	service.Store
	service.Journal
}

func TestTheProtocolHoldsOnGatheredRenewals(t *testing.T) {
	storetest.RunProtocol(t, func(testing.TB) storetest.Backing {
		var mu sync.Mutex
		var ahead time.Duration
		below := memory.New(memory.Config{History: storetest.History, Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}})
		return storetest.Backing{
			Open:    func(testing.TB) service.Store { return both{renewals.New(below), below} },
			Advance: func(_ testing.TB, d time.Duration) { mu.Lock(); defer mu.Unlock(); ahead += d },
		}
	})
}
