package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"regent/emulators/need"
	"regent/leadership/boottime"
	"regent/test/machine"
	"regent/test/process"
)

func TestMain(m *testing.M) { machine.MainTogether(m, 0) }

// serve starts `regent serve` on a file of its own, and returns its URL. It ends with the test.
func serve(t *testing.T) string {
	t.Helper()
	return process.Serve(t, process.Regent.Command(t, "serve", "--listen", "127.0.0.1:0", "--store", "file:"+filepath.Join(t.TempDir(), "leases"))).URL
}

// lease is what the server says of an election.
type lease struct {
	State, LeaderID, LastHeartbeat string
	Report                         json.RawMessage
	FencingToken, Revision         int
	ExpiresInMs                    int
}

// call calls the server, which must not refuse.
func call(t *testing.T, method, url, body string) (l lease) {
	t.Helper()
	return callAt(t, method, url, body, 0)
}

// callAt makes the call; one of an operator at that revision or, if it is refused, at the one that
// the election has.
func callAt(t *testing.T, method, url, body string, revision int) (l lease) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	switch {
	case revision == 0 && method == http.MethodPut:
		request.Header.Set("If-None-Match", "*")
	case method == http.MethodPut, method == http.MethodDelete, strings.Contains(body, `"reason"`):
		request.Header.Set("If-Match", fmt.Sprintf(`"%d"`, max(revision, 1)))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode == http.StatusPreconditionFailed && json.Unmarshal(text, &l) == nil {
		return callAt(t, method, url, body, l.Revision)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d, %v\n%s", method, url, response.StatusCode, err, text)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// configure creates an election with leases of that length, and returns its URL.
func configure(t *testing.T, server string, d time.Duration) string {
	t.Helper()
	election := server + "/v1/elections/reports"
	call(t, http.MethodPut, election, fmt.Sprintf(`{"leaseDuration":"%v"}`, d))
	return election
}

func strong(t *testing.T, election string) lease {
	t.Helper()
	return call(t, http.MethodGet, election+"?consistency=strong", "")
}

// program is one of the two agents.
type program struct{ interpreter, file string }

func programs() []program { return []program{{"bash", "agent.sh"}, {"python3", "agent.py"}} }

// each runs a test with each program.
func each(t *testing.T, test func(t *testing.T, p program)) {
	t.Helper()
	t.Parallel()
	for _, p := range programs() {
		t.Run(p.file, func(t *testing.T) {
			t.Parallel()
			need.Programs(t, p.interpreter, "curl")
			test(t, p)
		})
	}
}

// agent is a running program.
type agent struct {
	cmd  *exec.Cmd
	log  *process.Log
	gone <-chan struct{} // closed once it has ended
	kill func()          // ends the agent, though not its command
}

// agent starts the program with a command for the election reports. It ends with the test.
func (p program) agent(t *testing.T, server string, env []string, command ...string) *agent {
	t.Helper()
	return p.start(t, append(env, "REGENT_SERVER="+server), append([]string{"reports", "--"}, command...)...)
}

func (p program) start(t *testing.T, env []string, args ...string) *agent {
	t.Helper()
	// read here, so that a change of it is no cached result
	if _, err := os.ReadFile(p.file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.interpreter, append([]string{p.file}, args...)...)
	cmd.Env = process.Environ(append(env, "PYTHONDONTWRITEBYTECODE=1")...)
	cmd.WaitDelay = time.Second
	a := process.Start(t, cmd)
	t.Cleanup(func() {
		if a.Kill(); t.Failed() {
			t.Logf("%s %v said:\n%s", p.file, args, a.Log)
		}
	})
	return &agent{a.Cmd, a.Log, a.Gone, a.Kill}
}

// exits checks how the agent ends.
func (a *agent) exits(t *testing.T, code int) {
	t.Helper()
	select {
	case <-a.gone:
	case <-time.After(20 * time.Second):
		t.Fatalf("the agent does not end:\n%s", a.log)
	}
	if got := a.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("the agent ends with %d, not %d:\n%s", got, code, a.log)
	}
}

// until waits for something that should be true long before the limit.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(20 * time.Second); !is(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// pulse is the file in which commands note, every 20 ms, that they lead.
type pulse struct{ file string }

// newPulse returns a pulse whose commands end with the test.
func newPulse(t *testing.T) pulse {
	t.Helper()
	p := pulse{file: filepath.Join(t.TempDir(), "beats")}
	t.Cleanup(func() {
		for _, b := range p.beats() {
			syscall.Kill(-b.group, syscall.SIGKILL)
		}
		p.follows(t)
	})
	return p
}

// command notes until it is stopped; after a prelude that sets n when it should stop, ten times
// more.
func (p pulse) command(prelude string) []string {
	const script = `%s; while [ "${n:-1}" -lt 10 ]; do
		read -r up _ </proc/uptime; echo "$REGENT_FENCING_TOKEN $$ $up" >>%q; sleep 0.02; [ -z "${n:-}" ] || n=$((n+1)); done`
	return []string{"sh", "-c", fmt.Sprintf(script, prelude, p.file)}
}

// beat is one line.
type beat struct {
	token, group int
	at           time.Duration
}

// beats reads the complete notes.
func (p pulse) beats() (beats []beat) {
	text, _ := os.ReadFile(p.file)
	for line := range strings.Lines(string(text)) {
		var b beat
		var at float64
		if n, _ := fmt.Sscanf(line, "%d %d %f\n", &b.token, &b.group, &at); n == 3 {
			b.at = time.Duration(at * float64(time.Second))
			beats = append(beats, b)
		}
	}
	return beats
}

// last is the last beat, or none.
func (p pulse) last() (b beat) {
	if beats := p.beats(); len(beats) > 0 {
		b = beats[len(beats)-1]
	}
	return b
}

// follows checks that no two commands ran at once: a command that was followed by another never
// notes again.
func (p pulse) follows(t *testing.T) {
	t.Helper()
	beats := p.beats()
	for i := range beats[min(1, len(beats)):] {
		if before, b := beats[i], beats[i+1]; b.token < before.token || (b.token == before.token) != (b.group == before.group) {
			t.Errorf("token %d of %d acts after token %d of %d", b.token, b.group, before.token, before.group)
		}
	}
}

// ended waits until the present command has ended, and returns when that was on boottime's clock.
func (p pulse) ended(t *testing.T) time.Duration {
	t.Helper()
	fd, err := unix.PidfdOpen(p.last().group, 0)
	if errors.Is(err, unix.ESRCH) {
		return boottime.Now()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20000)
		switch {
		case n > 0:
			return boottime.Now()
		case !errors.Is(err, unix.EINTR):
			t.Fatalf("the command is not gone: %v", err)
		}
	}
}

// runs reports whether a process runs. A dead one that was not waited for does not.
func runs(pid int) bool {
	_, state := process.Stat(pid)
	return state != "" && state != "Z"
}

// tap stands before a server, and sees each request and its reply.
type tap struct {
	URL string

	mu       sync.Mutex // guards all below
	requests []request
	lose     map[string]int // how many replies to lose, by verb
	minted   int            // tickets that were put into replies
	old      bool           // the server refuses tickets, as one of an older version does
}

// request is what an agent has sent.
type request struct {
	verb                   string
	CandidateID, Key, Wait string
	Ticket                 string
	Priority, Load         int
	Capabilities           []string
	FencingToken           int
	status                 int           // of the reply
	at                     time.Duration // of the reply, on boottime's clock
}

// newTap returns a tap, which calls look, if it is not nil, while each request is under way.
func newTap(t *testing.T, server string, look func(request)) *tap {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	tp := &tap{lose: map[string]int{}}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, verb, _ := strings.Cut(r.URL.Path, ":")
		asked := request{verb: verb}
		json.Unmarshal(body, &asked)
		if look != nil {
			look(asked)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		reply := httptest.NewRecorder()
		if asked.Ticket != "" && tp.refuses() {
			reply.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(reply, `{"status":400,"code":"INVALID_ARGUMENT","detail":"unknown field \"ticket\""}`)
		} else {
			pass.ServeHTTP(reply, r)
		}
		asked.status, asked.at = reply.Code, boottime.Now()
		if tp.keep(asked) {
			if verb == "renew" { // a renewal cannot wait for long
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		}
		text := reply.Body.Bytes()
		if reply.Code == http.StatusOK && verb != "release" {
			text = tp.ticketed(text)
		}
		w.Header().Set("Content-Type", reply.Header().Get("Content-Type"))
		w.WriteHeader(reply.Code)
		w.Write(text)
	}))
	t.Cleanup(front.Close)
	tp.URL = front.URL
	return tp
}

// ticketed puts a ticket into a reply: t1, t2, and so on.
func (tp *tap) ticketed(reply []byte) []byte {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.minted++
	object := bytes.TrimSuffix(bytes.TrimSpace(reply), []byte("}"))
	return fmt.Appendf(object, `,"ticket":"t%d"}`, tp.minted)
}

// keep remembers a request, and reports whether its reply is to be lost.
func (tp *tap) keep(r request) bool {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.requests = append(tp.requests, r)
	tp.lose[r.verb]--
	return tp.lose[r.verb] >= 0
}

// loseReplies loses the next n replies to the verb: the connection breaks, and for renewals it
// hangs.
func (tp *tap) loseReplies(verb string, n int) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.lose[verb] = n
}

func (tp *tap) refuseTickets() {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.old = true
}

func (tp *tap) refuses() bool {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.old
}

// renewals is the renewals that were answered so.
func (tp *tap) renewals(status int) []request {
	return slices.DeleteFunc(tp.of("renew"), func(r request) bool { return r.status != status })
}

// of is the requests of a verb.
func (tp *tap) of(verb string) []request {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(tp.requests), func(r request) bool { return r.verb != verb })
}
