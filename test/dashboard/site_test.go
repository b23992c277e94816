package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/httpapi/access/limit"
	"regent/httpapi/dashboard"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/store/memory"
	"regent/store/storetest"
	"regent/test/process"
)

// Keys of two candidates.
const (
	key1 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	key2 = "AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
)

// newClock returns a clock that shows another millisecond each time, so that a browser, which knows
// no smaller unit, sees what was before what.
func newClock() func() time.Time {
	var mu sync.Mutex
	var last time.Time
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if next := last.Add(time.Millisecond); next.After(time.Now()) {
			last = next
		} else {
			last = time.Now()
		}
		return last
	}
}

// site is a server within the test.
type site struct {
	t     *testing.T
	down  atomic.Bool // whether the store is out of reach
	calls storetest.Counter
	url   string
	who   atomic.Pointer[authn.Principal] // of the visitor
	hung  atomic.Pointer[[2]string]       // the method, and the end of the path, of the browser's requests that get no answer
}

var (
	ann = &authn.Principal{Issuer: "i", Subject: "a", Email: "ann@example.com"}
	bob = &authn.Principal{Issuer: "i", Subject: "b", Email: "bob@example.com"}
)

// newSite serves until the end of the test, without access control if there is no access file.
// Every caller is bob, unless the test says otherwise.
func newSite(t *testing.T, access string) *site {
	t.Helper()
	s := &site{t: t}
	store := &storetest.Fake{Store: memory.New(memory.Config{Now: newClock()}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if s.down.Load() {
			return &leadership.Error{Code: leadership.StoreUnavailable, Detail: "the store does not answer"}
		}
		return s.calls.Count(ctx, c, next)
	}}
	inst, err := instance.New(instance.Config{Store: store, Journal: store, Name: "test", Alone: true})
	require.NoError(t, err)
	var gates []instance.Gate
	if access != "" {
		rules, err := authz.ParseAccess([]byte(access), authz.Admitted)
		require.NoError(t, err)
		gates = append(gates, authz.NewGate(func() *authz.Access { return rules }, func(context.Context, authz.Record) {}), limit.New(limit.Config{Limits: rules.Limits}))
		s.who.Store(bob)
	}
	service := instance.Guard(inst, gates...)
	door := httpapi.Door{Handler: dashboard.New(dashboard.Visitor(service))}
	api := httpapi.New(httpapi.Config{
		Service: service, Doors: map[string]httpapi.Door{dashboard.Path: door, "/": door},
		Ready: func(context.Context) (string, error) {
			if s.down.Load() {
				return "", errors.New("the store does not answer")
			}
			return "", nil
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { inst.Run(ctx) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hung := s.hung.Load(); hung != nil && r.Header.Get("Sec-Fetch-Mode") != "" && r.Method == hung[0] && strings.HasSuffix(r.URL.Path, hung[1]) {
			io.Copy(io.Discard, r.Body) // else it is not seen that the browser gives up
			<-r.Context().Done()
			return
		}
		if who := s.who.Load(); who != nil {
			r = r.WithContext(leadership.WithActor(authn.With(r.Context(), *who), who.String()))
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		stop()
		running.Wait()
		server.Close()
	})
	s.url = server.URL
	return s
}

// hang leaves the browser's requests without an answer that have this method and end of the path,
// until the browser gives them up. Without a method the next requests are answered again.
func (s *site) hang(method, end string) { s.hung.Store(&[2]string{method, end}) }

// call makes a call that must succeed.
func (s *site) call(method, path, body string) string {
	s.t.Helper()
	return callAt(s.t, s.url, method, path, body)
}

func (s *site) post(path, body string) string {
	s.t.Helper()
	return s.call(http.MethodPost, path, body)
}

func callAt(t *testing.T, url, method, path, body string) string {
	t.Helper()
	return callOn(t, url, method, path, body, 0)
}

// callOn makes the call; one of an operator at that revision or, if it is refused, at the one that
// the election has.
func callOn(t *testing.T, url, method, path, body string, revision int) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url+"/v1/elections/"+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	switch election := !strings.Contains(path, "/"); {
	case election && revision == 0 && method == http.MethodPut:
		r.Header.Set("If-None-Match", "*")
	case election && method != http.MethodPost, strings.Contains(body, `"reason"`) && strings.Contains(body, `"actor"`):
		r.Header.Set("If-Match", fmt.Sprintf(`"%d"`, max(revision, 1)))
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	var text bytes.Buffer
	text.ReadFrom(answer.Body)
	var is struct{ Revision int }
	if answer.StatusCode == http.StatusPreconditionFailed && json.Unmarshal(text.Bytes(), &is) == nil {
		return callOn(t, url, method, path, body, is.Revision)
	}
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: status %d: %s", method, path, answer.StatusCode, text.String())
	}
	return text.String()
}

// lead lets a candidate lead, for an hour.
func (s *site) lead(election, candidate string) {
	s.t.Helper()
	s.post(election+":acquire", fmt.Sprintf(`{"candidateId":%q,"key":%q,"leaseDuration":"1h"}`, candidate, key1))
}

// as is a body of the leader.
func as(candidate string, token int, more string) string {
	return fmt.Sprintf(`{"candidateId":%q,"key":%q,"fencingToken":%d%s}`, candidate, key1, token, more)
}

// running is a regent that can be stopped and started again on the same store and address.
type running struct {
	*process.Process
	t    *testing.T
	url  string
	args []string
}

// newProcess makes a process, which start starts, on a file of its own and a free port.
func newProcess(t *testing.T, args ...string) *running {
	t.Helper()
	address, err := process.Address()
	require.NoError(t, err)
	return &running{t: t, url: "http://" + address, args: append([]string{"serve", "--store", "file:" + filepath.Join(t.TempDir(), "store"), "--listen", address}, args...)}
}

func (s *running) start() {
	s.t.Helper()
	s.Process = process.Serve(s.t, process.Regent.Command(s.t, s.args...))
}

func (s *running) stop() {
	s.t.Helper()
	s.End(s.t, os.Interrupt)
}
