package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/machine"
	"regent/test/process"
)

// worker is a command that prints the token under which it leads, and that it was told to stop.
const worker = `trap 'echo stopping $REGENT_FENCING_TOKEN; exit 7' TERM; echo leads $REGENT_FENCING_TOKEN; while :; do sleep 0.05; done`

// wrapper is a `regent run`.
type wrapper struct {
	*exec.Cmd
	log   *os.File
	lines *bufio.Scanner // of the command
}

func startRun(t *testing.T, env []string, args ...string) *wrapper {
	t.Helper()
	return startCommand(t, env, append([]string{"run"}, args...)...)
}

// startCommand starts a `regent run` or a `regent once`.
func startCommand(t *testing.T, env []string, args ...string) *wrapper {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(process.Environ(beRegent, "HOME="+t.TempDir()), env...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		io.Copy(io.Discard, out)
		cmd.Wait()
	})
	return &wrapper{cmd, log, bufio.NewScanner(out)}
}

// says waits for the next line of the command.
func (r *wrapper) says(t *testing.T, want string) {
	t.Helper()
	if !r.lines.Scan() || r.lines.Text() != want {
		t.Fatalf("the command says %q, want %q; the log is\n%s", r.lines.Text(), want, r.logged())
	}
}

func (r *wrapper) logged() string {
	text, _ := os.ReadFile(r.log.Name())
	return string(text)
}

// ends waits for its end.
func (r *wrapper) ends(t *testing.T, code int) {
	t.Helper()
	for r.lines.Scan() {
	}
	r.Wait()
	if got := r.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d; the log is\n%s", got, code, r.logged())
	}
}

// eventTypes returns the types of an election's events.
func eventTypes(t *testing.T, env []string) (types []leadership.EventType) {
	t.Helper()
	for line := range strings.Lines(regent(t, env, "history reports --output json").want(t, exitDone).out) {
		var e wire.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		types = append(types, e.Type)
	}
	return types
}

// awaitWaiting waits until a candidate waits in line.
func awaitWaiting(t *testing.T, env []string) {
	t.Helper()
	machine.Eventually(t, "a candidate waits", func() bool {
		return strings.Contains(regent(t, env, "members reports --output json").want(t, exitDone).out, `"position":1`)
	})
}

func TestARunHandsOverToTheOneThatWaitsBeforeItsCommandIsStopped(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	ready := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	first := startRun(t, p.env, "reports", "--candidate", "ann", "--hand-over", "--within", "5m", "--", "sh", "-c", worker)
	first.says(t, "leads 1")
	second := startRun(t, p.env, "reports", "--candidate", "bob", "--hand-over", "--on-succession",
		"echo $REGENT_LEADER_ID $REGENT_LEADER_TOKEN $REGENT_CANDIDATE_ID >"+ready+"; cat <"+ready+" >/dev/null", "--", "sh", "-c", worker)
	awaitWaiting(t, p.env)
	first.Process.Signal(syscall.SIGTERM)

	told, err := os.ReadFile(ready) // blocks until it loads
	if err != nil || string(told) != "ann 1 bob\n" {
		t.Errorf("the successor is told %q (%v)", told, err)
	}
	if l := regent(t, p.env, "status reports").want(t, exitDone); !strings.Contains(l.out, "to bob, which is not ready yet") {
		t.Errorf("while the successor loads:\n%s", l.out)
	}
	if err := os.WriteFile(ready, []byte("done"), 0o600); err != nil { // now it is loaded
		t.Fatal(err)
	}
	first.says(t, "stopping 1")
	first.ends(t, 7)
	second.says(t, "leads 2")
	want := []leadership.EventType{
		leadership.EventAcquired, leadership.EventHandingOver, leadership.EventReady, leadership.EventYielded, leadership.EventReleased, leadership.EventAcquired,
	}
	if got := eventTypes(t, p.env); !slices.Equal(got, want) {
		t.Errorf("the history is %v, want %v", got, want)
	}

	second.Process.Signal(syscall.SIGTERM) // no candidate waits
	second.says(t, "stopping 2")
	second.ends(t, 7)
	if got := eventTypes(t, p.env); got[len(got)-1] != leadership.EventReleased {
		t.Errorf("without a candidate that waits, the history ends with %v", got[len(got)-1])
	}
	if log := second.logged(); !strings.Contains(log, "no candidate waits") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

func TestASecondSignalDoesNotWaitForTheSuccessor(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	loads := filepath.Join(t.TempDir(), "loads")
	require.NoError(t, syscall.Mkfifo(loads, 0o600))
	first := startRun(t, p.env, "reports", "--candidate", "ann", "--hand-over", "--within", "10m", "--", "sh", "-c", worker)
	first.says(t, "leads 1")
	second := startRun(t, p.env, "reports", "--candidate", "bob", "--on-succession", "echo loads >"+loads+"; sleep 3600", "--", "sh", "-c", worker)
	awaitWaiting(t, p.env)
	first.Process.Signal(syscall.SIGTERM)
	if _, err := os.ReadFile(loads); err != nil {
		t.Fatal(err)
	}
	first.Process.Signal(syscall.SIGTERM)
	first.says(t, "stopping 1")
	first.ends(t, 7)
	second.says(t, "leads 2") // it waits in line, as before
	if got := eventTypes(t, p.env); slices.Contains(got, leadership.EventYielded) {
		t.Errorf("the history is %v", got)
	}
	if log := first.logged(); !strings.Contains(log, "without waiting for the successor") {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

func TestARunGivesItsCommandTheInheritedCheckpoint(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	const show = `if [ -n "$REGENT_INHERITED_FILE" ]; then cat "$REGENT_INHERITED_FILE"; else echo nothing; fi`
	r := startRun(t, append(p.env, "REGENT_INHERITED_FILE=/etc/passwd"), "reports", "--inherit", "--", "sh", "-c", show)
	r.says(t, "nothing")
	r.ends(t, exitDone)
	ann := append(p.env, "REGENT_CANDIDATE=ann", "REGENT_KEY="+testKey(1), "REGENT_TOKEN=2")
	regent(t, ann, "acquire reports").want(t, exitDone)
	regentReading(t, `{"done":4}`, ann, "checkpoint put reports --task nightly").want(t, exitDone)
	regent(t, ann, "release reports").want(t, exitDone)
	r = startRun(t, p.env, "reports", "--inherit", "--", "sh", "-c", show+"; echo; echo $REGENT_INHERITED_FILE")
	if !r.lines.Scan() {
		t.Fatal(r.logged())
	}
	var got leadership.Inheritance
	if err := json.Unmarshal([]byte(r.lines.Text()), &got); err != nil || got.LeaderID != "ann" || got.Task != "nightly" || string(got.Data) != `{"done":4}` || got.EndedBecause != "released" {
		t.Errorf("%s (%v)", r.lines.Text(), err)
	}
	r.says(t, "")
	r.lines.Scan()
	file := r.lines.Text()
	r.ends(t, exitDone)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%q is left: %v", file, err)
	}
}
