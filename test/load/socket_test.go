package load

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asked calls a server with the handler, once for each path, on one socket.
func asked(t *testing.T, h http.HandlerFunc, paths ...string) (bodies []string, errs []error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s := &Socket{Address: server.Listener.Addr().String()}
	for _, path := range paths {
		body, err := s.Call(t.Context(), Get("x", path, ""))
		bodies, errs = append(bodies, string(body)), append(errs, err)
	}
	return bodies, errs
}

func TestSocketReadsAnswersOfAllLengths(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 10_000)
	connections := map[string]bool{}
	bodies, errs := asked(t, func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		switch r.URL.Path {
		case "/short":
			io.WriteString(w, "short")
		case "/pieces":
			io.WriteString(w, long[:10])
			w.(http.Flusher).Flush()
			io.WriteString(w, long[10:])
		}
	}, "/short", "/pieces", "/nothing", "/short")
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"short", long, "", "short"} {
		if bodies[i] != want {
			t.Errorf("answer %d has %d bytes, want %d: %.50q", i, len(bodies[i]), len(want), bodies[i])
		}
	}
	if len(connections) != 1 {
		t.Errorf("it took %d connections", len(connections))
	}
}

func TestSocketGoesOnAfterRefusalsAndBrokenAnswers(t *testing.T) {
	t.Parallel()
	_, errs := asked(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/conflict":
			http.Error(w, "held", http.StatusConflict)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half of it")
			panic(http.ErrAbortHandler)
		}
	}, "/conflict", "/fine", "/cut", "/fine")
	if err := errs[0]; err == nil || !strings.Contains(err.Error(), "status 409: held") {
		t.Errorf("after a refusal: %v", err)
	}
	if errs[2] == nil {
		t.Error("half of an answer was taken for one")
	}
	if err := errors.Join(errs[1], errs[3]); err != nil {
		t.Errorf("it does not go on: %v", err)
	}
}
