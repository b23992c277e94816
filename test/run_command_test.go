package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/test/machine"
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
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
	})
	return r
}

func (r *session) create(name string) *os.File {
	r.t.Helper()
	f, err := os.Create(filepath.Join(r.dir, name))
	require.NoError(r.t, err)
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
	machine.Eventually(r.t, fmt.Sprintf("%v: %q is in %s", r.cmd.Args[1:], text, name), func() bool { return strings.Contains(r.text(name), text) })
	return r.text(name)
}

// end waits for the end, and expects one of these exit codes.
func (r *session) end(want ...int) {
	r.t.Helper()
	timer := time.AfterFunc(machine.Patience, func() { r.cmd.Process.Kill() })
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
	runScript(t, unreachable, "e --wait 5s", "true").end(5)

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
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGHUP: 129} {
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

func TestWithRestartACommandRunsAgainUntilASignal(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --restart", "echo token $REGENT_FENCING_TOKEN; test $REGENT_FENCING_TOKEN -lt 3 && exit 1; trap 'exit 4' TERM; "+untilTold)
	if out := r.await("out", "begun"); out != "token 1\ntoken 2\ntoken 3\nbegun\n" {
		t.Errorf("%q", out)
	}
	r.signal(syscall.SIGTERM)
	r.end(4)
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
	var keys []string
	machine.Eventually(t, "it has acquired, and renewed twice", func() (thrice bool) {
		var times int
		keys, times = heard.all()
		return times >= 3
	})
	if keys = append(keys, foreign); len(keys) != 2 {
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

// order gives an operator's order about the election e.
func (s *server) order(t *testing.T, c leadership.Order) {
	t.Helper()
	c.Actor, c.Reason = "olga", "a test"
	if _, err := s.client.Do(t.Context(), c.In("e")); err != nil {
		t.Fatalf("%s: %v", c.Kind, err)
	}
}

// awaitReport waits until the election e has this report.
func (s *server) awaitReport(t *testing.T, want string) {
	t.Helper()
	machine.Eventually(t, "the report is "+want, func() bool {
		got, err := s.client.Get(t.Context(), "e")
		return err == nil && string(got.Report) == want
	})
}

func TestASignalDuringANewEpochStartsNoCommand(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 6s --grace 2s", `echo token $REGENT_FENCING_TOKEN; trap 'echo asked; n=x$n; test $n = xx && exit 9' TERM`+untilTold)
	r.await("out", "begun")
	s.order(t, leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true})
	r.await("out", "asked")
	r.signal(15)
	r.end(9)
	if strings.Contains(r.text("out"), "token 2") {
		t.Errorf("it began again: %s", r.text("out"))
	}
}

func TestTheReportOfACommandReachesTheElection(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	script := `echo '{"progress":3,"health":"ok"}' >$REGENT_REPORT_FILE; echo begun
		until test -e $dir/second; do sleep 0.01; done
		echo '{"progress":4,"tasks":1}' >$REGENT_REPORT_FILE.new; mv $REGENT_REPORT_FILE.new $REGENT_REPORT_FILE
		until test -e $dir/third; do sleep 0.01; done; rm $dir/third
		echo '{"progres":5}' >$REGENT_REPORT_FILE` + untilTold
	file := t.TempDir() + "/report.json"
	r := runScript(t, s.URL, "e --lease 3s --report-file "+file, script)
	s.awaitReport(t, `{"progress":3,"health":"ok"}`)
	r.create("second")
	s.awaitReport(t, `{"progress":4,"tasks":1,"health":"ok"}`)
	r.create("third")
	r.await("err", `"the report of the command is ignored"`)
	s.order(t, leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true})
	// the command starts anew, and its counters add to those before
	r.await("err", "a new epoch has begun")
	s.awaitReport(t, `{"progress":8,"tasks":2,"health":"ok"}`)
	if n := strings.Count(r.text("err"), "is ignored"); n != 1 {
		t.Errorf("it was said %d times that a report is ignored:\n%s", n, r.text("err"))
	}
	r.create("third")
	r.finish()
	r.end(0)
}

func TestTheLinesOfACommandAreItsProgress(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 3s --progress-from-output", "echo one; echo two; echo three >&2; printf unfinished"+untilTold+"; seq 20000")
	s.awaitReport(t, `{"progress":3}`) // the line that says "begun", too
	r.finish()
	r.end(0)
	if out := r.text("out"); !strings.HasPrefix(out, "one\ntwo\nunfinishedbegun\n1\n") || !strings.HasSuffix(out, "\n20000\n") || strings.Count(out, "\n") != 20003 {
		t.Errorf("the output is not passed on as it is: %d bytes, %.60q", len(out), out)
	}
}
