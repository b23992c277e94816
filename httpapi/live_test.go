package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

// live is an instance behind a real server.
type live struct {
	t        *testing.T
	instance *instance.Instance
	clock    *clock
	url      string
	client   *http.Client
	waiting  entrances
}

// entrances is a gate that sends the verb of each call that enters to wait.
type entrances chan wire.Verb

// Enter implements instance.Gate.
func (e entrances) Enter(_ context.Context, op instance.Op) (func(error), error) {
	if op.Waits {
		e <- op.Verb
	}
	return nil, nil
}

// newLive serves an empty store, with an API configured by c.
func newLive(t *testing.T, c httpapi.Config) *live {
	t.Helper()
	clock := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	return newLiveOn(t, c, newInstance(t, memory.New(memory.Config{Now: clock.Now}), clock), clock)
}

// newLiveOn is newLive on an instance with that clock.
func newLiveOn(t *testing.T, c httpapi.Config, inst *instance.Instance, clock *clock) *live {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		inst.Run(ctx)
	}()
	waiting := make(entrances, 1000)
	c.Service = instance.Guard(inst, waiting)
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpapi.Server(httpapi.New(c), nil)
	server.Listener = small{server.Listener}
	server.Start()
	t.Cleanup(func() {
		inst.Drain(ctx, wire.Draining)
		server.Close()
		cancel()
		<-ended
	})
	return &live{t, inst, clock, server.URL, newClient(t), waiting}
}

func newClient(t *testing.T) *http.Client {
	return &http.Client{Transport: apitest.New(t).Transport(&http.Transport{ReadBufferSize: 512, DialContext: dialSmall})}
}

// lead makes the candidate the leader of planner. It returns what names its lease.
func (l *live) lead(candidate leadership.CandidateID) leadership.LeaseRequest {
	l.t.Helper()
	g, err := l.instance.Acquire(l.t.Context(), leadership.AcquireRequest{Election: "planner", CandidateID: candidate})
	require.NoError(l.t, err)
	return leadership.LeaseRequest{Election: "planner", CandidateID: candidate, Key: g.Key, Token: g.Token}
}

func (l *live) release(r leadership.LeaseRequest) {
	l.t.Helper()
	if _, err := l.instance.Do(l.t.Context(), leadership.Release{LeaseRequest: r}); err != nil {
		l.t.Fatal(err)
	}
}

// open sends a request and returns the reply, whose body may go on; headers are names and values in
// turn.
func (l *live) open(method, path, body string, headers ...string) *http.Response {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(body))
	require.NoError(l.t, err)
	if body != "" {
		request.Header.Set("Content-Type", wire.ContentType)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := l.client.Do(request)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { response.Body.Close() })
	return response
}

// told is an event that was read from a stream.
type told struct {
	name, id, data string
}

// reader reads a stream.
type reader struct {
	t *testing.T
	*bufio.Scanner
	response *http.Response
}

func (l *live) stream(path string, headers ...string) reader {
	l.t.Helper()
	response := l.open("GET", path, "", append(headers, "Accept", wire.StreamType)...)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != wire.StreamType {
		l.t.Fatalf("%s: %s, %v", path, response.Status, response.Header)
	}
	return reader{l.t, bufio.NewScanner(response.Body), response}
}

// next returns the next event, and ok false at the end of the stream. Comments are skipped.
func (r reader) next() (e told, ok bool) {
	r.t.Helper()
	for r.Scan() {
		name, value, _ := strings.Cut(r.Text(), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if e.data != "" {
				return e, true
			}
		}
	}
	return e, false
}

// want reads the next event and compares its name, its id and a part of its data.
func (r reader) want(name, id, part string) {
	r.t.Helper()
	if e, ok := r.next(); !ok || e.name != name || e.id != id || !strings.Contains(e.data, part) {
		r.t.Errorf("got %+v, %t; want %q with id %q and %s", e, ok, name, id, part)
	}
}

func TestAStreamBeginsWithASnapshotAndContinuesWithEvents(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	lease := l.lead("ann")
	s := l.stream("/v1/elections/planner/events")
	s.want("snapshot", "1", `"leaderId":"ann"`)
	l.release(lease)
	s.want("", "2", `"type":"released"`)
	l.lead("bob")
	s.want("", "3", `"leaderId":"bob"`)
}

func TestAStreamTellsOfReportsWithoutAnID(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	lease := l.lead("ann")
	s := l.stream("/v1/elections/planner/events")
	s.want("snapshot", "1", `"leaderId":"ann"`)
	resumed := l.stream("/v1/elections/planner/events?after=1")
	lease.Report = []byte(`{"progress": 7, "custom": {"x": "<y>"}}`)
	if _, err := l.instance.Renew(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	const want = `{"report":{"progress":7,"custom":{"x":"<y>"}},"reportedAt":"2027-03-01T12:00:00Z","fencingToken":1}`
	for _, s := range []reader{s, resumed} {
		s.want("report", "", want)
	}
	l.release(lease)
	s.want("", "2", `"type":"released"`)
}

// tells reads until the stream reports this change of a member, who may be the leader.
func (r reader) tells(data string) {
	r.t.Helper()
	for {
		switch e, ok := r.next(); {
		case !ok || e.name != "member" || e.id != "":
			r.t.Fatalf("got %+v, %t; want members, and %s among them", e, ok, data)
		case e.data == data:
			return
		}
	}
}

func TestAStreamTellsOfMembersWithoutAnID(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	l.lead("ann")
	s := l.stream("/v1/elections/planner/events")
	s.want("snapshot", "1", `"leaderId":"ann"`)
	follower := l.stream("/v1/elections/planner/events?member=bob")
	follower.want("snapshot", "1", `"leaderId":"ann"`)
	s.tells(`{"id":"bob","role":"follower","change":"joined","term":1}`)
	l.open("POST", "/v1/elections/planner:join", `{"candidateId":"cy","role":"worker","ttl":"30s"}`)
	for _, s := range []reader{s, follower} {
		s.tells(`{"id":"cy","role":"worker","change":"joined"}`)
	}
	acknowledged := func(want string) {
		t.Helper()
		var a leadership.Acknowledgement
		require.NoError(t, json.NewDecoder(l.open("POST", "/v1/elections/planner:awaitAcknowledgement", `{"fencingToken":1,"need":1}`).Body).Decode(&a))
		if got := fmt.Sprint(a.Done, a.Follow, a.Missing); got != want {
			t.Errorf("who follows: %s, want %s", got, want)
		}
	}
	acknowledged("true [bob] [cy]")
	var members wire.Members
	require.NoError(t, json.NewDecoder(l.open("GET", "/v1/elections/planner/members", "").Body).Decode(&members))
	if members.ClusterSize != 3 || members.Leader != "ann" || members.Term != 1 || members.Nodes[1].ID != "bob" || members.Nodes[1].Role != leadership.RoleFollower {
		t.Errorf("the members are %+v", members)
	}
	l.open("POST", "/v1/elections/planner:leave", `{"candidateId":"cy"}`)
	s.tells(`{"id":"cy","role":"worker","change":"left"}`)
	acknowledged("true [bob] []")
}

func TestAStreamResumesWithoutAGap(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	for range 3 {
		l.release(l.lead("ann"))
	}
	for _, s := range []reader{
		l.stream("/v1/elections/planner/events?after=4"),
		l.stream("/v1/elections/planner/events?after=1", "Last-Event-ID", "4"),
	} {
		s.want("", "5", `"type":"acquired"`)
		s.want("", "6", `"type":"released"`)
	}
}

func TestAStreamEndsWithACursor(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{StreamLimit: time.Second})
	lease := l.lead("ann")
	s := l.stream("/v1/elections/planner/events")
	s.want("snapshot", "1", "ann")
	s.want("end", "1", `{"reason":"limit"}`)
	if e, more := s.next(); more {
		t.Errorf("after the end came %+v", e)
	}
	l.release(lease)
	l.stream("/v1/elections/planner/events", "Last-Event-ID", "1").want("", "2", "released")
}

func TestAServiceThatDrainsEndsStreamsAndWaits(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	l.lead("ann")
	one, all := l.stream("/v1/elections/planner/events"), l.stream("/v1/events")
	one.want("snapshot", "1", "ann")
	all.want("snapshot", "", "ann")
	ready, _ := all.next()
	waits := make(chan *http.Response, 2)
	go func() {
		waits <- l.open("POST", "/v1/elections/planner:acquire", `{"candidateId":"bob","wait":"60s"}`)
	}()
	go func() {
		waits <- l.open("GET", "/v1/elections/planner?wait=60s", "", "If-None-Match", `"1"`)
	}()
	l.untilInLine("bob", true)
	l.untilWaiting(wire.VerbRead)
	l.instance.Drain(t.Context(), wire.Draining)
	one.want("end", "1", "draining")
	all.want("end", ready.id, "draining")
	for range 2 {
		if w := <-waits; w.StatusCode != http.StatusServiceUnavailable || w.Header.Get("Retry-After") == "" {
			t.Errorf("who waits is told %s, %v", w.Status, w.Header)
		}
	}
}

// untilWaiting blocks until a call of the verb has entered the service.
func (l *live) untilWaiting(verb wire.Verb) {
	for <-l.waiting != verb {
	}
}

func TestADisconnectedWaiterIsNeverGrantedALease(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	lease := l.lead("ann")
	here, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(here, "POST", l.url+"/v1/elections/planner:acquire", strings.NewReader(`{"candidateId":"bob","wait":"60s"}`))
	require.NoError(t, err)
	request.Header.Set("Content-Type", wire.ContentType)
	gone := make(chan error)
	go func() {
		_, err := l.client.Do(request)
		gone <- err
	}()
	l.untilInLine("bob", true)
	leave()
	if err := <-gone; err == nil {
		t.Fatal("a call that was cut off had an answer")
	}
	l.untilInLine("bob", false)
	l.release(lease)
	if next, err := l.instance.Get(t.Context(), "planner"); err != nil || next.State != leadership.Vacant {
		t.Errorf("%+v, %v", next, err)
	}
}

// untilInLine blocks until the candidate stands in planner's line, or no longer does.
func (l *live) untilInLine(candidate leadership.CandidateID, stands bool) {
	l.t.Helper()
	for {
		x, err := l.instance.Explain(l.t.Context(), leadership.ExplainRequest{Election: "planner", CandidateID: candidate})
		require.NoError(l.t, err)
		if slices.ContainsFunc(x.Causes, func(c leadership.Cause) bool { return c.Code == leadership.ReasonInLine }) == stands {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAStreamOfAllElectionsBeginsWithSnapshotsAndContinuesWithEvents(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	lease := l.lead("ann")
	if _, err := l.instance.Do(t.Context(), leadership.Configure{Election: "other"}); err != nil {
		t.Fatal(err)
	}
	s := l.stream("/v1/events")
	s.want("snapshot", "", `"election":"planner"`) // those that have a leader come first
	s.want("snapshot", "", `"election":"other"`)
	ready, _ := s.next()
	if ready.name != "ready" || ready.id == "" || ready.data != `{"elections":2}` {
		t.Errorf("after the snapshots came %+v", ready)
	}
	l.release(lease)
	released, _ := s.next()
	if released.name != "" || released.id == "" || !strings.Contains(released.data, `"type":"released"`) {
		t.Errorf("then came %+v", released)
	}
	// After a cursor nothing is missing, but events from before may come again.
	again := l.stream("/v1/events?prefix=pl", "Last-Event-ID", ready.id)
	for {
		var e wire.Event
		next, ok := again.next()
		if err := json.Unmarshal([]byte(next.data), &e); !ok || err != nil || e.Election != "planner" {
			t.Fatalf("resumed, got %+v", next)
		}
		if e.Revision == 2 {
			return
		}
	}
}

func TestAStreamOfAnElectionAndItsSeatsHasNoOthers(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	acquire := func(e, c string) leadership.Grant {
		g, err := l.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: leadership.Election(e), CandidateID: leadership.CandidateID(c)})
		require.NoError(t, err)
		return g
	}
	seats := func(n int) {
		if _, err := l.instance.Do(t.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: n}}); err != nil {
			t.Fatal(err)
		}
	}
	seats(1)
	acquire("gpu.other", "ann")
	acquire("gpux", "ann")
	first := acquire("gpu", "ann")
	s := l.stream("/v1/events?of=gpu")
	s.want("snapshot", "", `"election":"gpu"`)
	s.want("snapshot", "", `"election":"gpu.1"`)
	ready, _ := s.next()
	if ready.name != "ready" || ready.data != `{"elections":2}` {
		t.Fatalf("after the snapshots came %+v", ready)
	}
	seats(2) // a seat that comes while the stream is open is part of it
	acquire("gpu.others", "bob")
	second := acquire("gpu", "bob")
	seats(1) // so is one that has gone, while its leader leads on
	for _, g := range []leadership.Grant{second, first} {
		if _, err := l.instance.Do(t.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(s reader) (all []string) {
		for len(all) == 0 || all[len(all)-1] != "gpu.1 released" {
			var e wire.Event
			next, ok := s.next()
			if err := json.Unmarshal([]byte(next.data), &e); !ok || err != nil {
				t.Fatalf("got %+v", next)
			}
			all = append(all, fmt.Sprint(e.Election, " ", e.Type))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	got := told(s)
	if !slices.Contains(got, "gpu.2 released") || !slices.Contains(got, "gpu configured") || slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "gpu.other") }) {
		t.Errorf("the stream tells %q", got)
	}
	again := told(l.stream("/v1/events?of=gpu", "Last-Event-ID", ready.id))
	for _, what := range got {
		if !slices.Contains(again, what) {
			t.Errorf("the stream that resumes tells %q, and lacks %q", again, what)
		}
	}
}

func TestASilentStreamSendsPings(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{PingInterval: time.Millisecond})
	s := l.stream("/v1/elections/planner/events")
	for s.Scan() {
		if s.Text() == ": ping" {
			return
		}
	}
	t.Error("the stream ended")
}

func TestAReaderThatStopsReadingIsDisconnected(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{StallTimeout: 50 * time.Millisecond})
	lease := l.lead("ann")
	s := l.stream("/v1/elections/planner/events")
	s.want("snapshot", "1", "ann")
	for i := range 5000 {
		r := leadership.AcquireRequest{Election: "planner", CandidateID: "ann", Key: &lease.Key, Metadata: fmt.Appendf(nil, `{"n":%d}`, i)}
		if _, err := l.instance.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for e, ok := s.next(); ok; e, ok = s.next() {
		if e.id == "5001" {
			t.Fatal("the stream held on for as long as its reader wanted")
		}
	}
}

// small is a listener whose connections have small buffers for unread data.
type small struct{ net.Listener }

func dialSmall(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err == nil {
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	return c, err
}

func (s small) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil {
		c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

func TestHeadOfAStreamHasNoBody(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	r := l.open("HEAD", "/v1/elections/planner/events", "", "Accept", wire.StreamType)
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != wire.StreamType {
		t.Errorf("%s, %v", r.Status, r.Header)
	}
}

func TestALongPollIsAnsweredWithTheChange(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	lease := l.lead("ann")
	answered := make(chan *http.Response, 1)
	go func() {
		answered <- l.open("GET", "/v1/elections/planner?wait=60s", "", "If-None-Match", `"1"`)
	}()
	l.untilWaiting(wire.VerbRead)
	l.release(lease)
	r := <-answered
	var w wire.Lease
	if err := json.NewDecoder(r.Body).Decode(&w); err != nil || w.Revision != 2 || w.State != leadership.Vacant || r.Header.Get("ETag") != `"2"` {
		t.Errorf("%s %+v, %v", r.Status, w, err)
	}
}

func TestALongPollWithoutAChangeIsNotModified(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	l.release(l.lead("ann"))
	r := l.open("GET", "/v1/elections/planner?wait=50ms", "", "If-None-Match", `"2"`)
	if r.StatusCode != http.StatusNotModified || r.Header.Get("ETag") != `"2"` {
		t.Errorf("%s, %v", r.Status, r.Header)
	}
}

func TestAReadSaysHowOldItMayBe(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	w.do("GET", "/v1/elections/planner", "")
	w.clock.Advance(1500 * time.Millisecond)
	a := w.do("GET", "/v1/elections/planner", "")
	if l := a.lease(t); a.header.Get("Age") != "2" || l.MaxStalenessMs != 5000 || *l.ExpiresInMs != 28_500 {
		t.Errorf("Age %s of %s", a.header.Get("Age"), a.body)
	}
	strong := w.do("GET", "/v1/elections/planner?consistency=strong", "")
	if l := strong.lease(t); strong.header.Get("Age") != "" || l.MaxStalenessMs != 0 {
		t.Errorf("Age %s of %s", strong.header.Get("Age"), strong.body)
	}
}

func TestAnElectionCanBeWatchedBeforeItExistsAndOnceItIsDeleted(t *testing.T) {
	t.Parallel()
	l := newLive(t, httpapi.Config{})
	s := l.stream("/v1/elections/planner/events")
	l.release(l.lead("ann"))
	s.want("", "1", `"type":"acquired"`)
	if _, err := l.instance.Do(t.Context(), leadership.Delete{Election: "planner"}); err != nil {
		t.Fatal(err)
	}
	l.stream("/v1/elections/planner/events").want("snapshot", "3", `"deleted":true`)
}
