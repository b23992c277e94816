package pubsub_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"regent/emulators"
	"regent/leadership"
)

// BenchmarkPublishToHear measures how long an event takes from the call that publishes it until
// another instance hears it, on the emulator.
func BenchmarkPublishToHear(b *testing.B) {
	for _, l := range []load{{1, 1}, {100, 1}, {100, 16}} {
		b.Run(fmt.Sprintf("elections=%d/callers=%d", l.elections, l.callers), l.bench)
	}
}

// load is that of callers who publish one event at a time, each of its own elections in turns.
type load struct{ elections, callers int }

func (l load) bench(b *testing.B) {
	s, f := newService(b, emulators.PubSub(b)), newFault()
	publisher, hearer := s.open(b, with(f)), listenLive(b, s.open(b, with(f)))
	m := &meter{sent: make(map[leadership.EventID]time.Time)}
	hearer.change(func() { hearer.then = m.arrived })
	publishes, acks := f.count("Publish"), f.count("Acknowledge")
	b.ResetTimer()
	var publishing sync.WaitGroup
	var all []leadership.Event
	for c := range l.callers {
		events := l.events(c, b.N/l.callers+1)
		all = append(all, events...)
		publishing.Go(func() {
			for i, e := range events {
				m.send(e)
				if _, err := publisher.Publish(b.Context(), events[i:i+1]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	publishing.Wait()
	hearer.awaitEvents(b, all)
	b.StopTimer()
	m.report(b)
	b.ReportMetric(float64(f.count("Publish")-publishes)/float64(len(all)), "publish-rpcs/event")
	b.ReportMetric(float64(f.count("Acknowledge")-acks)/float64(len(all)), "ack-rpcs/event")
}

// events are n of one caller.
func (l load) events(caller, n int) []leadership.Event {
	own := max(l.elections/l.callers, 1)
	events := make([]leadership.Event, n)
	for i := range events {
		events[i] = takeover()
		events[i].Election = leadership.Election(fmt.Sprintf("e%d", caller*own+i%own))
		events[i].Revision = leadership.Revision(i/own + 1)
	}
	return events
}

// meter measures how long events are under way.
type meter struct {
	mu   sync.Mutex
	sent map[leadership.EventID]time.Time
	took []time.Duration
}

func (m *meter) send(e leadership.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[e.ID()] = time.Now()
}

func (m *meter) arrived(e leadership.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.sent[e.ID()]; ok {
		m.took = append(m.took, time.Since(at))
		delete(m.sent, e.ID())
	}
}

func (m *meter) report(b *testing.B) {
	slices.Sort(m.took)
	for name, part := range map[string]float64{"p50-ms": 0.5, "p90-ms": 0.9, "p99-ms": 0.99, "max-ms": 1} {
		i := min(int(part*float64(len(m.took))), len(m.took)-1)
		b.ReportMetric(float64(m.took[i].Microseconds())/1000, name)
	}
}
