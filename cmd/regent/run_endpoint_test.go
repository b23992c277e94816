package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/test/process"
)

func ask(e http.Handler, method string) (code int, header http.Header, body string) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(method, "/ready", nil))
	return w.Code, w.Header(), w.Body.String()
}

func TestTheLeaderEndpointSaysWhoLeadsByTheDeadlineOfTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := clienttest.New(t)
		e := &leaderEndpoint{election: "reports"}
		says := func(what, method string, code int, body string) {
			t.Helper()
			got, header, text := ask(e, method)
			if got != code || !strings.HasPrefix(text, body) || header.Get("Cache-Control") != "no-store" || (code == http.StatusMethodNotAllowed) != (header.Get("Allow") == "GET, HEAD") {
				t.Errorf("%s: %d %s%v, want %d %s", what, got, text, header, code, body)
			}
		}
		says("before the first lease", "GET", 503, `{"election":"reports","reason":"this process does not lead yet"}`)

		config := server.Config()
		var clock atomic.Int64 // how far the leader's clock is ahead
		now := config.Clock
		config.Clock = func() time.Duration { return now() + time.Duration(clock.Load()) }
		config.Candidate = client.Candidate{ID: "ann", LeaseDuration: 30 * time.Second}
		c, err := client.New(config)
		require.NoError(t, err)
		l, err := c.Campaign(t.Context(), "reports")
		require.NoError(t, err)
		e.lease.Store(l)
		says("while it leads", "GET", 200, `{"election":"reports","candidateId":"ann","fencingToken":1}`)
		says("while it leads", "HEAD", 200, "")
		says("by another method", "POST", 405, `{"election":"reports","reason":"ask with GET or HEAD"}`)
		clock.Store(int64(l.Remaining())) // no goroutine has read the clock since
		says("at the deadline", "GET", 503, `{"election":"reports","reason":"this process does not lead any more: `)
		clock.Store(0)
		says("when the clock goes back", "HEAD", 503, "")
	})
}

func TestALeaderEndpointThatCannotBeOpenedIsAnErrorBeforeALeaseIsAskedFor(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	w := startRun(t, env, "reports", "--leader-endpoint", busy.Addr().String(), "--", "true")
	w.ends(t, exitNotRun)
	if log := w.logged(); !strings.Contains(log, "address already in use; choose another address with --leader-endpoint") {
		t.Error(log)
	}
	if r := regent(t, env, "history reports"); r.code == exitDone {
		t.Errorf("the election has a history: %s", r.out)
	}
}

func TestARunAnswersAtItsLeaderEndpoint(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	address, err := process.Address()
	require.NoError(t, err)
	first := startRun(t, p.env, "reports", "--candidate", "ann", "--", "sh", "-c", worker)
	first.says(t, "leads 1")
	second := startRun(t, p.env, "reports", "--candidate", "bob", "--leader-endpoint", address, "--", "sh", "-c", worker)
	awaitWaiting(t, p.env)
	get := func(code int, want string) {
		t.Helper()
		reply, err := http.Get("http://" + address + "/")
		require.NoError(t, err)
		defer reply.Body.Close()
		body, _ := io.ReadAll(reply.Body)
		if reply.StatusCode != code || !strings.Contains(string(body), want) || reply.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s %v, want %d %s", reply.StatusCode, body, reply.Header, code, want)
		}
	}
	get(http.StatusServiceUnavailable, "does not lead yet")
	first.Process.Signal(syscall.SIGTERM)
	second.says(t, "leads 2")
	get(http.StatusOK, `{"election":"reports","candidateId":"bob","fencingToken":2}`)
}
