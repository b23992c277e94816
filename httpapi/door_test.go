package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/wire"
)

// doors returns a fixture with a door at /apis, which panics below /apis/panic and half-way through
// /apis/half, and one at / alone.
func doors(t *testing.T, refuse func(http.ResponseWriter, error)) *fixture {
	t.Helper()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/half" {
			io.WriteString(w, "half")
		}
		if r.URL.Path != "/apis" && r.URL.Path != "/" {
			panic("index out of range")
		}
		io.WriteString(w, leadership.RequestID(r.Context()))
	})
	d := httpapi.Door{Handler: h, Refuse: refuse}
	return newFixtureOn(t, httpapi.Config{
		Service: broken{}, Hosts: httpapi.LocalHosts(), Doors: map[string]httpapi.Door{"/apis": d, "/": d},
	})
}

// through sends a request to a door, which the contract of the API does not cover.
func (w *fixture) through(r *http.Request) answer {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
}

func TestADoorIsServedUnderItsPathAndTheRequestHasItsID(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/apis", "/"} {
		w := doors(t, nil)
		a := w.through(request(t, "PATCH", "127.0.0.1", path, "x", wire.RequestIDHeader, "call-1"))
		if a.status != 200 || string(a.body) != "call-1" || a.header.Get(wire.RequestIDHeader) != "call-1" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s %v", path, a.status, a.body, a.header)
		}
		if line := w.line(); line["route"] != path || line["requestId"] != "call-1" {
			t.Errorf("the log has %v", line)
		}
	}
	w := doors(t, nil)
	if a := w.through(request(t, "GET", "127.0.0.1", "/elsewhere", "")); a.status != 404 {
		t.Errorf("another path: %d %s", a.status, a.body)
	}
}

func TestAPageOfAnotherOriginCanOnlyLinkToADoor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, host string
		headers      []string
		status       int
	}{
		{"GET", "evil.test", nil, 403},
		{"GET", "127.0.0.1", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", "127.0.0.1", []string{"Origin", "http://evil.test"}, 403},
		{"POST", "127.0.0.1", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"GET", "127.0.0.1", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", "127.0.0.1", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"POST", "127.0.0.1", []string{"Sec-Fetch-Site", "same-origin"}, 200},
	} {
		if a := doors(t, nil).through(request(t, c.method, c.host, "/apis", "", c.headers...)); a.status != c.status {
			t.Errorf("%s from %s with %q: status %d, want %d", c.method, c.host, c.headers, a.status, c.status)
		}
	}
}

func TestAPanicOfADoorIsRefusedInItsFormAndLoggedWithItsStack(t *testing.T) {
	t.Parallel()
	w := doors(t, func(w http.ResponseWriter, err error) { w.WriteHeader(500); io.WriteString(w, "own form") })
	if a := w.through(request(t, "GET", "127.0.0.1", "/apis/panic", "")); a.status != 500 || string(a.body) != "own form" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if line := w.line(); line["level"] != "ERROR" || line["route"] != "/apis/*" || !strings.Contains(line["stack"].(string), "door_test.go") {
		t.Errorf("the log has %v", line)
	}
	w = doors(t, nil)
	if p := w.through(request(t, "GET", "127.0.0.1", "/apis/panic", "")).problem(t); p.Code != wire.Internal {
		t.Errorf("%+v", p)
	}
}

func TestAReplyOfADoorThatHasBegunIsCutOffByAPanic(t *testing.T) {
	t.Parallel()
	w := doors(t, nil)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	response, err := http.Get(server.URL + "/apis/half")
	if err == nil {
		_, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if err == nil {
		t.Error("the reader takes what it has for all")
	}
}
