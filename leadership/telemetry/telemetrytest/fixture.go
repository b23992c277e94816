// Package telemetrytest runs a measured instance for tests, in the fake time of a synctest bubble,
// and reads the metrics back.
package telemetrytest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/leadership/telemetry"
	"regent/store/memory"
)

// Fixture is an instance on a store in memory, with its metrics. It needs a synctest bubble.
type Fixture struct {
	*testing.T
	Service instance.Service
	Metrics *telemetry.Metrics

	reader *sdkmetric.ManualReader
	all    sync.WaitGroup

	mu   sync.Mutex // guards keys
	keys map[leadership.CandidateID]leadership.Key
}

// New starts an instance that runs until the test ends.
func New(t *testing.T) *Fixture { return On(t, memory.New(memory.Config{})) }

// On is New on a store. Checkpoints and journals are kept there, too, if it can.
func On(t *testing.T, store service.Store) *Fixture {
	t.Helper()
	return start(t, store, true)
}

// Beside is On for one of several instances, which do not hear each other over a bus.
func Beside(t *testing.T, store service.Store) *Fixture {
	t.Helper()
	return start(t, store, false)
}

func start(t *testing.T, store service.Store, alone bool) *Fixture {
	t.Helper()
	w := &Fixture{T: t, reader: sdkmetric.NewManualReader(), keys: make(map[leadership.CandidateID]leadership.Key)}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	var err error
	if w.Metrics, err = telemetry.New(provider, noop.NewTracerProvider()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	journal, _ := store.(service.Journal)
	i, err := instance.New(instance.Config{
		Store: w.Metrics.Store(store), Journal: w.Metrics.Journal(journal), Name: "a", Alone: alone, Now: func() time.Duration { return time.Since(begin) },
	})
	require.NoError(t, err)
	require.NoError(t, w.Metrics.Members(i))
	w.Service = instance.Guard(i, w.Metrics)
	ctx, cancel := context.WithCancel(context.Background())
	w.all.Go(func() { i.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		w.all.Wait()
	})
	synctest.Wait()
	return w
}

// Acquire asks for the lease.
func (w *Fixture) Acquire(e leadership.Election, c leadership.CandidateID, wait time.Duration) (leadership.LeaseRequest, error) {
	g, err := w.Service.Acquire(w.Context(), leadership.AcquireRequest{Election: e, CandidateID: c, Key: new(w.Key(c)), Wait: wait})
	return leadership.LeaseRequest{Election: e, CandidateID: c, Key: g.Key, Token: g.Token}, err
}

// Key returns the key of a candidate.
func (w *Fixture) Key(c leadership.CandidateID) leadership.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.keys[c]; !ok {
		w.keys[c] = leadership.NewKey()
	}
	return w.keys[c]
}

// Lead gets the lease at once.
func (w *Fixture) Lead(e leadership.Election, c leadership.CandidateID) leadership.LeaseRequest {
	w.Helper()
	lease, err := w.Acquire(e, c, 0)
	require.NoError(w, err)
	return lease
}

// Keep renews the lease every 10 s during the time.
func (w *Fixture) Keep(lease leadership.LeaseRequest, during time.Duration) {
	w.Helper()
	for begin := time.Now(); time.Since(begin) < during; {
		time.Sleep(10 * time.Second)
		_, err := w.Service.Renew(w.Context(), lease)
		require.NoError(w, err)
	}
}

// Release ends the lease.
func (w *Fixture) Release(lease leadership.LeaseRequest) {
	w.Helper()
	_, err := w.Service.Do(w.Context(), leadership.Release{LeaseRequest: lease})
	require.NoError(w, err)
}

// Settle lets time pass, and waits for everything that happens then.
func (w *Fixture) Settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// NoLeader makes a leader disappear without a successor for that time.
func (w *Fixture) NoLeader(e leadership.Election, during time.Duration) {
	w.Helper()
	w.Lead(e, "ann")
	w.Settle(leadership.DefaultLeaseDuration + during)
}

// Flap changes the leader that many times, once per interval.
func (w *Fixture) Flap(e leadership.Election, grants int, every time.Duration) {
	w.Helper()
	for n := range grants {
		lease := w.Lead(e, []leadership.CandidateID{"ann", "bob"}[n%2])
		w.Settle(every)
		w.Release(lease)
	}
}

// Contend makes a candidate ask that many times for a lease that another holds, once per interval.
func (w *Fixture) Contend(e leadership.Election, times int, every time.Duration) {
	w.Helper()
	lease := w.Lead(e, "ann")
	for range times {
		if _, err := w.Acquire(e, "bob", 0); err == nil {
			w.Fatal("bob was granted what ann has")
		}
		w.Settle(every)
		_, err := w.Service.Renew(w.Context(), lease)
		require.NoError(w, err)
	}
}

// Values are the values of all series: of a counter and a gauge its own, of a histogram NAME:count
// and NAME:sum. A series is called NAME{LABEL=VALUE,...}, with the labels in order.
type Values map[string]float64

// Sum returns the sum of all series of the name with the labels, each as LABEL=VALUE.
func (v Values) Sum(name string, labels ...string) (sum float64) {
	for series, value := range v {
		head, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		has := strings.Split(rest, ",")
		if head == name && !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
			sum += value
		}
	}
	return sum
}

// Since returns the series that have changed since an earlier reading, and by how much.
func (v Values) Since(earlier Values) Values {
	changed := maps.Clone(v)
	for series := range changed {
		if changed[series] -= earlier[series]; changed[series] == 0 {
			delete(changed, series)
		}
	}
	return changed
}

// Read returns the values of all series.
func (w *Fixture) Read() Values {
	w.Helper()
	values := make(Values)
	for _, m := range w.Collect() {
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			points(values, m.Name, d.DataPoints)
		case metricdata.Gauge[int64]:
			points(values, m.Name, d.DataPoints)
		case metricdata.Gauge[float64]:
			points(values, m.Name, d.DataPoints)
		case metricdata.Histogram[float64]:
			sums(values, m.Name, d.DataPoints)
		case metricdata.Histogram[int64]:
			sums(values, m.Name, d.DataPoints)
		default:
			w.Fatalf("%s is a %T", m.Name, d)
		}
	}
	return values
}

// Collect returns the metrics as OpenTelemetry's reader gets them.
func (w *Fixture) Collect() []metricdata.Metrics {
	w.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(w, w.reader.Collect(context.WithoutCancel(w.Context()), &got))
	var all []metricdata.Metrics
	for _, scope := range got.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return all
}

func points[N int64 | float64](values Values, name string, of []metricdata.DataPoint[N]) {
	for _, p := range of {
		values[series(name, p.Attributes)] = float64(p.Value)
	}
}

func sums[N int64 | float64](values Values, name string, of []metricdata.HistogramDataPoint[N]) {
	for _, p := range of {
		values[series(name+":count", p.Attributes)] = float64(p.Count)
		values[series(name+":sum", p.Attributes)] = float64(p.Sum)
	}
}

func series(name string, labels attribute.Set) string {
	if labels.Len() == 0 {
		return name
	}
	var parts []string
	for _, kv := range labels.ToSlice() { // which is sorted
		parts = append(parts, fmt.Sprintf("%s=%s", kv.Key, kv.Value.String()))
	}
	return name + "{" + strings.Join(parts, ",") + "}"
}
