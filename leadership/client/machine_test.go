package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

const contested leadership.Election = "reports"

// The bubble's time is the true time. Only the store's clock shows it.

// testbed is a server with machines around it.
type testbed struct {
	t       *testing.T
	start   time.Time
	store   *endRecorder
	handler http.Handler
	calm    atomic.Bool   // no more faults
	batches atomic.Int32  // how many renewed the contested election among others
	over    chan struct{} // closed then
	under   sync.WaitGroup

	mu         sync.Mutex
	transcript []string // what has happened; guarded by mu
	terms      []*term  // guarded by mu
}

func newWorld(t *testing.T) *testbed {
	w := &testbed{t: t, start: time.Now(), over: make(chan struct{})}
	w.store = &endRecorder{leases: memory.New(memory.Config{}), ends: map[leadership.Token]time.Time{}}
	store := &storetest.Fake{Store: w.store.leases, Around: w.store.around}
	service, err := instance.New(instance.Config{Store: store, Name: "server", Alone: true, Now: w.now})
	require.NoError(t, err)
	w.handler = httpapi.New(httpapi.Config{Service: service})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { service.Run(ctx) })
	t.Cleanup(func() {
		w.under.Wait()
		cancel()
		running.Wait()
	})
	return w
}

func (w *testbed) now() time.Duration { return time.Since(w.start) }

func (w *testbed) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transcript = append(w.transcript, fmt.Sprintf("%12v  ", w.now())+fmt.Sprintf(format, args...))
}

// endRecorder records when each lease of the contested election ends.
type endRecorder struct {
	leases service.Store

	mu   sync.Mutex
	ends map[leadership.Token]time.Time // guarded by mu
}

// around is a storetest.Fake's.
func (l *endRecorder) around(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
	if !c.Writes() {
		return next(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := next(ctx)
	if snap, err := l.leases.Get(context.WithoutCancel(ctx), contested); err == nil {
		l.note(snap)
	}
	return err
}

func (l *endRecorder) note(s rule.Snapshot) {
	switch r := s.Record; {
	case r.LeaderID != "":
		l.ends[r.Token] = r.LeaseEnd()
	case !r.EndedAt.IsZero():
		l.ends[r.Token] = r.EndedAt
	}
}

func (l *endRecorder) end(token leadership.Token) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[token]
}

// machine runs a candidate. It has a clock of its own, and may be stopped: then everything on it
// stands still, except its clock. It stops only where the client reads the clock, which it may do
// with its mutex held, or is about to send or receive. A test must therefore make sure that the
// machine runs before it calls the client: a bubble cannot wait for that mutex.
type machine struct {
	testbed *testbed
	name    leadership.CandidateID
	rate    int64         // what its clock shows per second, in milliseconds
	since   time.Duration // what it showed at the beginning
	on      chan struct{} // holds a value while the machine runs
	asked   time.Duration // when it was last required to run; guarded by the value in on
	calls   atomic.Int32  // number of calls
	cut     atomic.Bool   // from the server
	serve   func(*http.Request) (*http.Response, error)

	mu        sync.Mutex
	chance    *rand.Rand    // nil for a machine without faults; guarded by mu
	suspended time.Duration // how far the clock is ahead because timers stood still; guarded by mu
}

func (w *testbed) machine(name leadership.CandidateID, rate int64) *machine {
	m := &machine{testbed: w, name: name, rate: rate, since: time.Hour, on: make(chan struct{}, 1)}
	m.serve = m.deliver
	m.on <- struct{}{}
	return m
}

func (m *machine) client(c client.Candidate) *client.Client {
	c.ID = m.name
	cl, err := client.New(client.Config{
		Server: "http://localhost", HTTP: &http.Client{Transport: m, Timeout: patience},
		Candidate: c, Clock: m.clock, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(m.testbed.t, err)
	return cl
}

// patience is how long a call may take. A candidate waits in line for half of it.
const patience = 8 * time.Second

// shows returns what the clock shows at a time.
func (m *machine) shows(at time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since + m.suspended + at*time.Duration(m.rate)/1000
}

// when returns the first time at which the clock shows this.
func (m *machine) when(shown time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	rate := time.Duration(m.rate)
	return ((shown-m.since-m.suspended)*1000 + rate - 1) / rate
}

// clock is the client's clock. The machine may stop before it is read, and before what comes next.
func (m *machine) clock() time.Duration {
	m.maybeStop("before it looked at its clock")
	shown := m.shows(m.testbed.now())
	m.maybeStop("after it had looked at its clock")
	return shown
}

// runs waits until the machine runs, and keeps it running at this moment.
func (m *machine) runs() {
	<-m.on
	m.asked = m.testbed.now()
	m.on <- struct{}{}
}

// runsNow reports whether the machine runs; if so, it keeps running at this moment.
func (m *machine) runsNow() bool {
	select {
	case <-m.on:
		m.asked = m.testbed.now()
		m.on <- struct{}{}
		return true
	default:
		return false
	}
}

// maybeStop waits until the machine runs, and may stop it for a while, unless it was just required
// to run.
func (m *machine) maybeStop(where string) {
	<-m.on
	defer func() { m.on <- struct{}{} }()
	if d := m.draw(1, 30, 2*time.Second); d > 0 && m.asked != m.testbed.now() {
		m.testbed.tell("%s stops for %v, %s", m.name, d, where)
		time.Sleep(d)
	}
}

// stop stops the machine until the channel has a value.
func (m *machine) stop(until <-chan struct{}) {
	<-m.on
	<-until
	m.on <- struct{}{}
}

// happens returns true in n of so many cases, unless the testbed is calm.
func (m *machine) happens(n, of int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.chance != nil && !m.testbed.calm.Load() && m.chance.IntN(of) < n
}

// draw returns a random time if a fault happens: short, about as long as typical, or very long.
func (m *machine) draw(n, of int, typical time.Duration) time.Duration {
	if !m.happens(n, of) {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	longest := []time.Duration{typical / 20, typical / 20, typical, 5 * typical}[m.chance.IntN(4)]
	return time.Duration(m.chance.Int64N(int64(longest))) + 1
}

var errNoNetwork = errors.New("the network has lost it")

// RoundTrip implements http.RoundTripper.
func (m *machine) RoundTrip(r *http.Request) (*http.Response, error) {
	m.calls.Add(1)
	if m.cut.Load() {
		return nil, errNoNetwork
	}
	return m.serve(r)
}

// deliver takes a request to the server and its reply back, each after a random delay. The request
// may be lost, may arrive twice, and may be carried out after its client has given up. The reply
// may be lost, and may arrive after its timeout, because timers stand still with the machine.
func (m *machine) deliver(r *http.Request) (*http.Response, error) {
	m.maybeStop("before a request left")
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	if bytes.Contains(body, []byte(`"election":"`+contested+`"`)) {
		m.testbed.batches.Add(1)
	}
	give := r.Context()
	if m.happens(1, 6) {
		give = context.WithoutCancel(give) // the timeout never fires
	}
	if m.happens(1, 8) {
		m.again(r, body)
	}
	lost := m.happens(1, 12) && give.Done() != nil
	if !pass(give, m.draw(2, 3, 300*time.Millisecond)) || lost {
		<-give.Done()
		return nil, errNoNetwork
	}
	replies := make(chan *http.Response, 1)
	m.testbed.under.Go(func() { replies <- m.testbed.answer(r.WithContext(m.heard(give)), body) })
	var reply *http.Response
	select {
	case reply = <-replies:
	case <-give.Done():
		return nil, give.Err()
	}
	if lost := m.happens(1, 10); !pass(give, m.draw(2, 3, 300*time.Millisecond)) || lost {
		return nil, errNoNetwork
	}
	m.maybeStop("after a reply had come")
	return reply, nil
}

// heard returns the context of a request in the server, which may not notice that its client is
// gone.
func (m *machine) heard(ctx context.Context) context.Context {
	if m.happens(1, 4) {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// again delivers a request once more, some time later.
func (m *machine) again(r *http.Request, body []byte) {
	m.testbed.under.Go(func() {
		time.Sleep(m.draw(1, 1, 3*time.Second))
		m.testbed.tell("a request of %s arrives once more: %s", m.name, r.URL.Path)
		m.testbed.answer(r.WithContext(context.WithoutCancel(r.Context())), body)
	})
}

func (w *testbed) answer(r *http.Request, body []byte) *http.Response {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder.Result()
}

// pass waits, and reports whether ctx still lasts.
func pass(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *testbed) at(d time.Duration) { time.Sleep(d - w.now()) }

func (m *machine) take(c client.Candidate) *client.Lease {
	m.testbed.t.Helper()
	l, err := m.client(c).TryAcquire(m.testbed.t.Context(), contested)
	require.NoError(m.testbed.t, err)
	return l
}

func (w *testbed) end(leases ...*client.Lease) {
	for _, l := range leases {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		_ = l.Resign(ctx)
		cancel()
	}
}

// suspend suspends the machine for so long that its timers fall behind its clock.
func (m *machine) suspend(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspended += d
}
