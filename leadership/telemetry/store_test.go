package telemetry_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/leadership/telemetry"
	"regent/leadership/telemetry/telemetrytest"
	"regent/store/memory"
	"regent/store/storetest"
)

func TestTheProtocolHoldsOnAMeasuredStore(t *testing.T) { storetest.RunProtocol(t, measured) }

func TestAMeasuredJournalKeepsTheContract(t *testing.T) { storetest.RunJournal(t, measured) }

// both is a store with its journal.
type both struct {
	service.Store
	service.Journal
}

func measured(testing.TB) storetest.Backing {
	var ahead atomic.Int64
	first := memory.New(memory.Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, History: storetest.History})
	return storetest.Backing{
		Open: func(t testing.TB) service.Store {
			m, plain := newMetrics(t), first.Open()
			s := both{m.Store(plain), m.Journal(plain)}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Advance: func(_ testing.TB, d time.Duration) { ahead.Add(int64(d)) },
	}
}

func newMetrics(t testing.TB) *telemetry.Metrics {
	t.Helper()
	m, err := telemetry.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), noop.NewTracerProvider())
	require.NoError(t, err)
	return m
}

// fragile is a store that says when it has failed.
type fragile struct {
	service.Store
	broken chan struct{}
}

func (f fragile) Broken() <-chan struct{} { return f.broken }

func TestAMeasuredStoreReportsThatTheStoreIsBroken(t *testing.T) {
	t.Parallel()
	type breakable interface{ Broken() <-chan struct{} }
	m, plain := newMetrics(t), memory.New(memory.Config{})
	if _, ok := m.Store(plain).(breakable); ok {
		t.Error("a store that cannot break has Broken")
	}
	f := fragile{plain, make(chan struct{})}
	b, ok := m.Store(f).(breakable)
	require.True(t, ok, "Broken is gone")
	close(f.broken)
	<-b.Broken()
}

func TestCallsOfTheStoreAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var fault error // of updates
		twice := false  // each decision is made once more
		w := telemetrytest.On(t, &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			if c.Method != "Update" {
				return next(ctx)
			}
			if fault != nil {
				return fault
			}
			if decide := *c.Decide; twice {
				*c.Decide = func(s rule.Snapshot) (rule.Change, error) {
					decide(s)
					return decide(s)
				}
			}
			return next(ctx)
		}})
		ann := w.Lead("jobs", "ann")
		w.Acquire("jobs", "bob", 0)
		w.Service.BatchRenew(t.Context(), []leadership.LeaseRequest{ann, {Election: "other", CandidateID: "ann", Key: ann.Key, Token: 1}})
		for _, fault = range []error{leadership.StoreUnavailable, leadership.OutcomeUnknown} {
			w.Acquire("jobs", "bob", 0)
		}
		fault, twice = nil, true
		w.Release(ann)
		got := w.Read()
		for series, want := range map[string]float64{
			"regent.store.duration:count{op=update,outcome=ok}":           2, // a grant, and a release
			"regent.store.duration:count{op=update,outcome=refused}":      2, // bob, and the other election
			"regent.store.duration:count{op=update,outcome=unavailable}":  1,
			"regent.store.duration:count{op=update,outcome=unknown}":      1,
			"regent.store.duration:count{op=renew,outcome=ok}":            1,
			"regent.store.batch.size:sum":                                 2,
			"regent.lease.contention{reason=conflict}":                    1,
			"regent.lease.operations{op=renew,outcome=lease_lost}":        1,
			"regent.lease.operations{op=acquire,outcome=outcome_unknown}": 1,
			"regent.leadership.changes{type=released}":                    1, // though it was decided twice
		} {
			if got[series] != want {
				t.Errorf("%s is %v, want %v", series, got[series], want)
			}
		}
	})
}

func TestTheAgeOfTheOutboxIsThatOfItsOldestEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		w := telemetrytest.On(t, store)
		if _, ok := w.Read()["regent.events.unannounced.age"]; ok {
			t.Error("an age is reported though the outbox was never read")
		}
		outbox := w.Metrics.Store(store)
		look := func(want float64) {
			t.Helper()
			events, err := outbox.Unannounced(t.Context(), "", 10)
			require.NoError(t, err)
			if got := w.Read()["regent.events.unannounced.age"]; got != want {
				t.Errorf("the age is %v s, want %v", got, want)
			}
			var ids []leadership.EventID
			for _, e := range events {
				ids = append(ids, e.ID())
			}
			if err := errors.Join(outbox.MarkAnnounced(t.Context(), ids)); want > 0 && err != nil {
				t.Fatal(err)
			}
		}
		look(0)
		w.Lead("jobs", "ann")
		w.Settle(20 * time.Second)
		w.Lead("more", "ann")
		w.Settle(5 * time.Second)
		if _, err := outbox.Unannounced(t.Context(), "more", 10); err != nil { // which says nothing of the others
			t.Fatal(err)
		}
		look(25)
		look(0)
	})
}

// What the instance counts by itself is read at each collection, by a function that it is given.
func TestWhatAnInstanceSaysOfItselfIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		give func(*telemetry.Metrics) error
		want map[string]float64
	}{
		"reads of its cache": {
			func(m *telemetry.Metrics) error {
				return m.Cache(func() (hits, misses, shared int64) { return 3, 2, 1 })
			},
			map[string]float64{"regent.cache.reads{result=hit}": 3, "regent.cache.reads{result=miss}": 2, "regent.cache.reads{result=shared}": 1},
		},
		"why it is degraded": {
			func(m *telemetry.Metrics) error {
				return m.Degraded(func() []instance.Trouble { return []instance.Trouble{instance.CannotHear, telemetry.InvalidAccess} })
			},
			map[string]float64{"regent.events.troubles{reason=cannot_hear}": 1, "regent.events.troubles{reason=access_file_invalid}": 1},
		},
		"the stretch of renewals": {
			func(m *telemetry.Metrics) error { return m.Stretch(func() float64 { return 0.25 }) },
			map[string]float64{"regent.renewals.stretch": 0.25},
		},
		"that it verifies no caller": {
			func(m *telemetry.Metrics) error { return m.Latch(func() bool { return true }) }, map[string]float64{"regent.callers.unverified": 1},
		},
		"a request that it has refused": {
			func(m *telemetry.Metrics) error { m.Refused(t.Context(), telemetry.PermissionDenied); return nil },
			map[string]float64{"regent.requests.refused{reason=permission_denied}": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *telemetrytest.Fixture) {
				before := w.Read()
				require.NoError(t, c.give(w.Metrics))
				want(w, w.Read().Since(before), c.want)
				inCatalogue(w)
			})
		})
	}
}
