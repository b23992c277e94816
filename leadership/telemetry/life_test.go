package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/leadership/telemetry"
	"regent/leadership/telemetry/telemetrytest"
	"regent/store/memory"
	"regent/store/storetest"
)

// story plays in fake time.
func story(t *testing.T, play func(*telemetrytest.Fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { play(telemetrytest.New(t)) })
}

// of returns the values without those of the store, which are not what the tests are about.
func of(v telemetrytest.Values) map[string]float64 {
	mine := make(map[string]float64)
	for series, value := range v {
		if !strings.HasPrefix(series, "regent.store.") {
			mine[series] = value
		}
	}
	return mine
}

func want(w *telemetrytest.Fixture, got telemetrytest.Values, want map[string]float64) {
	w.Helper()
	assert.Empty(w, cmp.Diff(want, of(got)), "-want +got")
}

func TestEveryMetricFollowsTheLifeOfAnElection(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		before := w.Read()
		step := func(what string, does func(), moves map[string]float64) {
			w.Helper()
			does()
			synctest.Wait()
			after := w.Read()
			assert.Empty(w, cmp.Diff(moves, of(after.Since(before))), "%s: -want +got", what)
			before = after
		}
		var ann, bob leadership.LeaseRequest
		step("the first leader", func() { ann = w.Lead("jobs", "ann") }, map[string]float64{
			"regent.leadership.changes{type=acquired}": 1, "regent.elections{state=held}": 1, "regent.lease.operations{op=acquire,outcome=ok}": 1,
		})
		step("two minutes of renewals", func() { w.Keep(ann, 2*time.Minute) }, map[string]float64{"regent.lease.operations{op=renew,outcome=ok}": 12})
		step("a refused campaign", func() { w.Acquire("jobs", "bob", 0) }, map[string]float64{
			"regent.lease.operations{op=acquire,outcome=lease_held}": 1, "regent.lease.contention{reason=held}": 1,
		})
		step("a release", func() { w.Release(ann) }, map[string]float64{
			"regent.leadership.changes{type=released}": 1, "regent.elections{state=held}": -1, "regent.elections{state=vacant}": 1,
			"regent.leadership.term.duration:count{end=released}": 1, "regent.leadership.term.duration:sum{end=released}": 120,
			"regent.lease.operations{op=release,outcome=ok}": 1,
		})
		step("seven seconds later the next leader", func() { time.Sleep(7 * time.Second); bob = w.Lead("jobs", "bob") }, map[string]float64{
			"regent.leadership.changes{type=acquired}": 1, "regent.elections{state=held}": 1, "regent.elections{state=vacant}": -1, "regent.elections.grants": 2,
			"regent.leadership.transition.duration:count{after=released}": 1, "regent.leadership.transition.duration:sum{after=released}": 7,
			"regent.lease.operations{op=acquire,outcome=ok}": 1,
		})
		step("the end of a leader that has gone", func() { w.Settle(32 * time.Second) }, map[string]float64{
			"regent.leadership.changes{type=expired}": 1, "regent.elections{state=held}": -1, "regent.elections{state=vacant}": 1,
			"regent.leadership.term.duration:count{end=expired}": 1, "regent.leadership.term.duration:sum{end=expired}": 30, "regent.elections.leaderless": 2,
		})
		step("a minute without a leader", func() { time.Sleep(time.Minute) }, map[string]float64{"regent.elections.leaderless": 60})
		step("it is acquired and configured again", func() {
			ann = w.Lead("jobs", "ann")
			_, err := w.Service.Do(w.Context(), leadership.Configure{Election: "jobs", Config: leadership.Config{LeaseDuration: time.Minute}})
			require.NoError(w, err)
		}, map[string]float64{
			"regent.leadership.changes{type=acquired}": 1, "regent.leadership.changes{type=configured}": 1, "regent.elections{state=held}": 1,
			"regent.elections{state=vacant}": -1, "regent.elections.leaderless": -62, "regent.elections.grants": 1,
			"regent.leadership.transition.duration:count{after=expired}": 1, "regent.leadership.transition.duration:sum{after=expired}": 62,
			"regent.lease.operations{op=acquire,outcome=ok}": 1, "regent.lease.operations{op=configure,outcome=ok}": 1,
		})
		step("an old leader that does not know", func() {
			time.Sleep(6 * time.Second)
			w.Service.Renew(w.Context(), bob)
			w.Service.CheckToken(w.Context(), leadership.TokenCheck{Election: "jobs", Token: 1})
			w.Service.Do(w.Context(), leadership.Release{LeaseRequest: bob})
		}, map[string]float64{
			"regent.leadership.splitbrain{op=renew}": 1, "regent.leadership.splitbrain{op=check}": 1, "regent.lease.operations{op=renew,outcome=lease_lost}": 1,
			"regent.lease.operations{op=check,outcome=token_stale}": 1, "regent.lease.operations{op=release,outcome=ok}": 1,
		})
		step("an operator deletes it", func() {
			_, err := w.Service.Do(w.Context(), leadership.Delete{Election: "jobs", Force: true})
			require.NoError(w, err)
		}, map[string]float64{
			"regent.leadership.changes{type=deleted}": 1, "regent.elections{state=held}": -1,
			"regent.leadership.term.duration:count{end=deleted}": 1, "regent.leadership.term.duration:sum{end=deleted}": 6,
			"regent.lease.operations{op=delete,outcome=ok}": 1,
		})
	})
}

// A candidate that goes is no failure of the server, for which there is an alert.
func TestACallThatItsCallerGivesUpIsNoFailure(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		w.Lead("jobs", "ann")
		ctx, leave := context.WithCancel(w.Context())
		key := leadership.NewKey()
		left := make(chan error, 1)
		go func() {
			_, err := w.Service.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "bob", Key: &key, Wait: time.Minute})
			left <- err
		}()
		w.Settle(time.Second)
		leave()
		if err := <-left; !errors.Is(err, rule.ErrCallerLeft) || !errors.Is(err, context.Canceled) {
			w.Errorf("the call: %v", err)
		}
		values(w, "after it", w.Read(), map[string]float64{
			"regent.lease.operations{op=acquire,outcome=ok}": 1, "regent.lease.operations{op=acquire,outcome=caller_left}": 1,
			"regent.lease.operations{op=acquire,outcome=store_unavailable}": 0,
		})
	})
}

func TestAnElectionIsLeaderlessSinceACandidateWaits(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		w.Lead("jobs", "ann")
		_, err := w.Service.Do(w.Context(), leadership.Delete{Election: "jobs", Force: true})
		require.NoError(w, err)
		if _, err := w.Service.Do(w.Context(), leadership.Configure{Election: "jobs"}); err != nil { // and ann's lease has to run out
			w.Fatal(err)
		}
		w.Settle(10 * time.Second)
		go w.Acquire("jobs", "bob", time.Minute)
		w.Settle(15 * time.Second)
		values(w, "while bob waits", w.Read(), map[string]float64{"regent.elections.leaderless": 15, "regent.candidates.waiting": 1})
		w.Settle(10 * time.Second)
		if got := w.Read(); got["regent.leadership.transition.duration:sum{after=deleted}"] != 30 || got["regent.elections.leaderless"] != 0 || got["regent.candidates.waiting"] != 0 {
			w.Errorf("got %v, want a transition of 30 s", of(got))
		}
	})
}

func TestACandidateThatWaitsAgainHasWaitedThroughout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool // the store
		w := telemetrytest.On(t, &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, _ storetest.Call, next func(context.Context) error) error {
			if away.Load() {
				return leadership.StoreUnavailable
			}
			return next(ctx)
		}})
		lease := w.Lead("jobs", "ann")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				w.Acquire("jobs", "bob", time.Minute)
				time.Sleep(3 * time.Second)
			}
		}()
		w.Keep(lease, 30*time.Second)
		away.Store(true) // no candidate can lead from 30 s after the last renewal on
		w.Settle(30*time.Second + 150*time.Second)
		if s := w.Read()["regent.elections.leaderless"]; s != 150 {
			t.Errorf("leaderless for %v s, want 150", s)
		}
		away.Store(false)
		cancel()
		w.Settle(time.Minute)
		if s := w.Read()["regent.elections.leaderless"]; s > 60 {
			t.Errorf("leaderless for %v s after the store has come back", s)
		}
	})
}

func TestALateGrantIsNoTransitionIfNoCandidateWaited(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		w.Release(w.Lead("jobs", "ann"))
		w.Settle(time.Hour)
		if s := w.Read()["regent.elections.leaderless"]; s != 0 {
			w.Errorf("leaderless for %v s although no candidate waits", s)
		}
		w.Lead("jobs", "bob")
		assert.Zero(w, w.Read().Sum("regent.leadership.transition.duration:count"), "transitions, although no candidate waited in the hour between")
	})
}

func TestALateTransitionCountsTheTimeThatACandidateWaited(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		_, err := w.Service.Do(w.Context(), leadership.Configure{Election: "jobs", Config: leadership.Config{LockDelay: time.Hour}})
		require.NoError(w, err)
		w.Lead("jobs", "ann")
		w.Settle(time.Hour)
		_, err = w.Acquire("jobs", "bob", time.Minute)
		require.NoError(w, err)
		if s := w.Read()["regent.leadership.transition.duration:sum{after=expired}"]; s != 30 {
			w.Errorf("a transition of %v s, want the 30 that bob waited", s)
		}
	})
}

func TestAnActThatMayHaveBeenSentInTimeIsNoSplitBrain(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		ann := w.Lead("jobs", "ann")
		w.Settle(time.Minute)
		w.Service.Renew(w.Context(), ann) // it is over, and no other leads
		w.Service.CheckToken(w.Context(), leadership.TokenCheck{Election: "jobs", Token: ann.Token + 1})
		w.Lead("jobs", "bob")
		w.Settle(4 * time.Second)
		w.Service.Renew(w.Context(), ann)
		assert.Zero(w, w.Read().Sum("regent.leadership.splitbrain"), "acts counted")
		w.Settle(2 * time.Second)
		w.Service.BatchRenew(w.Context(), []leadership.LeaseRequest{ann})
		w.Service.BatchCheckTokens(w.Context(), []leadership.TokenCheck{{Election: "jobs", Token: 1}, {Election: "jobs2", Token: 1}})
		assert.EqualValues(w, 2, w.Read().Sum("regent.leadership.splitbrain"), "acts counted")
	})
}

func TestNamesChosenByCallersAddNoSeries(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		play := func(n int) {
			e, c := leadership.Election(fmt.Sprint("secret-election-", n)), leadership.CandidateID(fmt.Sprint("secret-candidate-", n))
			lease := w.Lead(e, c)
			w.Acquire(e, c+"-x", 0)
			w.Service.Renew(w.Context(), lease)
			_ = report(w, lease, fmt.Sprintf(`{"custom":{"secret-%d":1},"tasks":1}`, n))
			order(w, e, leadership.Order{Kind: leadership.OrderBan, CandidateID: c, For: time.Hour})
			w.Release(lease)
			w.Service.CheckToken(w.Context(), leadership.TokenCheck{Election: e, Token: 1})
			w.Acquire(leadership.Election("BAD "+string(e)), c, time.Second)
		}
		play(0)
		few := len(w.Read())
		for n := range 1000 {
			play(n + 1)
		}
		if many := len(w.Read()); many != few {
			w.Errorf("%d series after one election, %d after a thousand", few, many)
		}
		for series := range w.Read() {
			if strings.Contains(series, "secret") || strings.Contains(series, "BAD") {
				w.Errorf("%s has a name of a caller", series)
			}
		}
		inCatalogue(w)
	})
}

// inCatalogue holds what was measured to the catalogue.
func inCatalogue(w *telemetrytest.Fixture) {
	w.Helper()
	known := make(map[string]telemetry.Metric)
	for _, m := range telemetry.Catalogue() {
		known[m.Name] = m
	}
	for _, m := range w.Collect() {
		k, ok := known[m.Name]
		if !ok || k.Unit != m.Unit || k.Description != m.Description || k.Kind != kindOf(m) {
			w.Errorf("%s (%s) in %s is not in the catalogue", m.Name, kindOf(m), m.Unit)
		}
	}
	for series := range w.Read() {
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		name, _, _ = strings.Cut(name, ":")
		for _, label := range strings.FieldsFunc(labels, func(r rune) bool { return r == ',' }) {
			key, value, _ := strings.Cut(label, "=")
			if !slices.ContainsFunc(known[name].Labels, func(l telemetry.Label) bool { return l.Key == key && slices.Contains(l.Values, value) }) {
				w.Errorf("%s: the catalogue does not know %s=%s", name, key, value)
			}
		}
	}
}

func kindOf(m metricdata.Metrics) telemetry.Kind {
	switch m.Data.(type) {
	case metricdata.Sum[int64]:
		return telemetry.Counter
	case metricdata.Histogram[int64], metricdata.Histogram[float64]:
		return telemetry.Histogram
	}
	return telemetry.Gauge
}

func TestAMissedGrantDoesNotMakeAnElectionLeaderless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		w, elsewhere := telemetrytest.On(t, store), service.New(store.Open())
		for n := range 5 {
			w.Lead(leadership.Election(fmt.Sprint("jobs-", n)), "ann")
		}
		w.Settle(time.Minute)
		if s := w.Read()["regent.elections.leaderless"]; s != 30 {
			t.Errorf("leaderless for %v s, want 30", s)
		}
		for n := range 4 {
			_, err := elsewhere.Acquire(t.Context(), leadership.AcquireRequest{Election: leadership.Election(fmt.Sprint("jobs-", n)), CandidateID: "bob"})
			require.NoError(t, err)
		}
		if got := w.Read(); got["regent.elections.leaderless"] != 30 || got["regent.elections{state=vacant}"] != 1 {
			t.Errorf("got %v, want the fifth alone", of(got))
		}
		_, err := elsewhere.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs-4", CandidateID: "bob"})
		require.NoError(t, err)
		if s := w.Read()["regent.elections.leaderless"]; s != 0 {
			t.Errorf("leaderless for %v s although each has a leader", s)
		}
	})
}

func TestEventsOfOtherInstancesMoveGaugesAndNoCounter(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		before := w.Read()
		at := time.Now()
		event := func(r leadership.Revision, kind leadership.EventType, token leadership.Token, leader, previous leadership.CandidateID) leadership.Event {
			return leadership.Event{Election: "far", Revision: r, Type: kind, At: at, LeaderID: leader, PreviousLeaderID: previous, Token: token}
		}
		told := []leadership.Event{event(1, leadership.EventAcquired, 1, "ann", ""), event(2, leadership.EventExpired, 1, "", "ann")}
		heard := 0
		err := w.Metrics.Bus(deliver(slices.Concat(told, told))).Run(w.Context(), func(leadership.Event) { heard++ }, func(bool) {})
		if heard != 4 || !errors.Is(err, errOver) {
			w.Errorf("%d events passed on, %v", heard, err)
		}
		w.Settle(90 * time.Second)
		want(w, w.Read().Since(before), map[string]float64{"regent.elections{state=vacant}": 1, "regent.elections.leaderless": 90})
		w.Metrics.Bus(deliver{event(3, leadership.EventAcquired, 2, "bob", "")}).Run(w.Context(), func(leadership.Event) {}, func(bool) {})
		want(w, w.Read().Since(before), map[string]float64{"regent.elections{state=held}": 1, "regent.elections.grants": 2})
	})
}

func TestALeaseThatRanOutElsewhereEndedAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		w, elsewhere := telemetrytest.On(t, store), service.New(store.Open())
		_, err := elsewhere.Acquire(t.Context(), leadership.AcquireRequest{Election: "far", CandidateID: "ann"})
		require.NoError(t, err)
		_, err = w.Service.Get(t.Context(), "far")
		require.NoError(t, err)
		w.Settle(38 * time.Second)
		expired := leadership.Event{Election: "far", Revision: 2, Type: leadership.EventExpired, At: time.Now(), PreviousLeaderID: "ann", Token: 1}
		w.Metrics.Bus(deliver{expired}).Run(t.Context(), func(leadership.Event) {}, func(bool) {})
		if s := w.Read()["regent.elections.leaderless"]; s != 8 {
			t.Errorf("leaderless for %v s, want 8", s)
		}
	})
}

// deliver is a bus that delivers events, and is over.
type deliver []leadership.Event

var errOver = errors.New("it is over")

func (d deliver) Publish(context.Context, []leadership.Event) (int, error) { return 0, nil }

func (d deliver) Run(_ context.Context, hear func(leadership.Event), _ func(bool)) error {
	for _, e := range d {
		hear(e)
	}
	return errOver
}
