package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/checker"
	"regent/test/process"
	"regent/test/proxy"
)

// killed is a regent that is killed and started again on the same store and address.
type killed struct {
	*process.Process
	t              *testing.T
	store, address string
}

func newProcess(t *testing.T) *killed {
	t.Helper()
	address, err := process.Address()
	if err != nil {
		t.Fatal(err)
	}
	p := &killed{t: t, store: "file:" + filepath.Join(t.TempDir(), "store"), address: address}
	p.begin()
	return p
}

// begin starts the process, and waits until it serves.
func (p *killed) begin() {
	p.t.Helper()
	p.Process = process.Serve(p.t, process.Regent.Command(p.t, "serve", "--kubernetes", "--store", p.store, "--listen", p.address))
}

// heard is a transport that records what an elector hears.
type heard struct {
	*elector
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (h heard) RoundTrip(r *http.Request) (*http.Response, error) {
	writes := r.Method == http.MethodPut || r.Method == http.MethodPost
	var holder string
	if writes {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var l coordination.Lease
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &l); err != nil {
			h.Error(err)
		}
		holder = *l.Spec.HolderIdentity
	}
	asked := h.now()
	response, err := h.RoundTripper.RoundTrip(r)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(response.Body)
		response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(body))
	}
	switch {
	case writes && (err != nil || response.StatusCode >= http.StatusInternalServerError):
		h.fleet.mu.Lock()
		defer h.fleet.mu.Unlock()
		h.calls = append(h.calls, checker.Call{Caller: holder, Verb: checker.Acquire, Election: election, Candidate: leadership.CandidateID(holder), Asked: asked, Answered: checker.Forever})
	case writes:
		h.wrote(response.StatusCode, body, asked, h.now())
	}
	if err == nil && response.StatusCode < 300 {
		_, token := h.read(body)
		h.hear(token)
	}
	return response, err
}

// leads waits until an elector that is wanted works, and returns it.
func leads(t *testing.T, wanted func(*elector) bool, electors []*elector) *elector {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for sleep(ctx, 10*time.Millisecond) {
		for _, e := range electors {
			e.mu.Lock()
			works := e.working
			e.mu.Unlock()
			if works && wanted(e) {
				return e
			}
		}
	}
	t.Fatal("no elector leads that should")
	return nil
}

func TestElectorsOfClientGoNeverLeadTogetherBehindABadProxy(t *testing.T) {
	t.Parallel()
	server := newProcess(t)
	f := &fleet{T: t, start: time.Now(), holders: map[leadership.Token]string{}, refusals: map[int]int{}}
	c := newChance(*first)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var electors []*elector
	hops := map[*elector]*proxy.Hop{}
	for _, name := range []string{"ann", "bob"} {
		hop, err := proxy.NewHop(server.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { hop.Close() })
		e := newElector(f, c, name)
		electors, hops[e] = append(electors, e), hop
		// The lease is twice as long as an elector believes in it, so that a busy machine harms
		// nothing.
		is := timing{lease: 6 * time.Second, renew: 2 * time.Second, retry: 300 * time.Millisecond, timeout: 700 * time.Millisecond}
		transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, hop.Addr())
		}}
		t.Cleanup(transport.CloseIdleConnections)
		all.Go(func() { e.process(ctx, never(), heard{e, transport}, is, true, time.Hour) })
	}
	anyone := func(*elector) bool { return true }
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		for _, bad := range []proxy.Conditions{{Lost: [2]bool{true, true}}, {Lost: [2]bool{proxy.Reply: true}}, {Refuse: true}} {
			leader := leads(t, anyone, electors)
			hops[leader].Set(bad)
			if bad.Refuse {
				hops[leader].Reset()
			}
			leads(t, func(e *elector) bool { return e != leader }, electors)
			hops[leader].Heal()
		}
		for _, hop := range hops {
			hop.Set(proxy.Conditions{Latency: 50 * time.Millisecond, Jitter: 300 * time.Millisecond, Seed: *first})
		}
		server.Kill()
		server.begin()
		for _, hop := range hops {
			hop.Reset()
		}
		leads(t, anyone, electors)
		for _, hop := range hops {
			hop.Heal()
		}
	}
	leads(t, anyone, electors)
	for _, e := range electors {
		e.stop() // and then it releases
	}
	cancel()
	all.Wait()
	f.judgeProcess(server, electors)
}

// judgeProcess holds a run on a real server to the promises.
func (f *fleet) judgeProcess(server *killed, electors []*elector) {
	f.Helper()
	api, err := client.New(client.Config{Server: "http://" + server.address})
	if err != nil {
		f.Fatal(err)
	}
	r := f.heard(electors)
	if r.History, err = api.Events(f.Context(), leadership.EventsRequest{Election: election, Limit: leadership.MaxPageSize}); err != nil {
		f.Fatal(err)
	}
	l, err := api.Get(f.Context(), election)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range r.History {
		if holder, known := f.holders[e.Token]; e.Type == leadership.EventAcquired && known && holder != string(e.LeaderID) {
			f.Errorf("token %d is %q's, and the door has told it to %q", e.Token, e.LeaderID, holder)
		}
	}
	// The door's times have whole microseconds, and the clocks of a machine run alike.
	reports := []checker.Report{checker.ME1(r, time.Microsecond), checker.ME2(r, 10*time.Millisecond), checker.FT(r)}
	if err := errors.Join(reports[0].Err(), reports[1].Err(), reports[2].Err()); err != nil {
		f.Error(err)
	}
	f.Logf("%d grants, %d beliefs, %d writes, refused %v", l.Token, len(r.Beliefs), len(r.Calls), f.refusals)
	if l.Token < 4 || len(r.Beliefs) < 4 || reports[0].Checked != int(l.Token) {
		f.Errorf("too little has happened, or the token %d is not that of %d grants", l.Token, reports[0].Checked)
	}
}
