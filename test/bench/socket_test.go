package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asked lets a socket call a server that has the handler, once for each path.
func asked(t *testing.T, h http.HandlerFunc, paths ...string) (bodies []string, errs []error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s := &socket{address: server.Listener.Addr().String()}
	for _, path := range paths {
		body, err := s.call(t.Context(), []byte("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"))
		bodies, errs = append(bodies, string(body)), append(errs, err)
	}
	return bodies, errs
}

func TestASocketReadsAnswersOfAllLengths(t *testing.T) {
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

func TestWhatASocketIsRefusedIsAnErrorAndItGoesOn(t *testing.T) {
	t.Parallel()
	_, errs := asked(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/conflict":
			http.Error(w, "somebody leads", http.StatusConflict)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half of it")
			panic(http.ErrAbortHandler)
		}
	}, "/conflict", "/fine", "/cut", "/fine")
	if err := errs[0]; err == nil || !strings.Contains(err.Error(), "status 409: somebody leads") {
		t.Errorf("after a refusal: %v", err)
	}
	if errs[2] == nil {
		t.Error("half of an answer was taken for one")
	}
	if err := errors.Join(errs[1], errs[3]); err != nil {
		t.Errorf("it does not go on: %v", err)
	}
}

func TestABatchIsRenewedAsAWholeOrAnError(t *testing.T) {
	t.Parallel()
	lease := `{"election":"e","lease":{"election":"e"}},`
	if n, err := renewed([]byte(strings.Repeat(lease, batchSize))); n != batchSize || err != nil {
		t.Errorf("all: %d, %v", n, err)
	}
	if _, err := renewed([]byte(strings.Repeat(lease, batchSize-1) + `{"election":"e","error":{"code":"LEASE_LOST"}}`)); err == nil {
		t.Error("a renewal that was refused is none")
	}
}

func TestATokenIsPutInWithoutChangingTheLength(t *testing.T) {
	t.Parallel()
	request := []byte(`{"fencingToken":9007199254740991}`)
	token := gap(request, "9007199254740991")
	for _, n := range []string{"123456", "7"} {
		if err := putToken(token, []byte(`{"state":"held","fencingToken":`+n+`,"revision":9}`)); err != nil {
			t.Fatal(err)
		}
		if want := `{"fencingToken":` + strings.Repeat(" ", 16-len(n)) + n + `}`; string(request) != want {
			t.Errorf("got %s, want %s", request, want)
		}
	}
	if err := putToken(token, []byte(`{"state":"vacant"}`)); err == nil {
		t.Error("a grant without a token was taken for one")
	}
}
