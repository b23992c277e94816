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

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/store/memory"
)

const contested leadership.Election = "reports"

// The bubble's time is the true one: the store's clock shows it, and nobody else's does.

// world is a server, and machines around it.
type world struct {
	t       *testing.T
	start   time.Time
	store   *ledger
	handler http.Handler
	calm    atomic.Bool   // nothing bad happens any more
	over    chan struct{} // closed then
	under   sync.WaitGroup

	mu    sync.Mutex
	story []string // what has happened; guarded by mu
	terms []*term  // guarded by mu
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, start: time.Now(), over: make(chan struct{})}
	w.store = &ledger{Store: memory.New(memory.Config{}), ends: map[leadership.Token]time.Time{}}
	service, err := instance.New(instance.Config{Store: w.store, Name: "server", Alone: true, Now: w.now})
	if err != nil {
		t.Fatal(err)
	}
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

// now is the true time since the beginning.
func (w *world) now() time.Duration { return time.Since(w.start) }

func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%12v  ", w.now())+fmt.Sprintf(format, args...))
}

// ledger is a store that writes down when each lease ends.
type ledger struct {
	leadership.Store

	mu   sync.Mutex
	ends map[leadership.Token]time.Time // guarded by mu
}

// Update implements leadership.Store.
func (l *ledger) Update(
	ctx context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error),
) (leadership.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	snap, err := l.Store.Update(ctx, e, decide)
	l.note(snap)
	return snap, err
}

// Renew implements leadership.Store.
func (l *ledger) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	l.mu.Lock()
	defer l.mu.Unlock()
	answers := l.Store.Renew(ctx, leases)
	for _, a := range answers {
		l.note(a.Snapshot)
	}
	return answers
}

func (l *ledger) note(s leadership.Snapshot) {
	switch r := s.Record; {
	case r.LeaderID != "":
		l.ends[r.Token] = r.LeaseEnd()
	case !r.EndedAt.IsZero():
		l.ends[r.Token] = r.EndedAt
	}
}

func (l *ledger) end(token leadership.Token) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[token]
}

// machine is where a candidate runs. Its clock is its own, and it may be stopped anywhere: all that runs on it then stands still, and its clock
// does not. It stops only where the client looks at the clock, which it may do with its mutex held, or is about to send or to hear: so whoever
// wants to call the client in a test is sure first that the machine runs, for to wait for that mutex is nothing that a bubble can wait for.
type machine struct {
	world *world
	name  leadership.CandidateID
	rate  int64         // what its clock shows in a second, in milliseconds
	since time.Duration // what it showed at the beginning
	on    chan struct{} // has one as long as the machine runs
	asked time.Duration // when somebody last was sure that it runs; guarded by what is in on
	calls atomic.Int32  // that were made
	cut   atomic.Bool   // from the server
	serve func(*http.Request) (*http.Response, error)

	mu     sync.Mutex
	chance *rand.Rand    // nil for a machine to which nothing happens; guarded by mu
	leapt  time.Duration // by how much the clock is ahead, as the timers stood still; guarded by mu
}

func (w *world) machine(name leadership.CandidateID, rate int64) *machine {
	m := &machine{world: w, name: name, rate: rate, since: time.Hour, on: make(chan struct{}, 1)}
	m.serve = m.deliver
	m.on <- struct{}{}
	return m
}

// client returns the candidate.
func (m *machine) client(c client.Candidate) *client.Client {
	c.ID = m.name
	cl, err := client.New(client.Config{
		Server: "http://regent.test", HTTP: &http.Client{Transport: m, Timeout: patience},
		Candidate: c, Clock: m.clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		m.world.t.Fatal(err)
	}
	return cl
}

// patience is how long a call may take. A candidate stands in line for half of it.
const patience = 8 * time.Second

// shows is what the clock shows at a time.
func (m *machine) shows(at time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since + m.leapt + at*time.Duration(m.rate)/1000
}

// when is the first time at which it shows as much.
func (m *machine) when(shown time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	rate := time.Duration(m.rate)
	return ((shown-m.since-m.leapt)*1000 + rate - 1) / rate
}

// clock is the client's. The machine may stop before it is read, and between that and what comes next.
func (m *machine) clock() time.Duration {
	m.falter("before it looked at its clock")
	shown := m.shows(m.world.now())
	m.falter("after it had looked at its clock")
	return shown
}

// runs waits until the machine does; it then goes on doing so at this moment.
func (m *machine) runs() {
	<-m.on
	m.asked = m.world.now()
	m.on <- struct{}{}
}

// runsNow says whether the machine runs; if it does, it goes on doing so at this moment.
func (m *machine) runsNow() bool {
	select {
	case <-m.on:
		m.asked = m.world.now()
		m.on <- struct{}{}
		return true
	default:
		return false
	}
}

// falter waits until the machine runs, and may stop it for a while, if nobody was sure just now that it runs.
func (m *machine) falter(where string) {
	<-m.on
	defer func() { m.on <- struct{}{} }()
	if d := m.draw(1, 30, 2*time.Second); d > 0 && m.asked != m.world.now() {
		m.world.tell("%s stops for %v, %s", m.name, d, where)
		time.Sleep(d)
	}
}

// stop stops the machine until a channel has something.
func (m *machine) stop(until <-chan struct{}) {
	<-m.on
	<-until
	m.on <- struct{}{}
}

// happens is true n times of so many, for as long as it is not calm.
func (m *machine) happens(n, of int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.chance != nil && !m.world.calm.Load() && m.chance.IntN(of) < n
}

// draw is a time, if that happens: short, about as long as is typical, or very long.
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

// deliver brings a request to the server, and its reply back, both as late as it happens. The request may be lost, may arrive twice, and may be
// carried out for a client that has given up. The reply may be lost, and may be heard though its time is up, for timers stand still with the
// machine.
func (m *machine) deliver(r *http.Request) (*http.Response, error) {
	m.falter("before a request left")
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	give := r.Context()
	if m.happens(1, 6) {
		give = context.WithoutCancel(give) // nobody's time is ever up
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
	m.world.under.Go(func() { replies <- m.world.answer(r.WithContext(m.heard(give)), body) })
	var reply *http.Response
	select {
	case reply = <-replies:
	case <-give.Done():
		return nil, give.Err()
	}
	if lost := m.happens(1, 10); !pass(give, m.draw(2, 3, 300*time.Millisecond)) || lost {
		return nil, errNoNetwork
	}
	m.falter("after a reply had come")
	return reply, nil
}

// heard is the context of a request in the server, which may not notice that its client has gone.
func (m *machine) heard(ctx context.Context) context.Context {
	if m.happens(1, 4) {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// again brings a request once more, some time later.
func (m *machine) again(r *http.Request, body []byte) {
	m.world.under.Go(func() {
		time.Sleep(m.draw(1, 1, 3*time.Second))
		m.world.tell("a request of %s arrives once more: %s", m.name, r.URL.Path)
		m.world.answer(r.WithContext(context.WithoutCancel(r.Context())), body)
	})
}

// answer is the server's.
func (w *world) answer(r *http.Request, body []byte) *http.Response {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder.Result()
}

// pass lets time go by, and says whether ctx lasts.
func pass(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// at waits for a time.
func (w *world) at(d time.Duration) { time.Sleep(d - w.now()) }

// take has the machine's candidate acquire the lease.
func (m *machine) take(c client.Candidate) *client.Lease {
	m.world.t.Helper()
	l, err := m.client(c).TryAcquire(m.world.t.Context(), contested)
	if err != nil {
		m.world.t.Fatal(err)
	}
	return l
}

// end lets nobody lead any more.
func (w *world) end(leases ...*client.Lease) {
	for _, l := range leases {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		_ = l.Resign(ctx)
		cancel()
	}
}

// leap suspends the machine for so long that its timers did not run, and its clock did.
func (m *machine) leap(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leapt += d
}
