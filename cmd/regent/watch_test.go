package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// running is a command that has not ended.
type running struct {
	out  *bufio.Scanner
	stop context.CancelFunc
	done chan result // standard error and exit code
}

// start runs a command in this process. Its standard output must be read.
func start(t *testing.T, env []string, args string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	r := &running{out: bufio.NewScanner(reader), stop: cancel, done: make(chan result, 1)}
	go func() {
		var stderr strings.Builder
		code := run(ctx, strings.Fields(args), system{strings.NewReader(""), writer, &stderr, env})
		writer.Close()
		r.done <- result{code: code, err: stderr.String()}
	}()
	t.Cleanup(func() {
		cancel()
		reader.Close()
	})
	return r
}

func (r *running) line(t *testing.T) string {
	t.Helper()
	if !r.out.Scan() {
		t.Fatalf("the output has ended: %v, %+v", r.out.Err(), <-r.done)
	}
	return r.out.Text()
}

func (r *running) end() result {
	r.stop()
	for r.out.Scan() {
	}
	return <-r.done
}

func (r *running) wantLines(t *testing.T, want ...string) {
	t.Helper()
	for _, line := range want {
		if diff := cmp.Diff(line, r.line(t)); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

func TestWatchShowsEventsAsTheyHappen(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	agent := append(env, "REGENT_CANDIDATE=agent-1", "REGENT_KEY="+testKey(1))
	regent(t, agent, "acquire reports").want(t, exitDone)
	w := start(t, env, "watch reports")
	w.wantLines(t,
		"REVISION  AT                    TYPE        LEADER            BEFORE            TOKEN",
		"1         2026-03-01T12:00:00Z  held        agent-1           -                 1",
	)
	regent(t, agent, "release reports --token 1").want(t, exitDone)
	w.wantLines(t, "2         2026-03-01T12:00:00Z  released    -                 agent-1           1")
	regent(t, env, "acquire reports --candidate an-agent-with-a-long-name").want(t, exitDone)
	w.wantLines(t, "3         2026-03-01T12:00:00Z  acquired    an-agent-with-a-long-name  -                 2")
	regent(t, env, "delete reports --force").want(t, exitDone)
	w.wantLines(t, "4         2026-03-01T12:00:00Z  deleted     -                          an-agent-with-a-long-name  2")
	if r := w.end().want(t, exitDone); r.err != "" {
		t.Errorf("stderr: %s", r.err)
	}
	w = start(t, env, "watch reports")
	w.line(t)
	w.wantLines(t, "4         2026-03-01T12:00:00Z  deleted     -                 -                 2")
	w.end().want(t, exitDone)
}

func TestAllElectionsAreWatched(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=agent-1")
	regent(t, env, "acquire reports").want(t, exitDone)
	regent(t, env, "configure backups").want(t, exitDone)
	regent(t, env, "configure rest").want(t, exitDone)
	w := start(t, env, "watch re*")
	w.wantLines(t,
		"ELECTION          REVISION  AT                    TYPE        LEADER            BEFORE            TOKEN",
		"reports           1         2026-03-01T12:00:00Z  held        agent-1           -                 1",
		"rest              1         2026-03-01T12:00:00Z  vacant      -                 -                 0",
	)
	regent(t, env, "acquire backups").want(t, exitDone)
	regent(t, env, "acquire rest").want(t, exitDone)
	regent(t, env, "acquire repairs").want(t, exitDone)
	w.wantLines(t,
		"rest              2         2026-03-01T12:00:00Z  acquired    agent-1           -                 1",
		"repairs           1         2026-03-01T12:00:00Z  acquired    agent-1           -                 1",
	)
	w.end().want(t, exitDone)
}

// parsed waits for the next line and parses it as JSON.
func (r *running) parsed(t *testing.T) (d struct {
	Cursor          string
	Snapshot, Event *struct{ Election string }
	Ready           bool
},
) {
	t.Helper()
	if line := r.line(t); json.Unmarshal([]byte(line), &d) != nil {
		t.Fatalf("%s is no JSON", line)
	}
	return d
}

func TestAWatchOfAllResumesFromACursor(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=agent-1", "REGENT_OUTPUT=json")
	regent(t, env, "acquire reports").want(t, exitDone)
	w := start(t, env, "watch --all")
	if first := w.parsed(t); first.Cursor != "" || first.Snapshot == nil {
		t.Errorf("%+v; want a snapshot, and no cursor", first)
	}
	ready := w.parsed(t)
	if !ready.Ready || ready.Cursor == "" {
		t.Errorf("%+v; want that all were shown, and a cursor", ready)
	}
	w.end().want(t, exitDone)
	regent(t, env, "configure rest").want(t, exitDone)
	w = start(t, env, "watch --all --after "+ready.Cursor)
	for { // earlier events may come again
		news := w.parsed(t)
		if news.Event == nil || news.Cursor == "" {
			t.Fatalf("%+v; want an event, and a cursor", news)
		}
		if news.Event.Election == "rest" {
			break
		}
	}
	w.end().want(t, exitDone)
}

// scripted serves one handler per request, and the last one for all further requests. It returns
// the environment that names the server.
func scripted(t *testing.T, handlers ...http.HandlerFunc) []string {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[min(int(n.Add(1)), len(handlers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return []string{"REGENT_SERVER=" + server.URL}
}

// streaming starts a stream of these revisions, then breaks it or leaves it open.
func streaming(breaks bool, revisions ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, n := range revisions {
			fmt.Fprintf(w, "id: %d\ndata: {\"election\":\"e\",\"revision\":%d,\"type\":\"updated\",\"at\":\"2026-03-01T12:00:00Z\",\"fencingToken\":1}\n\n", n, n)
		}
		http.NewResponseController(w).Flush()
		if breaks {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}
}

func refused(status int, code leadership.Code) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":"No","status":%d,"detail":"not now","code":%q}`, status, code)
	}
}

func TestBrokenConnectionIsRestoredAndReportedOnce(t *testing.T) {
	t.Parallel()
	script := []http.HandlerFunc{
		streaming(true, 1), refused(503, leadership.StoreUnavailable), refused(503, leadership.StoreUnavailable), streaming(true, 2), streaming(false, 3),
	}
	w := start(t, scripted(t, script...), "watch e")
	for range 4 {
		w.line(t)
	}
	r := w.end().want(t, exitDone)
	if n := strings.Count(r.err, "\n"); n != 2 || strings.Count(r.err, "regent: the connection is lost; reconnecting: ") != n {
		t.Errorf("stderr\n%swant a line for each of the two times", r.err)
	}
	w = start(t, scripted(t, script...), "watch e --output json")
	for range 3 {
		w.line(t)
	}
	if r := w.end().want(t, exitDone); r.err != "" {
		t.Errorf("with JSON, stderr\n%s", r.err)
	}
}

func TestWatchEndsWithAPermanentError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script []http.HandlerFunc
		code   int
		want   string
	}{
		{"the store is away", []http.HandlerFunc{refused(503, leadership.StoreUnavailable)}, exitUnreachable, "Store unavailable: not now"},
		{"the server hangs", []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}, exitUnreachable, "did not answer within 100ms"},
		{"the history is cut meanwhile", []http.HandlerFunc{streaming(true, 1), refused(410, leadership.HistoryCompacted)}, exitOther, "not now"},
	} {
		timeout := "REGENT_TIMEOUT=1m"
		if strings.Contains(c.want, "100ms") {
			timeout = "REGENT_TIMEOUT=100ms"
		}
		if r := regent(t, append(scripted(t, c.script...), timeout), "watch e").want(t, c.code); !strings.Contains(r.err, c.want) {
			t.Errorf("%s: %q, want %q", c.name, r.err, c.want)
		}
	}
}

// The first timeout within which this machine connects must not end a stream that is silent for
// longer.
func TestTimeoutAppliesToTheFirstConnection(t *testing.T) {
	t.Parallel()
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		opened := make(chan struct{})
		env := scripted(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			http.NewResponseController(w).Flush()
			close(opened)
			time.Sleep(timeout * 2) // of a real process, whose clock cannot be faked
			streaming(false, 1)(w, r)
		}, refused(400, leadership.InvalidArgument))
		r := regent(t, append(env, "REGENT_TIMEOUT="+timeout.String()), "watch e --count 1")
		if r.code == exitDone {
			return
		}
		select {
		case <-opened:
		default:
			continue // not even connected
		}
		if timeout > 2*time.Second {
			t.Fatalf("with a timeout of %v: exit code %d, %s", timeout, r.code, r.err)
		}
	}
}

func TestSignalEndsAWatchWithoutAnError(t *testing.T) {
	t.Parallel()
	env := scripted(t, streaming(false, 1))
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := itself(t, "watch", "e")
		var stderr strings.Builder
		cmd.Env, cmd.Stderr = append(cmd.Env, env...), &stderr
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		lines.Scan()
		lines.Scan() // the watch has begun
		cmd.Process.Signal(s)
		for lines.Scan() {
		}
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("after %v: %v, stderr %q", s, err, stderr.String())
		}
	}
}
