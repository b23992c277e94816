package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"regent/leadership"
	"regent/leadership/instance"
)

// scope is the instrumentation scope of all metrics and spans.
const scope = "regent/leadership/telemetry"

// Metrics are the metrics and spans of one instance. Its methods may be called concurrently.
type Metrics struct {
	idle      bool // both providers do nothing, and so nothing is measured
	meter     metric.Meter
	tracer    trace.Tracer
	elections *elections
	labels    map[operation]metric.MeasurementOption // of operations
	calls     map[operation]metric.MeasurementOption // of the store

	changes    metric.Int64Counter
	terms      metric.Float64Histogram
	limited    metric.Int64Counter
	bids       metric.Int64Counter
	preempted  metric.Int64Counter
	ballot     metric.Float64Histogram
	transition metric.Float64Histogram
	handOvers  metric.Int64Counter
	handOver   metric.Float64Histogram
	gap        metric.Float64Histogram
	ledger     metric.Float64Histogram
	ledgerSize metric.Int64Histogram
	entries    metric.Int64Counter
	splitBrain metric.Int64Counter
	operations metric.Int64Counter
	contention metric.Int64Counter
	refusals   metric.Int64Counter
	displaced  metric.Int64Counter
	reported   []reported
	store      metric.Float64Histogram
	batch      metric.Int64Histogram

	measured    atomic.Pointer[store] // nil until there is one
	waiting     atomic.Int64
	watchers    atomic.Int64
	followed    atomic.Int64 // calls that wait for acknowledgements
	unannounced atomic.Int64 // the age in nanoseconds; -1 until the outbox was read
}

// New returns metrics and spans that go to the providers. If both are no-op providers, the
// decorators return what they are given and the gate does nothing. An error is a provider's.
func New(meters metric.MeterProvider, tracers trace.TracerProvider) (*Metrics, error) {
	m := &Metrics{
		meter: meters.Meter(scope), tracer: tracers.Tracer(scope), elections: newElections(maxElections),
		labels: labelsOf(operations(), outcomes()), calls: labelsOf(storeOps(), storeOutcomes()),
	}
	_, noMeters := meters.(noopmetric.MeterProvider)
	_, noTracers := tracers.(nooptrace.TracerProvider)
	m.idle = noMeters && noTracers
	m.unannounced.Store(-1)
	b := newBuilder(m.meter)
	m.changes, m.splitBrain, m.operations = b.counter(nameChanges), b.counter(nameSplitBrain), b.counter(nameOperations)
	m.contention, m.refusals = b.counter(nameContention), b.counter(nameRefused)
	m.displaced, m.limited = b.counter(nameDisplaced), b.counter(nameLimited)
	m.bids, m.preempted, m.ballot = b.counter(nameBids), b.counter(namePreemptions), b.seconds(nameBallot)
	m.handOvers, m.handOver, m.gap = b.counter(nameHandOvers), b.seconds(nameHandOver), b.seconds(nameHandOverGap)
	m.ledger, m.ledgerSize, m.entries = b.seconds(nameLedger), b.sizes(nameLedgerSize), b.counter(nameEntries)
	m.reported = []reported{
		{b.counter(nameTasks), func(c leadership.Counters) int64 { return c.Tasks }},
		{b.counter(nameTokens), func(c leadership.Counters) int64 { return c.TokensUsed }},
		{b.counter(nameCalls), func(c leadership.Counters) int64 { return c.Calls }},
		{b.counter(nameErrors), func(c leadership.Counters) int64 { return c.Errors }},
	}
	m.terms, m.transition, m.store = b.seconds(nameTerm), b.seconds(nameTransition), b.seconds(nameStore)
	m.batch = b.sizes(nameBatch)
	return m, m.observe(b)
}

// Idle reports whether nothing is measured, because both providers are no-op providers.
func (m *Metrics) Idle() bool { return m.idle }

// observe registers the gauges, which are read at each collection.
func (m *Metrics) observe(b *builder) error {
	known, flapping, waiting, watchers := b.gauge(nameElections), b.gauge(nameFlapping), b.gauge(nameWaiting), b.gauge(nameWatchers)
	halted, asking, followed, grants := b.gauge(namePaused), b.gauge(nameApprovals), b.gauge(nameFollowed), b.gauge(nameGrants)
	delegated, depth := b.gauge(nameDelegated), b.gauge(nameDepth)
	longest, unannounced := b.age(nameLeaderless), b.age(nameUnannounced)
	haltedFor, askingFor := b.age(namePausedAge), b.age(nameApprovalsAge)
	held, vacant := with("state", leadership.Held), with("state", leadership.Vacant)
	return b.observe(func(ctx context.Context, o metric.Observer) {
		c := m.sure(ctx)
		o.ObserveInt64(known, int64(c.held), held)
		o.ObserveInt64(known, int64(c.vacant), vacant)
		o.ObserveInt64(flapping, int64(c.flapping))
		o.ObserveInt64(grants, int64(c.grants))
		o.ObserveInt64(delegated, int64(c.delegated))
		o.ObserveInt64(depth, int64(c.depth))
		o.ObserveFloat64(longest, c.stopped[leaderless].longest.Seconds())
		o.ObserveInt64(halted, int64(c.stopped[paused].n))
		o.ObserveFloat64(haltedFor, c.stopped[paused].longest.Seconds())
		o.ObserveInt64(asking, int64(c.stopped[unapproved].n))
		o.ObserveFloat64(askingFor, c.stopped[unapproved].longest.Seconds())
		o.ObserveInt64(waiting, m.waiting.Load())
		o.ObserveInt64(watchers, m.watchers.Load())
		o.ObserveInt64(followed, m.followed.Load())
		if age := m.unannounced.Load(); age >= 0 {
			o.ObserveFloat64(unannounced, time.Duration(age).Seconds())
		}
	})
}

// How an election that seems to stand still is checked.
const (
	doubtful = 10 * time.Second // after this time
	maxLooks = 100              // reads per collection and reason
	lookFor  = 2 * time.Second  // for all of them
)

// sure counts the elections. First it reads from the store those that seem to have stood still for
// the longest time, because this instance may have missed the event of a grant or an order
// elsewhere, and would raise an alarm for ever. It costs one read per collection and reason while
// an election stands still, and one of the halts. If the store does not answer, the known state
// counts.
func (m *Metrics) sure(ctx context.Context) counts {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	c, s := m.elections.count(), m.measured.Load()
	if s != nil && slices.ContainsFunc(c.stopped[:], func(one stopped) bool { return one.longest >= doubtful }) {
		_, _ = s.Get(ctx, leadership.HaltsElection)
		c = m.elections.count()
	}
	for i := range stops {
		for range maxLooks {
			worst := c.stopped[i]
			if s == nil || worst.longest < doubtful {
				break
			}
			if _, err := s.Get(ctx, worst.election); err != nil {
				break
			}
			if c = m.elections.count(); c.stopped[i].election == worst.election {
				break
			}
		}
	}
	return c
}

// Cache counts the reads of a cache. reads returns how many were answered from memory, read from
// the store, and answered with another caller's read. It is called at each collection.
func (m *Metrics) Cache(reads func() (hits, misses, shared int64)) error {
	b := newBuilder(m.meter)
	d := b.catalogue[nameCache]
	counter, err := m.meter.Int64ObservableCounter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	b.note(nameCache, err)
	b.observed = append(b.observed, counter)
	return b.observe(func(_ context.Context, o metric.Observer) {
		hits, misses, shared := reads()
		o.ObserveInt64(counter, hits, with("result", "hit"))
		o.ObserveInt64(counter, misses, with("result", "miss"))
		o.ObserveInt64(counter, shared, with("result", "shared"))
	})
}

// Degraded shows the troubles that now returns.
func (m *Metrics) Degraded(now func() []instance.Trouble) error {
	b := newBuilder(m.meter)
	gauge := b.gauge(nameTroubles)
	return b.observe(func(_ context.Context, o metric.Observer) {
		holds := now()
		for _, t := range troubles() {
			var n int64
			if slices.Contains(holds, t) {
				n = 1
			}
			o.ObserveInt64(gauge, n, with("reason", t))
		}
	})
}

// Latch shows whether every call is refused because the platform does not verify callers. latched
// is called at each collection.
func (m *Metrics) Latch(latched func() bool) error {
	b := newBuilder(m.meter)
	gauge := b.gauge(nameLatched)
	return b.observe(func(_ context.Context, o metric.Observer) {
		var n int64
		if latched() {
			n = 1
		}
		o.ObserveInt64(gauge, n)
	})
}

// Reason says why a request was refused.
type Reason string

const (
	Unauthenticated  Reason = "unauthenticated"
	PermissionDenied Reason = "permission_denied"
	RateLimited      Reason = "rate_limited"
	Quota            Reason = "quota"
	Forged           Reason = "forged" // a message of the topic of members
)

// Refused counts a refused request.
func (m *Metrics) Refused(ctx context.Context, why Reason) {
	m.refusals.Add(ctx, 1, with("reason", why))
}

// Displaced counts a connection that was closed to make room for another one.
func (m *Metrics) Displaced(ctx context.Context) { m.displaced.Add(ctx, 1) }

func with[T ~string](key string, value T) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(key, string(value)))
}

// builder makes the instruments of the catalogue.
type builder struct {
	meter     metric.Meter
	catalogue map[string]Metric
	observed  []metric.Observable // read at each collection
	failed    []error
}

func newBuilder(meter metric.Meter) *builder {
	b := &builder{meter: meter, catalogue: make(map[string]Metric)}
	for _, one := range Catalogue() {
		b.catalogue[one.Name] = one
	}
	return b
}

func (b *builder) note(name string, err error) {
	if err != nil {
		b.failed = append(b.failed, fmt.Errorf("telemetry: %s: %w", name, err))
	}
}

// counter starts the series of a single label, or of none, at 0: a query for the growth of a series
// does not see one that appears with 1.
func (b *builder) counter(name string) metric.Int64Counter {
	d := b.catalogue[name]
	i, err := b.meter.Int64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	b.note(name, err)
	if len(d.Labels) == 0 && err == nil {
		i.Add(context.Background(), 0)
	}
	if len(d.Labels) == 1 && err == nil {
		for _, value := range d.Labels[0].Values {
			i.Add(context.Background(), 0, with(d.Labels[0].Key, value))
		}
	}
	return i
}

func (b *builder) seconds(name string) metric.Float64Histogram {
	d := b.catalogue[name]
	i, err := b.meter.Float64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description),
		metric.WithExplicitBucketBoundaries(d.Buckets...))
	b.note(name, err)
	return i
}

func (b *builder) sizes(name string) metric.Int64Histogram {
	d := b.catalogue[name]
	i, err := b.meter.Int64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description),
		metric.WithExplicitBucketBoundaries(d.Buckets...))
	b.note(name, err)
	return i
}

func (b *builder) gauge(name string) metric.Int64ObservableGauge {
	d := b.catalogue[name]
	i, err := b.meter.Int64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	b.note(name, err)
	b.observed = append(b.observed, i)
	return i
}

func (b *builder) age(name string) metric.Float64ObservableGauge {
	d := b.catalogue[name]
	i, err := b.meter.Float64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	b.note(name, err)
	b.observed = append(b.observed, i)
	return i
}

// observe registers f to be called at each collection, for all instruments that are read then, and
// returns the errors since the builder was made.
func (b *builder) observe(f func(context.Context, metric.Observer)) error {
	_, err := b.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		f(ctx, o)
		return nil
	}, b.observed...)
	b.note("the gauges", err)
	return errors.Join(b.failed...)
}

const nameStretch = "regent.renewals.stretch"

// Stretch shows how far leaders are told to delay their renewals; now returns that, from 0 to 1.
func (m *Metrics) Stretch(now func() float64) error {
	b := newBuilder(m.meter)
	gauge := b.age(nameStretch)
	return b.observe(func(_ context.Context, o metric.Observer) {
		o.ObserveFloat64(gauge, now())
	})
}

// Bus carries events between the instances on one store; see package instance.
type Bus interface {
	Publish(ctx context.Context, events []leadership.Event) (acked int, err error)
	Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error
}

// Bus returns the bus with its events remembered: the gauges of elections include the changes of
// other instances, the counters do not.
func (m *Metrics) Bus(inner Bus) Bus {
	if m.idle {
		return inner
	}
	return &bus{inner, m}
}

type bus struct {
	Bus
	m *Metrics
}

func (b *bus) Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error {
	return b.Bus.Run(ctx, func(e leadership.Event) {
		b.m.elections.hear(e)
		hear(e)
	}, live)
}
