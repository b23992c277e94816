package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/leadership/wire"
	"regent/store/memory"
)

// key is a key, and otherKey another.
const (
	key      = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	otherKey = "AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
)

// clock is a store's clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixture is an API on a store in memory. Every exchange with it is checked against the contract.
type fixture struct {
	t        *testing.T
	handler  http.Handler
	service  *service.Service
	ledger   *service.Ledger
	clock    *clock
	contract *apitest.Contract
	log      *bytes.Buffer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	store := memory.New(memory.Config{Now: c.Now})
	w := newFixtureOn(t, httpapi.Config{Service: newInstance(t, store, c)})
	w.service, w.clock = service.New(store), c
	w.ledger = service.NewLedger(w.service, store)
	return w
}

// newInstance returns the only instance on the store, with the store's clock.
func newInstance(t testing.TB, store service.Store, c *clock) *instance.Instance {
	t.Helper()
	start := c.Now()
	journal, _ := store.(service.Journal)
	i, err := instance.New(instance.Config{Store: store, Journal: journal, Alone: true, Now: func() time.Duration { return c.Now().Sub(start) }})
	require.NoError(t, err)
	return i
}

func newFixtureOn(t *testing.T, c httpapi.Config) *fixture {
	t.Helper()
	w := &fixture{t: t, contract: apitest.New(t), log: new(bytes.Buffer)}
	c.Log = slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.handler = httpapi.New(c)
	return w
}

// answer is a reply.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into reads the reply's body.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

func (a answer) lease(t *testing.T) wire.Lease {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d, want 200: %s", a.status, a.body)
	}
	var l wire.Lease
	a.into(t, &l)
	return l
}

func (a answer) problem(t *testing.T) wire.Problem {
	t.Helper()
	p, err := wire.DecodeProblem(a.body)
	if err != nil {
		t.Fatalf("status %d is no problem (%v): %s", a.status, err, a.body)
	}
	return p
}

// decides are the calls of operators and verifiers, which name a revision.
var decides = regexp.MustCompile(`^(PUT|DELETE|POST) /v1/elections/([a-z0-9._-]+)(:(assign|evict|pause|resume|ban|approve|lift|halt|unhalt|judge))?([?].*)?$`)

// condition returns the condition of an operator that has just read the election.
func (w *fixture) condition(method, target string) (name, value string) {
	call := decides.FindStringSubmatch(method + " " + target)
	if call == nil || w.service == nil || (method == http.MethodPost) != (call[3] != "") {
		return "", ""
	}
	l, err := w.service.Get(w.t.Context(), leadership.Election(call[2]))
	if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Lease != nil { // deleted
		l, err = *refusal.Lease, nil
	}
	if err == nil {
		return "If-Match", wire.ETag(l.Revision)
	}
	if !errors.Is(err, leadership.NotFound) || method == http.MethodPut {
		return "If-None-Match", "*"
	}
	return "If-Match", `"1"`
}

// do sends a request; headers are names and values in turn. A body is JSON unless a header says
// otherwise. Operators' calls name the present revision unless a header says otherwise.
func (w *fixture) do(method, target, body string, headers ...string) answer {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	if body != "" {
		request.Header.Set("Content-Type", wire.ContentType)
	}
	if name, value := w.condition(method, target); name != "" && !slices.Contains(headers, "If-Match") && !slices.Contains(headers, "If-None-Match") {
		request.Header.Set(name, value)
	}
	for i := 0; i < len(headers); i += 2 {
		if request.Header.Del(headers[i]); headers[i+1] != "" {
			for value := range strings.SplitSeq(headers[i+1], "\n") {
				request.Header.Add(headers[i], value)
			}
		}
	}
	return w.send(request, body)
}

func (w *fixture) send(request *http.Request, body string) answer {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	response := recorder.Result()
	text, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	a := answer{response.StatusCode, response.Header, text}
	w.contract.Check(apitest.Exchange{Request: request, RequestBody: []byte(body), Status: a.status, Header: a.header, Body: text})
	if kept := (request.URL.Path == wire.PathSpec || request.URL.Path == wire.PathKeySet) && a.status < 400; !kept && a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		w.t.Errorf("%s %s: headers %v", request.Method, request.URL, a.header)
	}
	return a
}

// state returns the whole content of the store (elections, histories, checkpoints and journals), so
// that a test can check that nothing was changed.
func (w *fixture) state() string {
	w.t.Helper()
	ctx := context.Background()
	page, err := w.service.List(ctx, leadership.ListRequest{})
	require.NoError(w.t, err)
	var histories [][]leadership.Event
	var logs []any
	for _, l := range page.Leases {
		events, err := w.service.Events(ctx, leadership.EventsRequest{Election: l.Election})
		require.NoError(w.t, err)
		histories = append(histories, events)
		checkpoint, err := w.ledger.Checkpoint(ctx, l.Election)
		if err != nil && !errors.Is(err, leadership.NotFound) {
			w.t.Fatal(err)
		}
		journal, err := w.ledger.ReadJournal(ctx, leadership.JournalRequest{Election: l.Election})
		if err != nil && !errors.Is(err, leadership.HistoryCompacted) {
			w.t.Fatal(err)
		}
		logs = append(logs, checkpoint, journal)
	}
	text, err := json.Marshal([]any{page, histories, logs})
	require.NoError(w.t, err)
	return string(text)
}

// acquire makes agent-7 the leader of planner, with key.
func (w *fixture) acquire() wire.Lease {
	w.t.Helper()
	return w.do("POST", "/v1/elections/planner:acquire", `{"candidateId":"agent-7","key":"`+key+`"}`).lease(w.t)
}

// asLeader is the body of a renewal or a release by agent-7.
const asLeader = `{"candidateId":"agent-7","key":"` + key + `","fencingToken":1}`
