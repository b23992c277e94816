package test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/leadership/wire"
	ram "regent/store/memory"
	"regent/test/machine"
	"regent/test/proxy"
)

// step is a call about an election.
type step func(context.Context, *client.Client, leadership.Election) (leadership.Lease, error)

// keyOf is the key of a candidate, the same for each call of it.
func keyOf(c leadership.CandidateID) (k leadership.Key) {
	copy(k[:], c)
	return k
}

func acquires(who leadership.CandidateID) step {
	return func(ctx context.Context, c *client.Client, e leadership.Election) (leadership.Lease, error) {
		g, err := c.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: who, Key: new(keyOf(who)), LeaseDuration: time.Hour})
		return g.Lease, err
	}
}

// first names the first lease of an election, which ann was granted.
func first(e leadership.Election) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: keyOf("ann"), Token: 1}
}

func renews(ctx context.Context, c *client.Client, e leadership.Election) (leadership.Lease, error) {
	return c.Renew(ctx, first(e))
}

func releases(ctx context.Context, c *client.Client, e leadership.Election) (leadership.Lease, error) {
	return c.Do(ctx, leadership.Release{LeaseRequest: first(e)})
}

func configures(at leadership.Revision) step {
	return func(ctx context.Context, c *client.Client, e leadership.Election) (leadership.Lease, error) {
		return c.Do(ctx, leadership.Configure{Election: e, Config: leadership.Config{LockDelay: time.Minute}, IfRevision: at})
	}
}

func deletes(ctx context.Context, c *client.Client, e leadership.Election) (leadership.Lease, error) {
	return c.Do(ctx, leadership.Delete{Election: e, Force: true, IfRevision: 1})
}

// Each mutation, with its request and its reply cut at every so many bytes, on a new connection and
// on one that has carried another call, and then the same call again: the election's state and the
// caller's answer must be those of a single call. Half a request does nothing, and no caller is
// told more than it can know.
func TestACallCutAnywhereAndRepeatedIsDoneOnce(t *testing.T) {
	for _, m := range []struct {
		name   string
		before step // nil for nothing
		call   step
	}{
		{"acquire", nil, acquires("ann")},
		{"renew", acquires("ann"), renews},
		{"release", acquires("ann"), releases},
		{"configure", nil, configures(0)},
		{"configure while it is led", acquires("ann"), configures(1)},
		{"delete", acquires("ann"), deletes},
	} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s; second call: %t", m.name, kept), func(t *testing.T) {
				t.Parallel()
				s := newSweep(t, m.before, m.call, kept)
				for _, reset := range []bool{false, true} {
					for way, size := range s.sizes {
						for n := 1; n <= size; n += machine.Size(37, 1) {
							s.trial(proxy.Cut{Way: proxy.Way(way), After: n, Reset: reset})
						}
						s.trial(proxy.Cut{Way: proxy.Way(way), After: size, Reset: reset})
					}
				}
				if s.told[leadership.OutcomeUnknown] == 0 {
					t.Errorf("no outcome was unknown: %v", s.told)
				}
			})
		}
	}
}

// sweep cuts one mutation again and again, each time with a new election.
type sweep struct {
	*testing.T
	before, call step
	kept         bool // the connection has carried another call before
	healthy      *client.Client
	doomed       *client.Client // through the cutter
	conns        *http.Transport
	cutter       *proxy.Cutter

	trials         int
	carried, sizes [2]int // bytes each way: of the other call, and of this one
	untouched      string // how the election stands without the call
	once           string // and with it
	answer         string // of a single call
	told           map[leadership.Code]int
}

// newSweep returns a sweep that knows the outcome of the call when nothing is cut.
func newSweep(t *testing.T, before, call step, kept bool) *sweep {
	t.Helper()
	address := host(t, ram.New(ram.Config{}))
	s := &sweep{T: t, before: before, call: call, kept: kept, healthy: clientOf(t, address), cutter: proxy.NewCutter(t, address), told: map[leadership.Code]int{}}
	s.conns = &http.Transport{MaxConnsPerHost: 1} // which the cutter is for
	var err error
	if s.doomed, err = client.New(client.Config{Server: "http://" + s.cutter.Addr(), HTTP: &http.Client{Transport: s.conns}}); err != nil {
		t.Fatal(err)
	}
	s.untouched = s.look(s.prepare())
	passage := s.cutter.Next(proxy.Cut{After: -1})
	s.doomed.Get(t.Context(), "never-seen")
	s.conns.CloseIdleConnections()
	if passage.Wait(); kept {
		s.carried = [2]int{passage.Passed(proxy.Request), passage.Passed(proxy.Reply)}
	}
	e := s.prepare()
	passage, lease, err := s.over(proxy.Cut{After: -1}, e)
	if err != nil {
		t.Fatalf("over a line that is not cut: %v", err)
	}
	for way := range s.sizes {
		s.sizes[way] = passage.Passed(proxy.Way(way)) - s.carried[way]
	}
	s.answer, s.once = plainly(lease), s.look(e)
	return s
}

// prepare brings a new election to the state that the call expects.
func (s *sweep) prepare() leadership.Election {
	s.Helper()
	s.trials++
	e := leadership.Election(fmt.Sprintf("e%05d", s.trials))
	if s.before != nil {
		if _, err := s.before(s.Context(), s.healthy, e); err != nil {
			s.Fatalf("before the call: %v", err)
		}
	}
	return e
}

// over makes the call over a connection that is cut.
func (s *sweep) over(cut proxy.Cut, e leadership.Election) (*proxy.Connection, leadership.Lease, error) {
	s.Helper()
	if cut.After >= 0 {
		cut.After += s.carried[cut.Way]
	}
	passage := s.cutter.Next(cut)
	if s.kept {
		s.doomed.Get(s.Context(), "never-seen")
	}
	lease, err := s.call(s.Context(), s.doomed, e)
	s.conns.CloseIdleConnections()
	passage.Wait()
	return passage, lease, err
}

// trial makes the call over a connection that is cut, looks, repeats the call, and looks again.
func (s *sweep) trial(cut proxy.Cut) {
	s.Helper()
	e := s.prepare()
	passage, _, err := s.over(cut, e)
	state, lost := s.look(e), passage.Dropped(proxy.Request)+passage.Dropped(proxy.Reply)
	code, _ := errors.AsType[leadership.Code](err)
	s.told[code]++
	switch {
	case err == nil && lost > 0:
		s.Errorf("%+v: it was answered though %d bytes were lost", cut, lost)
	case err != nil && code != leadership.OutcomeUnknown && code != leadership.StoreUnavailable:
		s.Errorf("%+v: its caller was told: %v", cut, err)
	case code == leadership.StoreUnavailable && state != s.untouched:
		s.Errorf("%+v: its caller was told that nothing was done, and now there is %s", cut, state)
	case cut.Way == proxy.Request && cut.After < s.sizes[proxy.Request] && state != s.untouched:
		s.Errorf("%+v: half a request has led to %s", cut, state)
	case state != s.untouched && state != s.once && !cut.Reset: // after a reset the server may be at it still
		s.Errorf("%+v: neither done nor not done: %s", cut, state)
	}
	lease, err := s.call(s.Context(), s.healthy, e)
	if answer := plainly(lease); err != nil || answer != s.answer {
		s.Errorf("%+v: the same call again is told %s, %v; want %s", cut, answer, err, s.answer)
	}
	if state := s.look(e); state != s.once {
		s.Errorf("%+v: after the same call again there is %s, want %s", cut, state, s.once)
	}
}

// look reads the history and the state of an election, past the cache.
func (s *sweep) look(e leadership.Election) string {
	s.Helper()
	var words []string
	events, err := s.healthy.Events(s.Context(), leadership.EventsRequest{Election: e})
	if err != nil && !errors.Is(err, leadership.NotFound) {
		s.Errorf("the history of %s: %v", e, err)
	}
	for _, event := range events {
		words = append(words, fmt.Sprintf("%s %d", event.Type, event.Token))
	}
	lease, err := s.healthy.Get(s.Context(), e)
	code, _ := errors.AsType[leadership.Code](err)
	return fmt.Sprintf("%s: %s%s", strings.Join(words, ", "), plainly(lease), code)
}

// plainly describes the lease without what differs from trial to trial: times and keys.
func plainly(l leadership.Lease) string {
	return fmt.Sprintf("%s, led by %q with token %d, at revision %d, lock delay %v", l.State, l.LeaderID, l.Token, l.Revision, l.Config.LockDelay)
}

// host lets an instance in this process serve a store, and returns its address.
func host(t testing.TB, leases service.Store) (address string) {
	t.Helper()
	inst, err := instance.New(instance.Config{Store: leases, Name: "regent-test", Alone: true})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
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
	return listener.Addr().String()
}

func clientOf(t testing.TB, address string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Server: "http://" + address})
	require.NoError(t, err)
	return c
}
