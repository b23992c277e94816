package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/test/machine"
)

//go:embed page.html
var page []byte

func TestMain(m *testing.M) { machine.MainTogether(m, 0) }

// chromium returns the browser's command.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	need.Programs(t, "chromium")
	return ""
}

// exchange is a request that reached Regent.
type exchange struct {
	call   string
	status int
}

// regent is a server as serve runs it without access control, with an election that ann leads.
type regent struct {
	t       *testing.T
	service *service.Service
	url     *url.URL

	mu   sync.Mutex
	seen []exchange // guarded by mu
}

// leader is a name that a page can only have read.
const leader = "ann-7f3a"

func serve(t *testing.T) *regent {
	t.Helper()
	store := memory.New(memory.Config{})
	inst, err := instance.New(instance.Config{Store: store, Journal: store, Alone: true})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { inst.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	r := &regent{t: t, service: service.New(store)}
	if _, err := r.service.Acquire(t.Context(), leadership.AcquireRequest{Election: "reports", CandidateID: leader, LeaseDuration: time.Hour}); err != nil {
		t.Fatal(err)
	}
	api := httpapi.New(httpapi.Config{Service: inst, Hosts: httpapi.LocalHosts(), Log: slog.New(slog.DiscardHandler)})
	r.url = listen(t, r.record(api))
	return r
}

// listen serves the handler on a port of this machine.
func listen(t *testing.T, h http.Handler) *url.URL {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpapi.Server(h, nil)
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	return at
}

// record notes what is asked, and how it is answered.
func (r *regent) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		noted := &status{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(noted, request)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, exchange{request.Method + " " + request.URL.RequestURI(), noted.code})
	})
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (r *regent) exchanges() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// state is all that the store has, without the times that pass.
func (r *regent) state() string {
	r.t.Helper()
	lease, err := r.service.Get(r.t.Context(), "reports")
	if err != nil {
		return err.Error()
	}
	events, err := r.service.Events(r.t.Context(), leadership.EventsRequest{Election: "reports"})
	require.NoError(r.t, err)
	text, err := json.Marshal([]any{lease.LeaderID, lease.Token, lease.Revision, lease.Config, events})
	require.NoError(r.t, err)
	return string(text)
}

// rebound serves the page, and everything else from Regent, under the name that the browser asked
// for: what a browser sees of a name that first means the page's server and then this machine.
func rebound(t *testing.T, r *regent) *url.URL {
	t.Helper()
	behind := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(r.url)
		p.Out.Host = p.In.Host
	}}
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			w.Write(page)
		case "/favicon.ico": // the browser asks for it by itself
			w.WriteHeader(http.StatusNoContent)
		default:
			behind.ServeHTTP(w, request)
		}
	}))
}

// open shows the page in a browser and returns what it has learned by each attempt.
func open(t *testing.T, from, target string) map[string]string {
	t.Helper()
	learned := make(chan map[string]string, 1)
	report := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		var results map[string]string
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = json.Unmarshal(body, &results)
		}
		if err != nil {
			t.Errorf("the page's report: %v", err)
		}
		learned <- results
	}))
	setup, err := json.Marshal(map[string]string{"target": target, "report": report.String()})
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	browser := exec.CommandContext(ctx, chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--no-proxy-server", "--remote-debugging-port=0",
		"--user-data-dir="+t.TempDir(), "--host-resolver-rules=MAP evil.test 127.0.0.1", from+"/#"+url.QueryEscape(string(setup)))
	said := new(strings.Builder)
	browser.Stdout, browser.Stderr, browser.WaitDelay = said, said, 10*time.Second
	require.NoError(t, browser.Start())
	ended := make(chan error, 1)
	go func() { ended <- browser.Wait() }()
	defer func() { stop(); <-ended }()
	select {
	case results := <-learned:
		return results
	case err := <-ended:
		ended <- err
		t.Fatalf("the browser ended: %v: %s", err, said)
	case <-ctx.Done():
		t.Fatalf("the page did not report within two minutes")
	}
	return nil
}

// at is the URL under another name.
func at(u *url.URL, name string) string { return "http://" + net.JoinHostPort(name, u.Port()) }

func TestAPageOfAnotherSiteNeitherReadsNorChangesAnything(t *testing.T) {
	r := serve(t)
	pages := rebound(t, r)
	for name, c := range map[string]struct{ from, target string }{
		"rebinding: its name has come to mean this machine": {at(pages, "evil.test"), at(pages, "evil.test")},
		"another site, calling an address":                  {at(pages, "evil.test"), at(r.url, "127.0.0.1")},
		"another site, calling localhost":                   {at(pages, "evil.test"), at(r.url, "localhost")},
		"another port of localhost":                         {at(pages, "localhost"), at(r.url, "localhost")},
		"another port of the address":                       {at(pages, "127.0.0.1"), at(r.url, "127.0.0.1")},
	} {
		t.Run(name, func(t *testing.T) {
			before, seen := r.state(), len(r.exchanges())
			results := open(t, c.from, c.target)
			for attempt, learned := range results {
				if strings.Contains(learned, leader) || strings.Contains(learned, "fencingToken") || strings.HasPrefix(learned, "snapshot") {
					t.Errorf("%s: the page has read %s", attempt, learned)
				}
			}
			if after := r.state(); after != before {
				t.Errorf("the page has changed\n%s to\n%s", before, after)
			}
			asked := r.exchanges()[seen:]
			for _, x := range asked {
				public := strings.HasPrefix(x.call, "GET /health/") && !strings.HasPrefix(name, "rebinding")
				if x.status != http.StatusForbidden && !public {
					t.Errorf("%s got status %d, want 403", x.call, x.status)
				}
			}
			if attempts := 19; len(results) != attempts || len(asked) < attempts-1 { // a beacon may still be on its way
				t.Errorf("%d attempts made %d requests, want %d: this proves nothing; %v", len(results), len(asked), attempts, results)
			}
		})
	}
}

// The same page can do everything where it comes from Regent's own origin, so it would have done so
// above.
func TestAPageOfTheServersOwnOriginMayCall(t *testing.T) {
	r := serve(t)
	pages := rebound(t, r)
	before := r.state()
	results := open(t, at(pages, "127.0.0.1"), at(pages, "127.0.0.1"))
	for _, attempt := range []string{"read", "streamOfOne"} {
		if !strings.Contains(results[attempt], leader) {
			t.Errorf("%s: %q, want what Regent knows", attempt, results[attempt])
		}
	}
	if after := r.state(); after == before || results["remove"] == "" {
		t.Errorf("the page has changed nothing: %v", results)
	}
}
