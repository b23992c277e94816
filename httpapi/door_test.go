package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/wire"
	"regent/store/memory"
)

// withDoors returns an API with doors.
func withDoors(t *testing.T, doors map[string]http.Handler) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	return newFixtureOn(t, httpapi.Config{Service: newInstance(t, memory.New(memory.Config{Now: c.Now}), c), Hosts: httpapi.LocalHosts(), Doors: doors})
}

func (w *fixture) knock(r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

func TestADoorHasItsPathAndAllBelowIt(t *testing.T) {
	t.Parallel()
	inner := chi.NewRouter() // as a door may be
	inner.Get("/ui/elections/{name}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "inner "+chi.URLParam(r, "name")) })
	inner.Get("/ui", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "inner") })
	root := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "root") })
	w := withDoors(t, map[string]http.Handler{"/ui": inner, "/": root})
	for path, want := range map[string]string{"/ui": "inner", "/ui/elections/planner": "inner planner", "/": "root"} {
		if got := w.knock(request(t, "GET", "localhost", path, "")); got.Code != http.StatusOK || got.Body.String() != want {
			t.Errorf("%s: %d %s; want %s", path, got.Code, got.Body, want)
		}
	}
	for _, path := range []string{"/uix", "/x", "/v1/x"} {
		if got := w.knock(request(t, "GET", "localhost", path, "")); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), wire.PathSpec) {
			t.Errorf("%s: %d %s; want the API's own 404", path, got.Code, got.Body)
		}
	}
}

func TestADoorIsCheckedAndNamedAsTheAPIIs(t *testing.T) {
	t.Parallel()
	came := ""
	w := withDoors(t, map[string]http.Handler{"/door": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came = leadership.RequestID(r.Context())
		io.WriteString(w, "in")
	})})
	for _, c := range []struct {
		what, method, host string
		headers            []string
		in                 bool
	}{
		{"a program", "POST", "127.0.0.1:8080", nil, true},
		{"its own page", "POST", "localhost", []string{"Origin", "http://localhost", "Sec-Fetch-Site", "same-origin"}, true},
		{"a link on another page", "GET", "localhost", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, true},
		{"a foreign host", "POST", "evil.test", nil, false},
		{"a link to a foreign host", "GET", "evil.test", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, false},
		{"another page", "POST", "localhost", []string{"Origin", "http://evil.test"}, false},
		{"another page that reads", "GET", "localhost", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, false},
		{"a form on another page", "POST", "localhost", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, false},
	} {
		came = ""
		got := w.knock(request(t, c.method, c.host, "/door/x", "", append(c.headers, wire.RequestIDHeader, "the-id-of-it")...))
		if in := came != ""; in != c.in || got.Header().Get(wire.RequestIDHeader) != "the-id-of-it" || got.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: came in: %v; %d %v %s", c.what, in, got.Code, got.Header(), got.Body)
		}
		if c.in && came != "the-id-of-it" {
			t.Errorf("%s: the door sees the request as %q", c.what, came)
		}
		if !c.in {
			if p, ok := wire.ReadProblem(got.Header(), got.Body.Bytes()); !ok || p.Code != wire.PermissionDenied || p.RequestID != "the-id-of-it" {
				t.Errorf("%s: %d %s", c.what, got.Code, got.Body)
			}
		}
	}
}

func TestAPanicOfADoorIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	w := withDoors(t, map[string]http.Handler{"/door": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/door" {
			io.WriteString(w, "half an ans")
		}
		panic("the door is broken")
	})})
	got := w.knock(request(t, "GET", "localhost", "/door", ""))
	if p, ok := wire.ReadProblem(got.Header(), got.Body.Bytes()); !ok || p.Code != wire.Internal || strings.Contains(got.Body.String(), "broken") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("after half an answer the connection is not closed: %v", v)
			}
		}()
		w.knock(request(t, "GET", "localhost", "/door/half", ""))
	}()
	if log := w.log.String(); strings.Count(log, "the door is broken") != 2 || strings.Count(log, `"stack"`) != 2 || !strings.Contains(log, `"route":"/door/*"`) {
		t.Errorf("log: %s", log)
	}
}
