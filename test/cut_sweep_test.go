package test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/wire"
	ram "regent/store/memory"
	"regent/test/proxy"
)

// sweep cuts one mutation again and again, each time with new elections.
type sweep struct {
	t testing.TB
	mutation
	direct  instance.Protocol // prepares and looks
	healthy *client.Client
	doomed  *client.Client // through the cutter
	conns   *http.Transport
	cutter  *proxy.Cutter
	server  string     // host:port
	clock   *handClock // nil if the store has one of its own
	kept    bool       // the line has carried another call before
	carried [2]int     // how many bytes that was, each way

	trials    int
	began     time.Time          // this trial, by the clock
	untouched []standing         // how the elections stand without the call
	once      []standing         // and with it
	told      []leadership.Lease // what its caller hears

	tally
}

// handClock stands until it is moved.
type handClock struct{ elapsed atomic.Int64 }

func (c *handClock) now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(c.elapsed.Load()))
}
func (c *handClock) advance(d time.Duration) { c.elapsed.Add(int64(d)) }

// sweepInMemory returns a sweep at an instance in this process, on a store whose clock stands still
// during a call.
func sweepInMemory(t testing.TB, m mutation) *sweep {
	t.Helper()
	clock := &handClock{}
	inst, address := host(t, ram.New(ram.Config{Now: clock.now}))
	return newSweep(t, m, address, inst, clock)
}

func newSweep(t testing.TB, m mutation, server string, direct instance.Protocol, clock *handClock) *sweep {
	t.Helper()
	s := &sweep{t: t, mutation: m, direct: direct, healthy: clientOf(t, server), cutter: proxy.NewCutter(t, server), server: server, clock: clock}
	s.conns = &http.Transport{MaxConnsPerHost: 1} // which the cutter is for
	t.Cleanup(s.conns.CloseIdleConnections)
	var err error
	s.doomed, err = client.New(client.Config{Server: "http://" + s.cutter.Addr(), HTTP: &http.Client{Transport: s.conns, Timeout: sane}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// host lets an instance in this process serve a store.
func host(t testing.TB, leases leadership.Store) (inst *instance.Instance, address string) {
	t.Helper()
	inst, err := instance.New(instance.Config{Store: leases, Name: "regent-test", Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httpapi.Server(httpapi.New(httpapi.Config{Service: inst, StreamLimit: time.Hour}), nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { inst.Run(ctx) })
	running.Go(func() { server.Serve(listener) })
	t.Cleanup(func() {
		inst.Drain(ctx, wire.Draining)
		server.Close()
		cancel()
		running.Wait()
	})
	return inst, listener.Addr().String()
}

// prepare brings new elections to the state that the call expects.
func (s *sweep) prepare() []leadership.Election {
	s.t.Helper()
	s.trials++
	var elections []leadership.Election
	for i := range max(s.elections, 1) {
		name := strings.NewReplacer(" ", "-", ",", "").Replace(s.name)
		elections = append(elections, leadership.Election(fmt.Sprintf("%s-%05d-%d", name, s.trials, i)))
	}
	s.pass(time.Second)
	for _, step := range s.before {
		if _, err := step(s.t.Context(), s.direct, elections); err != nil {
			s.t.Fatalf("before the call: %v", err)
		}
		s.pass(time.Second)
	}
	return elections
}

// pass advances the clock, if it stands still by itself.
func (s *sweep) pass(d time.Duration) {
	if s.clock != nil {
		s.clock.advance(d)
		s.began = s.clock.now()
	}
}

// over makes the call over a new connection, or over one that has carried another call, while other
// callers are at work. kept is false if the transport did not keep the connection that it was to
// keep; then the trial is void.
func (s *sweep) over(cut proxy.Cut, elections []leadership.Election) (passage *proxy.Connection, leases []leadership.Lease, kept bool, err error) {
	s.t.Helper()
	if cut.After >= 0 {
		cut.After += s.carried[cut.Way]
	}
	passage = s.cutter.Next(cut)
	if s.kept {
		s.another()
	}
	var reused []bool // of each connection that the call had
	ctx := httptrace.WithClientTrace(s.t.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { reused = append(reused, c.Reused) },
	})
	var others sync.WaitGroup
	others.Go(func() { s.others(elections) })
	leases, err = s.make(ctx, s.doomed, elections)
	others.Wait()
	s.conns.CloseIdleConnections()
	if len(reused) != 1 {
		s.t.Fatalf("%+v: the client made its call on %d connections", cut, len(reused))
	}
	return passage, leases, reused[0] == s.kept, err
}

// another is a call that changes nothing.
func (s *sweep) another() {
	s.t.Helper()
	if _, err := s.doomed.Get(s.t.Context(), "never-seen"); !errors.Is(err, leadership.NotFound) {
		s.t.Errorf("a read before the line is cut: %v", err)
	}
}

func (s *sweep) others(elections []leadership.Election) {
	if s.meanwhile == nil {
		return
	}
	if _, err := s.meanwhile(s.t.Context(), s.direct, elections); err != nil {
		s.t.Errorf("meanwhile: %v", err)
	}
}

// make makes the call. Its answer shows the time at which the store was asked: in line, the attempt
// of one call can serve the next.
func (s *sweep) make(ctx context.Context, c *client.Client, elections []leadership.Election) ([]leadership.Lease, error) {
	leases, err := s.call(ctx, c, elections)
	for i := range leases {
		l := s.plain(leases[i])
		l.ExpiresIn = l.ExpiresIn.Round(time.Minute)
		l.ReadAt, l.RenewIn = time.Time{}, 0 // the latter is drawn by chance
		leases[i] = l
	}
	return leases, err
}

// measure learns the outcome of the call when nothing is cut, and the state when it is not made,
// and returns its number of bytes.
func (s *sweep) measure() (request, reply int) {
	s.t.Helper()
	s.carry()
	elections := s.prepare()
	s.others(elections)
	s.untouched = s.look(elections)
	for n := 0; n < 3; { // a reply says how long it waited, if it did
		elections = s.prepare()
		passage, leases, kept, err := s.over(proxy.Cut{After: -1}, elections)
		passage.Wait()
		if !kept {
			continue
		}
		if err != nil {
			s.t.Fatalf("over a line that is not cut: %v", err)
		}
		n++
		s.told, s.once = leases, s.look(elections)
		request = max(request, passage.Passed(proxy.Request)-s.carried[proxy.Request])
		reply = max(reply, passage.Passed(proxy.Reply)-s.carried[proxy.Reply])
	}
	for i, now := range s.once {
		if reflect.DeepEqual(now, s.untouched[i]) {
			s.t.Fatal("the call changes nothing that is looked at")
		}
		if words := historyOf(now); words != s.history {
			s.t.Fatalf("one call leaves the history %q, not %q", words, s.history)
		}
	}
	return request, reply
}

// carry measures the bytes that a connection carries before the call.
func (s *sweep) carry() {
	s.t.Helper()
	if !s.kept {
		return
	}
	passage := s.cutter.Next(proxy.Cut{After: -1})
	s.another()
	s.conns.CloseIdleConnections()
	passage.Wait()
	s.carried = [2]int{passage.Passed(proxy.Request), passage.Passed(proxy.Reply)}
}

// trial makes the call over a connection that is cut, reads the state, repeats the call over
// another connection, and reads the state again.
func (s *sweep) trial(cut proxy.Cut) {
	s.t.Helper()
	elections := s.prepare()
	passage, _, kept, err := s.over(cut, elections)
	passage.Wait()
	if !kept {
		s.void++
		return
	}
	done := s.between(cut, elections)
	s.again(cut, elections)
	s.judge(cut, passage, err)
	if errors.Is(err, leadership.StoreUnavailable) && done > 0 {
		s.t.Errorf("%+v: it was done, and its caller was told that nothing was: %v", cut, err)
	}
	want := 0 // half a request does nothing
	if cut.Way == proxy.Reply {
		want = len(elections)
	}
	if done != want && !cut.Reset { // with a reset the server may be at it still
		s.t.Errorf("%+v: done for %d, not %d", cut, done, want)
	}
}

// race cuts the connection as soon as all of the request has passed, and repeats the call while the
// first may be under way.
func (s *sweep) race(request int, reset bool) {
	s.t.Helper()
	cut := proxy.Cut{Way: proxy.Request, After: request, Reset: reset}
	elections := s.prepare()
	passage, _, kept, err := s.over(cut, elections)
	if !kept {
		s.void++
		return
	}
	s.again(cut, elections)
	passage.Wait()
	s.judge(cut, passage, err)
}

// unreached makes the call where no connection can be made at all.
func (s *sweep) unreached() {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.server) // nothing listens at its own end, nor will as long as it is open
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	elections := s.prepare()
	s.others(elections)
	if _, err = s.make(s.t.Context(), clientOf(s.t, conn.LocalAddr().String()), elections); !errors.Is(err, leadership.StoreUnavailable) {
		s.t.Errorf("without a server: %v", err)
	}
	s.undone++
	if done := s.between(proxy.Cut{}, elections); done > 0 {
		s.t.Errorf("without a server it was done for %d", done)
	}
	s.again(proxy.Cut{}, elections)
}

// between counts the elections for which the call is done; for the others it must not have begun.
func (s *sweep) between(cut proxy.Cut, elections []leadership.Election) (done int) {
	s.t.Helper()
	for i, now := range s.look(elections) {
		switch {
		case reflect.DeepEqual(now, s.once[i]): // cmp is far slower
			done++
		case !reflect.DeepEqual(now, s.untouched[i]):
			s.t.Errorf("%+v: neither done nor not done:\n%s", cut, cmp.Diff(s.once[i], now))
		}
	}
	return done
}

// again makes the same call once more. Its answer, and the state after it, must be those of a
// single call.
func (s *sweep) again(cut proxy.Cut, elections []leadership.Election) {
	s.t.Helper()
	leases, err := s.make(s.t.Context(), s.healthy, elections)
	if err != nil {
		s.t.Errorf("%+v: the same call again: %v", cut, err)
		return
	}
	if !reflect.DeepEqual(leases, s.told) {
		s.t.Errorf("%+v: the same call again is told (-once +again):\n%s", cut, cmp.Diff(s.told, leases))
	}
	if left := s.look(elections); !reflect.DeepEqual(left, s.once) {
		s.t.Errorf("%+v: the state (-once +again):\n%s", cut, cmp.Diff(s.once, left))
	}
}

// judge counts the outcome that the caller of the cut call saw: a success only if it had all of the
// reply, and never a refusal.
func (s *sweep) judge(cut proxy.Cut, passage *proxy.Connection, err error) {
	s.t.Helper()
	lost := passage.Dropped(proxy.Request) + passage.Dropped(proxy.Reply)
	switch {
	case err == nil && lost > 0:
		s.t.Errorf("%+v: it was answered though %d bytes were lost", cut, lost)
	case err == nil:
		s.answered++
	case errors.Is(err, leadership.OutcomeUnknown):
		s.unknown++
	case errors.Is(err, leadership.StoreUnavailable):
		s.undone++
	default:
		s.t.Errorf("%+v: its caller was told: %v", cut, err)
	}
}
