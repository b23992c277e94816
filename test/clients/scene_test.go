package clients_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
	"regent/test/clients"
	"regent/test/faults/record"
	"regent/test/proxy"
)

// quiet is for what servers say of connections that a case breaks.
var quiet = log.New(io.Discard, "", 0)

// scene is one case with one client: a server, what stands before it, and the driver.
type scene struct {
	*testing.T
	kind  kind
	lease time.Duration
	// of no other case: another test's client may still call a port that was given to this one
	election leadership.Election
	rate     float64 // of the server's clock
	stream   time.Duration
	setup    []string // environment of the driver

	store   *memory.Store
	present *served
	gate    *gate
	line    *proxy.Hop
	driver  *process
	drivers []*process // all that were started

	mu    sync.Mutex
	calls []record.Line // guarded by mu
}

// served is one instance of the server.
type served struct {
	inst  *instance.Instance
	proxy *record.Proxy
	owner *client.Client // its calls are written down, too, and pass no gate
}

func drawElection() leadership.Election {
	return leadership.Election("reports-" + strings.ToLower(rand.Text()))
}

func newScene(t *testing.T, k kind, c trial) *scene {
	t.Helper()
	s := &scene{T: t, kind: k, election: drawElection(), lease: c.lease, rate: 1 + c.fast, stream: c.stream}
	if s.lease == 0 {
		s.lease = time.Minute
	}
	start := time.Now()
	s.store = memory.New(memory.Config{Now: func() time.Time { return start.Add(s.clock()) }})
	s.present = s.serve("first")
	s.gate = newGate(t, s.present.proxy.URL(), s.election)
	s.line = proxy.ForTest(t, strings.TrimPrefix(s.gate.URL, "http://"))
	s.configure(leadership.Config{LeaseDuration: s.lease})
	return s
}

// clock is the server's.
func (s *scene) clock() time.Duration { return time.Duration(float64(boottime.Now()) * s.rate) }

// serve starts an instance on the store.
func (s *scene) serve(name string) *served {
	s.Helper()
	v := &served{}
	var err error
	v.inst, err = instance.New(instance.Config{Store: s.store.Open(), Journal: s.store.Open(), Name: name, Alone: true, Now: s.clock})
	require.NoError(s, err)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { v.inst.Run(ctx) })
	server := httptest.NewUnstartedServer(httpapi.New(httpapi.Config{Service: v.inst, StreamLimit: s.stream}))
	server.Config.ErrorLog = quiet
	server.Start()
	if v.proxy, err = record.NewProxy(name, server.Listener.Addr().String(), record.NewRecorder(0, s.note)); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		v.proxy.Close()
		stop()
		server.CloseClientConnections()
		server.Close()
		running.Wait()
	})
	v.owner, err = client.New(client.Config{Server: v.proxy.URL(), HTTP: &http.Client{Timeout: patience}})
	require.NoError(s, err)
	return v
}

// replace has another instance serve, and drains the one before.
func (s *scene) replace() {
	before := s.present
	s.present = s.serve("second")
	s.gate.change(func() { s.gate.target = s.present.proxy.URL() })
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	before.inst.Drain(ctx, wire.Draining)
}

func (s *scene) note(l record.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, l)
}

// patience is how long a case waits for something that must happen.
const patience = time.Minute

// need fails the case for an error.
func (s *scene) need(err error) {
	s.Helper()
	require.NoError(s, err)
}

func (s *scene) configure(c leadership.Config) {
	s.Helper()
	_, err := s.present.owner.Do(s.Context(), leadership.Configure{Election: s.election, Config: c})
	s.need(err)
}

// found is the election in the store.
func (s *scene) found() leadership.Lease {
	s.Helper()
	l, err := s.present.owner.Get(s.Context(), s.election)
	s.need(err)
	return l
}

// other is another candidate, which is always at the server.
type other struct {
	*scene
	leadership.LeaseRequest
}

// bob leads, or waits until he does.
func (s *scene) bob() *other {
	s.Helper()
	return s.bobFor(s.lease)
}

// bobFor is bob with a lease of that length.
func (s *scene) bobFor(lease time.Duration) *other {
	s.Helper()
	b := &other{s, leadership.LeaseRequest{Election: s.election, CandidateID: "bob", Key: leadership.NewKey()}}
	for {
		g, err := s.present.owner.Acquire(s.Context(), leadership.AcquireRequest{Election: s.election, CandidateID: b.CandidateID, Key: &b.Key, LeaseDuration: lease, Wait: patience / 2})
		if err == nil {
			b.Token = g.Token
			return b
		}
		if s.Context().Err() != nil {
			s.Fatal(err)
		}
	}
}

func (b *other) renew() {
	b.Helper()
	_, err := b.present.owner.Renew(b.Context(), b.LeaseRequest)
	b.need(err)
}

func (b *other) release() {
	b.Helper()
	_, err := b.present.owner.Do(b.Context(), leadership.Release{LeaseRequest: b.LeaseRequest})
	b.need(err)
}

// until waits until something is so.
func (s *scene) until(what string, is func() bool) {
	s.Helper()
	for end := boottime.Now() + patience; !is(); <-time.After(20 * time.Millisecond) {
		if boottime.Now() > end {
			s.Fatalf("after %v it is not so that %s\n%s", patience, what, s.story())
		}
	}
}

// asked waits until n requests of the verb have come, and returns the last of them.
func (s *scene) asked(verb wire.Verb, n int) request {
	s.Helper()
	var found []request
	s.until(fmt.Sprintf("%s is asked %d times", verb, n), func() bool {
		found = s.gate.of(verb)
		return len(found) >= n
	})
	return found[n-1]
}

// renews waits until the lease was renewed n times more.
func (s *scene) renews(n int) {
	s.Helper()
	count := func() (n int) {
		for _, r := range s.gate.of(wire.VerbRenew) {
			if r.until > 0 && r.gone {
				n++
			}
		}
		return n
	}
	before := count()
	s.until(fmt.Sprintf("the lease is renewed %d times more", n), func() bool { return count() >= before+n })
}

// vacant waits until nobody leads, after the token.
func (s *scene) vacant(token leadership.Token) {
	s.Helper()
	s.until("the election is vacant", func() bool { return s.found().State == leadership.Vacant })
	if l := s.found(); l.Token != token {
		s.Errorf("the election is vacant after token %d, not %d\n%s", l.Token, token, s.story())
	}
}

// story is what has happened, for a person.
func (s *scene) story() string {
	var text strings.Builder
	for _, r := range s.gate.all() {
		fmt.Fprintf(&text, "%12.3f %s %s token %d, until %.3f\n", r.at.Seconds(), r.CandidateID, r.verb, r.FencingToken, r.until.Seconds())
	}
	for _, p := range s.drivers {
		text.WriteString(p.story())
	}
	return text.String()
}

// env is the environment of the driver.
func (s *scene) env(o clients.Options) []string {
	return append([]string{
		"REGENT_SERVER=http://" + s.line.Addr(), "REGENT_ELECTION=" + string(s.election), "REGENT_CANDIDATE=ann",
		fmt.Sprintf("REGENT_LEASE=%.0fs", s.lease.Seconds()), "REGENT_DRIVER=" + optionsText(o),
	}, s.setup...)
}
