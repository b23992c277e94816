package kubernetes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	door "regent/httpapi/kubernetes"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/test/checker"
)

// chance draws what goes wrong.
type chance struct {
	mu   sync.Mutex // guards from
	from *rand.Rand
}

func newChance(seed uint64) *chance { return &chance{from: rand.New(rand.NewPCG(seed, seed))} }

// of reports whether something happens that has this probability.
func (c *chance) of(p float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.from.Float64() < p
}

// upTo returns a time from a microsecond to d.
func (c *chance) upTo(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Microsecond + time.Duration(c.from.Int64N(int64(max(d, 1))))
}

// about returns a time with the mean d, which may be much longer.
func (c *chance) about(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.from.ExpFloat64() * float64(d))
}

func pick[T any](c *chance, all []T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return all[c.from.IntN(len(all))]
}

// election is the one that all electors of this package's proofs want to lead, default/jobs.
const election leadership.Election = "k8s.default.jobs"

// fleet is two instances on one store, and what they have answered. Nothing tells an instance of
// the other one's changes, so what they answer from memory may be some seconds old.
type fleet struct {
	*testing.T
	start time.Time
	store *memory.Store
	at    [2]backend

	mu       sync.Mutex // guards all below
	calls    []checker.Call
	holders  map[leadership.Token]string // as told by the replies to writes
	refusals map[int]int                 // of writes, by their status
	trace    []string                    // of all requests
}

// backend is where an instance serves.
type backend struct {
	mu      sync.Mutex
	handler http.Handler // nil while it is down
	service *instance.Instance
	stop    func()
}

// ahead is how far the store's clock is ahead of that of the electors. It makes no difference.
const ahead = -400 * 24 * time.Hour

// newFleet starts a fleet, in a bubble of synctest.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, start: time.Now(), holders: map[leadership.Token]string{}, refusals: map[int]int{}}
	f.store = memory.New(memory.Config{Now: func() time.Time { return time.Now().Add(ahead).Truncate(time.Microsecond) }})
	for n := range f.at {
		f.begin(n)
	}
	t.Cleanup(func() {
		for n := range f.at {
			f.end(n)
		}
	})
	return f
}

func (f *fleet) now() time.Duration { return time.Since(f.start) }

// begin starts an instance, which knows nothing.
func (f *fleet) begin(n int) {
	f.Helper()
	i, err := instance.New(instance.Config{Store: f.store, Journal: f.store, Now: f.now})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); i.Run(ctx) }()
	d := door.New(door.Config{Service: i, Secret: func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, f.store) }})
	b := &f.at[n]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.service, b.stop = i, func() { cancel(); <-ran }
	b.handler = httpapi.New(httpapi.Config{Service: i, Doors: map[string]httpapi.Door{door.Path: {Handler: d, Refuse: door.Refuse}}})
}

// end stops an instance, if it serves.
func (f *fleet) end(n int) {
	b := &f.at[n]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handler != nil {
		b.stop()
		b.handler = nil
	}
}

var errRefused = errors.New("connection refused")

// serve lets an instance answer a request, and records what it answers to a write.
func (f *fleet) serve(n int, r *http.Request, body []byte) outcome {
	b := &f.at[n]
	b.mu.Lock()
	handler := b.handler
	b.mu.Unlock()
	if handler == nil {
		return outcome{err: errRefused}
	}
	r = r.Clone(context.Background()) // what has been sent arrives, though its sender gives up
	r.Body, r.RequestURI, r.RemoteAddr, r.Host = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI(), "127.0.0.1:1", r.URL.Host
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	f.note(n, r, body, w)
	if strings.HasPrefix(r.URL.Path, door.Path) && (r.Method == http.MethodPut || r.Method == http.MethodPost) {
		f.wrote(w.Code, w.Body.Bytes(), f.now(), f.now())
	}
	response := w.Result()
	response.Request = r
	return outcome{response: response, body: w.Body.Bytes()}
}

// outcome is what came of a request.
type outcome struct {
	response *http.Response
	body     []byte
	err      error
}

// note keeps a line about a request, for the file that an hour leaves if it fails.
func (f *fleet) note(n int, r *http.Request, body []byte, w *httptest.ResponseRecorder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = append(f.trace, fmt.Sprintf("%v instance %d: %s %s %q: %d %s", f.now(), n, r.Header.Get("From"), r.Method, body, w.Code, w.Body))
}

// wrote records the answer to a write.
func (f *fleet) wrote(status int, body []byte, asked, answered time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if status >= 300 {
		f.refusals[status]++
		return
	}
	l, token := f.read(body)
	holder := *l.Spec.HolderIdentity
	if before, known := f.holders[token]; known && holder != "" && before != holder {
		f.Errorf("token %d was told to %q and to %q", token, before, holder)
	}
	if holder != "" {
		f.holders[token] = holder
	}
	f.calls = append(f.calls, callOf(&l, token, asked, answered))
}

// callOf is the call that was answered with a Lease. The holder's name stands for its key.
func callOf(l *coordination.Lease, token leadership.Token, asked, answered time.Duration) checker.Call {
	holder := *l.Spec.HolderIdentity
	c := checker.Call{Caller: holder, Verb: checker.Release, Election: election, Candidate: leadership.CandidateID(holder), Token: token, Asked: asked, Answered: answered}
	c.Answer = &leadership.Lease{Election: election, State: leadership.Vacant, Token: token, LeaseDuration: time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second}
	if holder == "" {
		return c
	}
	c.Verb = checker.Renew
	if l.Spec.AcquireTime.Equal(l.Spec.RenewTime) {
		c.Verb = checker.Acquire
	}
	c.Key = sha256.Sum256([]byte(holder))
	c.Answer.State, c.Answer.LeaderID = leadership.Held, c.Candidate
	c.Answer.AcquiredAt, c.Answer.LastHeartbeat = l.Spec.AcquireTime.Time, l.Spec.RenewTime.Time
	c.Answer.LeaseExpiration = c.Answer.LastHeartbeat.Add(c.Answer.LeaseDuration)
	return c
}

// read reads a Lease and its token, which it has twice.
func (f *fleet) read(body []byte) (l coordination.Lease, token leadership.Token) {
	if err := json.Unmarshal(body, &l); err != nil {
		f.Errorf("%v in %s", err, body)
		return l, 0
	}
	token, err := tokenOf(&l)
	if err != nil {
		f.Error(err)
	}
	return l, token
}

// history is what the store says has happened.
func (f *fleet) history() (all []leadership.Event) {
	f.Helper()
	for {
		page, err := service.New(f.store).Events(context.Background(), leadership.EventsRequest{Election: election, After: leadership.Revision(len(all)), Limit: leadership.MaxPageSize})
		require.NoError(f, err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// weather is what happens to the requests on a link, by their probabilities.
type weather struct {
	lostRequest, lostReply, reset, twice float64
	late                                 time.Duration // a request, and a reply, is under way for so long at most
}

// weathers are the ways in which a network is bad.
var weathers = []weather{
	{late: 5 * time.Millisecond, lostRequest: 1},
	{late: 5 * time.Millisecond, lostRequest: 0.6},
	{late: 5 * time.Millisecond, lostReply: 1},
	{late: 5 * time.Millisecond, lostReply: 0.6},
	{late: 6 * time.Second},
	{late: 2 * time.Second, twice: 0.7},
	{late: 100 * time.Millisecond, reset: 0.6},
	{late: 3 * time.Second, lostRequest: 0.2, lostReply: 0.2, reset: 0.2, twice: 0.2},
}

// calm is a network on which nothing goes wrong.
var calm = weather{late: 5 * time.Millisecond}

// link carries an elector's requests to the instances. It is the elector's http.RoundTripper.
type link struct {
	*fleet
	*chance
	elector *elector

	mu sync.Mutex // guards now
	weather
}

func (l *link) set(w weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather = w
}

var (
	errReset = errors.New("connection reset by peer")
	errDead  = errors.New("the process has ended")
)

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if !l.elector.awake() {
		return nil, errDead
	}
	r.Header.Set("From", fmt.Sprintf("%s sent at %v", l.elector.name, l.now())) // for the trace
	l.mu.Lock()
	w := l.weather
	l.mu.Unlock()
	came := make(chan outcome, 3)
	reset, lostReply := l.of(w.reset), l.of(w.lostReply)
	send := func(after time.Duration) {
		time.Sleep(after)
		o := l.serve(l.instance(), r, body)
		time.Sleep(l.upTo(w.late))
		switch {
		case reset:
			came <- outcome{err: errReset} // it may have been done
		case !lostReply:
			came <- o
		}
	}
	switch {
	case reset && l.of(0.5):
		return nil, errReset // before it was sent
	case !l.of(w.lostRequest):
		go send(l.upTo(w.late))
	}
	if l.of(w.twice) {
		go send(l.upTo(30 * time.Second)) // another copy of it arrives, perhaps much later
	}
	var first outcome
	select {
	case first = <-came:
	case <-r.Context().Done():
		first.err = context.Cause(r.Context())
	case <-time.After(time.Minute):
		first.err = errReset
	}
	if !l.elector.awake() {
		return nil, errDead
	}
	// An elector that was paused looks at its clock first.
	if err := context.Cause(r.Context()); err != nil && l.elector.careful {
		return nil, err
	}
	if r := first.response; r != nil && r.StatusCode < 300 {
		_, token := l.read(first.body)
		l.elector.hear(token)
	}
	return first.response, first.err
}

// CancelRequest does nothing: the context of a request does.
func (l *link) CancelRequest(*http.Request) {}

// instance picks one, as a load balancer does: it mostly serves.
func (l *link) instance() int {
	n := 0
	if l.of(0.5) {
		n = 1
	}
	b := &l.at[n]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handler == nil && l.of(0.8) {
		n = 1 - n
	}
	return n
}
