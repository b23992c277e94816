package test

import (
	"bytes"
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
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
	"regent/test/process"
)

// session is a `regent run` of a script in sh, which may use $dir, a folder of its own. Its output
// is in the files out and err there.
type session struct {
	t   *testing.T
	cmd *exec.Cmd
	dir string
}

// runScript starts a session. flags are the election and the flags after it.
func runScript(t *testing.T, server, flags, script string, env ...string) *session {
	t.Helper()
	r := &session{t: t, dir: t.TempDir()}
	args := append(append([]string{"run"}, strings.Fields(flags)...), "--", "sh", "-c", script)
	r.cmd = invoke(t, process.Regent, append(env, "REGENT_SERVER="+server, "dir="+r.dir), args...)
	r.cmd.Stdout, r.cmd.Stderr = r.create("out"), r.create("err")
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
	})
	return r
}

func (r *session) create(name string) *os.File {
	r.t.Helper()
	f, err := os.Create(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { f.Close() })
	return f
}

func (r *session) text(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(b)
}

// await waits until a file of the folder has the text in it, and returns the file.
func (r *session) await(name, text string) string {
	r.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if b := r.text(name); strings.Contains(b, text) {
			return b
		}
	}
	r.t.Fatalf("%v: no %q in %s, but %s\nstderr: %s", r.cmd.Args[1:], text, name, r.text(name), r.text("err"))
	return ""
}

// end waits for the end, and expects one of these exit codes.
func (r *session) end(want ...int) {
	r.t.Helper()
	timer := time.AfterFunc(patience, func() { r.cmd.Process.Kill() })
	defer timer.Stop()
	if err := r.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		r.t.Fatal(err)
	}
	if got := r.cmd.ProcessState.ExitCode(); !slices.Contains(want, got) {
		r.t.Errorf("%v: exit code %d, want %v\nstdout: %s\nstderr: %s", r.cmd.Args[1:], got, want, r.text("out"), r.text("err"))
	}
}

func (r *session) signal(s syscall.Signal) { r.cmd.Process.Signal(s) }

// finish lets a script continue that waits at untilTold.
func (r *session) finish() { r.create("over") }

const untilTold = "\necho begun; while ! test -e $dir/over; do sleep 0.01; done"

func TestARunEndsAsItsCommandDoes(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	for i, c := range []struct {
		script string
		want   int
	}{
		{"true", 0},
		{"exit 7", 7},
		{"exit 120", 120},
		{"kill -KILL $$", 137},
		{"kill -TERM $$", 143},
		{"kill -PIPE $$", 141}, // which regent itself ignores
		{"exec /etc/passwd", 126},
	} {
		e := electionName(i)
		r := runScript(t, s.URL, string(e)+" --lease 10s", c.script)
		r.end(c.want)
		if l, err := s.client.Get(t.Context(), e); err != nil || l.State != leadership.Vacant || l.Token != 1 {
			t.Errorf("%s: %+v, %v; want that the lease was given back", c.script, l, err)
		}
		if said := r.text("err"); strings.Contains(said, "regent: ") {
			t.Errorf("%s: %s; want nothing but the log and what the command says", c.script, said)
		}
	}
}

func TestInputAndOutputArePassedThrough(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	cmd := invoke(t, process.Regent, []string{"REGENT_SERVER=" + s.URL}, "run", "e", "--", "sh", "-c", "tr a-z A-Z; echo to stderr >&2")
	cmd.Stdin = strings.NewReader("through\n")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil || out.String() != "THROUGH\n" || !strings.Contains(stderr.String(), "to stderr\n") {
		t.Errorf("%v, stdout %q, stderr %q", err, &out, &stderr)
	}
}

func TestARunThatDoesNotLeadHasACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	first := runScript(t, s.URL, "e --candidate agent-1", untilTold)
	first.await("out", "begun")
	for _, flags := range []string{"e --no-wait", "e --wait 0s"} {
		held := runScript(t, s.URL, flags, "true")
		if held.end(3); !strings.Contains(held.text("err"), "agent-1") {
			t.Errorf("%s: %s; want who leads", flags, held.text("err"))
		}
	}
	runScript(t, s.URL, "e --wait 100ms", "true").end(6)
	const unreachable = "http://127.0.0.1:1"
	runScript(t, unreachable, "e --no-wait", "true").end(5)
	runScript(t, unreachable, "e --wait 100ms", "true").end(5)

	second := runScript(t, s.URL, "e --candidate agent-2", "echo $REGENT_CANDIDATE_ID leads with $REGENT_FENCING_TOKEN")
	second.await("err", "waiting for leadership")
	first.finish()
	first.end(0)
	if second.end(0); second.text("out") != "agent-2 leads with 2\n" {
		t.Errorf("%q", second.text("out"))
	}
}

func TestASignalEndsTheWait(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	first := runScript(t, s.URL, "e", untilTold)
	first.await("out", "begun")
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
		r := runScript(t, s.URL, "e", "echo ran")
		r.await("err", "waiting for leadership")
		r.signal(syscall.SIGUSR1) // no server hears it
		r.signal(signal)
		if r.end(want); r.text("out") != "" {
			t.Errorf("%v: the command ran", signal)
		}
	}
	first.finish()
	first.end(0)
	runScript(t, s.URL, "e --no-wait", "true").end(0)
}

func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e", `
		for s in HUP QUIT USR1 USR2 WINCH; do trap "echo got $s" $s; done
		trap 'echo got INT; n=x$n; test $n = xx && exit 9' INT`+untilTold)
	r.await("out", "begun")
	for _, x := range []struct {
		signal syscall.Signal
		name   string
	}{
		{syscall.SIGHUP, "HUP"}, {syscall.SIGQUIT, "QUIT"}, {syscall.SIGUSR1, "USR1"}, {syscall.SIGUSR2, "USR2"}, {syscall.SIGWINCH, "WINCH"}, {syscall.SIGINT, "INT"},
	} {
		r.signal(x.signal)
		r.await("out", "got "+x.name+"\n")
	}
	r.signal(syscall.SIGINT)
	r.end(9)
}

func TestACommandIsStoppedWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	for script, want := range map[string]string{
		"trap 'echo asked; exit 0' TERM": "begun\nasked\n",
		"trap '' TERM":                   "begun\n",
	} {
		r := runScript(t, s.URL, "e --lease 3s --grace 1s", script+untilTold)
		r.await("out", "begun")
		if _, err := s.client.Delete(t.Context(), leadership.DeleteRequest{Election: "e", DeleteCommand: leadership.DeleteCommand{Force: true}}); err != nil {
			t.Fatal(err)
		}
		if r.end(120); r.text("out") != want || !strings.Contains(r.text("err"), "regent: leadership of election \"e\" was lost") {
			t.Errorf("%s: stdout %q, stderr %s", script, r.text("out"), r.text("err"))
		}
		if _, err := s.client.Configure(t.Context(), leadership.ConfigureRequest{Election: "e"}); err != nil { // which undoes it
			t.Fatal(err)
		}
	}
}

func TestACommandIsStoppedBeforeALeaseThatCannotBeRenewedEnds(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 8s --grace 1s", "trap 'echo asked; exit 0' TERM"+untilTold)
	r.await("out", "begun")
	s.kill()
	r.end(121)
	for _, want := range []string{`"the lease could not be renewed; trying until the deadline"`, `"stopping the command"`, `"the command has ended"`, "regent: the lease of election"} {
		if strings.Count(r.text("err"), want) != 1 {
			t.Errorf("stderr does not say once %s:\n%s", want, r.text("err"))
		}
	}
	if r.text("out") != "begun\nasked\n" {
		t.Errorf("stdout %q", r.text("out"))
	}
}

func TestWithRestartACommandRunsAgainUntilASignal(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --restart", "echo token $REGENT_FENCING_TOKEN; test $REGENT_FENCING_TOKEN -lt 3 && exit 1; trap 'exit 4' TERM; "+untilTold)
	if out := r.await("out", "begun"); out != "token 1\ntoken 2\ntoken 3\nbegun\n" {
		t.Errorf("%q", out)
	}
	r.signal(syscall.SIGTERM)
	r.end(4)
	failing := runScript(t, s.URL, "f --restart", "echo token $REGENT_FENCING_TOKEN; exit 1")
	failing.await("out", "token 4\n")
	failing.signal(syscall.SIGTERM)
	if failing.cmd.Wait(); failing.cmd.ProcessState.ExitCode() != 143 && failing.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v; want 143 of a pause, or 1 of the command", failing.cmd.ProcessState)
	}
	runScript(t, s.URL, "f --no-wait", "true").end(0)
}

// secrets remembers the keys of requests.
type secrets struct {
	mu    sync.Mutex // guards the rest
	keys  map[string]bool
	times int // that a key was heard
}

var keyInBody = regexp.MustCompile(`"key":"([A-Za-z0-9_-]{43})"`)

func (s *secrets) find(body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range keyInBody.FindAllSubmatch(body, -1) {
		s.keys[string(m[1])] = true
		s.times++
	}
}

// await waits until so many keys were heard, equal or not.
func (s *secrets) await(t *testing.T, times int) {
	t.Helper()
	heard := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.times >= times
	}
	for end := time.Now().Add(patience); !heard(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("fewer than %d requests have a key", times)
		}
	}
}

func (s *secrets) all() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.keys {
		keys = append(keys, k)
	}
	return keys
}

// overhear returns the address of a proxy to a server that notes the keys of all requests.
func overhear(t *testing.T, target string) (string, *secrets) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	heard := &secrets{keys: map[string]bool{}}
	forward := httputil.NewSingleHostReverseProxy(u)
	forward.Transport = &http.Transport{IdleConnTimeout: 30 * time.Second} // before the server closes a connection
	line := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		heard.find(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(line.Close)
	return line.URL, heard
}

func TestTheCommandSeesItsTokenAndNeverTheKey(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	address, heard := overhear(t, s.URL)
	const foreign = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	r := runScript(t, address, "e --lease 3s --candidate agent-1 --metadata {}",
		"env >$dir/env; cat $REGENT_DEADLINE_FILE >$dir/deadline; echo $REGENT_DEADLINE_FILE >$dir/path"+untilTold,
		"REGENT_KEY="+foreign, "REGENT_TOKEN=99", "REGENT_FENCING_TOKEN=98", "REGENT_OTHER=stays")
	r.await("out", "begun")
	heard.await(t, 3) // acquired, and renewed twice
	keys := append(heard.all(), foreign)
	if len(keys) != 2 {
		t.Fatalf("heard %d keys, want one", len(keys)-1)
	}
	path := strings.TrimSpace(r.text("path"))
	places := map[string]string{"the environment": r.text("env"), "the file": r.text("deadline"), "its folder": listing(t, filepath.Dir(path))}
	pids := []int{r.cmd.Process.Pid}
	for pid := range process.Children(r.cmd.Process.Pid) { // the guard and the command
		pids = append(pids, pid)
	}
	if len(pids) != 3 {
		t.Errorf("regent has %d children, want the command and the guard", len(pids)-1)
	}
	for _, pid := range pids {
		for _, name := range []string{"cmdline", "environ"} {
			if pid == r.cmd.Process.Pid && name == "environ" {
				continue // which is ours to answer for
			}
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err != nil {
				t.Error(err)
			}
			places[fmt.Sprintf("%s of process %d", name, pid)] = string(b)
		}
	}
	r.finish()
	r.end(0)
	places["stderr"] = r.text("err")
	for place, text := range places {
		for _, key := range keys {
			if strings.Contains(text, key) {
				t.Errorf("the key is in %s", place)
			}
		}
	}
	for _, want := range []string{"REGENT_ELECTION=e\n", "REGENT_FENCING_TOKEN=1\n", "REGENT_CANDIDATE_ID=agent-1\n", "REGENT_SERVER=" + address + "\n", "REGENT_OTHER=stays\n", "REGENT_DEADLINE_FILE=" + path + "\n"} {
		if strings.Count(r.text("env"), want) != 1 {
			t.Errorf("not once in the environment: %s", want)
		}
	}
	if strings.Contains(r.text("env"), "REGENT_TOKEN=") {
		t.Error("a token of another leadership is in the environment")
	}
	if !regexp.MustCompile(`^\d+\n\d{4}-\d\d-\d\dT[0-9:.]+Z\n$`).MatchString(r.text("deadline")) {
		t.Errorf("the file says %q", r.text("deadline"))
	}
}

// listing returns all names and all text in a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	var b strings.Builder
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		fmt.Fprintf(&b, "%s\n%s\n", e.Name(), text)
	}
	return b.String()
}
