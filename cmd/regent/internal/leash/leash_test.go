//go:build linux

package leash_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regent/cmd/regent/internal/leash"
	"regent/leadership/boottime"
	"regent/test/machine"
)

const (
	variable = "LEASH_DEADLINE_FILE"
	// caller makes this program run the command of its arguments, for tests that kill the caller.
	caller = "LEASH_CALLER"
)

func TestMain(m *testing.M) {
	if code, played := leash.Main(os.Args, slog.New(slog.DiscardHandler)); played {
		os.Exit(code)
	}
	if os.Getenv(stubborn) != "" && os.Getenv(variable) != "" { // the command of a caller
		beStubborn()
	}
	if grace, err := time.ParseDuration(os.Getenv(caller)); err == nil {
		os.Exit(beCaller(grace))
	}
	machine.MainTogether(m, 0)
}

// beCaller runs a command with a fixed deadline, three times the grace from now.
func beCaller(grace time.Duration) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, leash.Signals...)
	deadline := boottime.Now() + 3*grace
	end, err := leash.Run(context.Background(), leash.Config{
		Path: os.Args[1], Args: os.Args[1:], Env: os.Environ(), DeadlineVariable: variable,
		Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Signals: signals, NewPrivileges: os.Getenv(allowing) != "",
		Deadline: func() time.Duration { return deadline }, Grace: grace, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 99
	}
	return end.Code
}

type held struct {
	t       *testing.T
	moved   chan struct{}
	pause   chan bool
	signals chan os.Signal
	dir     string
	ended   chan struct{}
	end     leash.End
}

// hold runs a script in sh. The script may use $dir, its own folder, and stand, which waits until
// the file of that name exists there.
func hold(ctx context.Context, t *testing.T, deadline func() time.Duration, grace time.Duration, script string) *held {
	t.Helper()
	return holdAndLog(ctx, t, deadline, grace, script, slog.DiscardHandler)
}

func holdAndLog(ctx context.Context, t *testing.T, deadline func() time.Duration, grace time.Duration, script string, log slog.Handler) *held {
	t.Helper()
	h := &held{t: t, moved: make(chan struct{}, 1), pause: make(chan bool), signals: make(chan os.Signal, 1), dir: t.TempDir(), ended: make(chan struct{})}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	go func() {
		defer close(h.ended)
		defer null.Close()
		h.end, err = leash.Run(ctx, leash.Config{
			Path: "/bin/sh", Args: []string{"sh", "-c", "stand() { while ! test -e $dir/$1; do sleep 0.01; done; }\n" + script},
			Env: []string{"PATH=" + os.Getenv("PATH"), "dir=" + h.dir}, DeadlineVariable: variable,
			Files: [3]*os.File{null, null, os.Stderr}, Signals: h.signals, Pause: h.pause,
			Deadline: deadline, Moved: h.moved, Grace: grace, Log: slog.New(log),
		})
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { h.wait() })
	return h
}

func far() time.Duration { return boottime.Now() + 24*time.Hour }

func (h *held) wait() leash.End {
	h.t.Helper()
	select {
	case <-h.ended:
	case <-time.After(machine.Patience):
		h.t.Fatal("the command does not end")
	}
	return h.end
}

// text waits for a file that the script writes, up to the end of a line.
func (h *held) text(name string) string {
	h.t.Helper()
	var text []byte
	machine.Eventually(h.t, name+" is written", func() bool {
		text, _ = os.ReadFile(filepath.Join(h.dir, name))
		return bytes.HasSuffix(text, []byte("\n"))
	})
	return strings.TrimSuffix(string(text), "\n")
}

func (h *held) pid(name string) int {
	h.t.Helper()
	pid, err := strconv.Atoi(h.text(name))
	require.NoError(h.t, err)
	return pid
}

// allow lets a script continue past stand.
func (h *held) allow(name string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, name), nil, 0o600))
}

// runs reports whether a process runs; a zombie does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	machine.Eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return !runs(pid) })
}

func TestACommandEndsByItself(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]leash.End{
		"exit 0":        {},
		"exit 7":        {Code: 7},
		"kill -KILL $$": {Code: 137, Signal: syscall.SIGKILL},
		"kill -PIPE $$": {Code: 141, Signal: syscall.SIGPIPE},
	} {
		end := hold(t.Context(), t, far, time.Second, script).wait()
		if end.Code != want.Code || end.Signal != want.Signal || end.Err != nil {
			t.Errorf("%s: %+v, want %+v", script, end, want)
		}
	}
}

func TestACommandThatCannotBeExecutedHasTheShellsCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("\x7fELF"), 0o700))
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	for path, want := range map[string]int{text: 126, dir: 126, filepath.Join(dir, "nothing"): 127} {
		end, err := leash.Run(t.Context(), leash.Config{
			Path: path, Args: []string{path}, DeadlineVariable: variable, Files: [3]*os.File{null, null, null},
			Deadline: far, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil || end.Code != want {
			t.Errorf("%s: %+v, %v; want code %d", path, end, err, want)
		}
	}
}

func TestTheDeadlineIsInAFileThatMovesWithIt(t *testing.T) {
	t.Parallel()
	deadlines := make(chan time.Duration, 1)
	deadlines <- boottime.Now() + time.Hour
	deadline := func() time.Duration {
		d := <-deadlines
		deadlines <- d
		return d
	}
	h := hold(t.Context(), t, deadline, time.Second, `
		echo $LEASH_DEADLINE_FILE >$dir/path
		head -1 $LEASH_DEADLINE_FILE >$dir/first
		stand moved
		head -1 $LEASH_DEADLINE_FILE >$dir/second
		stand over`)
	first := deadline()
	if got := h.text("first"); got != fmt.Sprint(first.Milliseconds()) {
		t.Errorf("the file says %s, want %d", got, first.Milliseconds())
	}
	<-deadlines
	deadlines <- first + time.Minute
	h.moved <- struct{}{}
	path := h.text("path")
	want := fmt.Sprint((first + time.Minute).Milliseconds())
	machine.Eventually(t, "the file says "+want, func() bool {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		line, _, _ := strings.Cut(string(b), "\n")
		return line == want
	})
	h.allow("moved")
	if got := h.text("second"); got != want {
		t.Errorf("the file says %s, want %s", got, want)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v; want that only its user may read it", info, err)
	}
	h.allow("over")
	h.wait()
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
}

var errOver = errors.New("over")

func TestEndOfContextSendsSIGTERM(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	h := hold(ctx, t, far, time.Hour, "trap 'exit 3' TERM; echo >$dir/ready; stand never")
	h.text("ready")
	cancel(errOver)
	if end := h.wait(); end.Err != errOver || end.Code != 3 {
		t.Errorf("%+v; want the cause, and code 3", end)
	}
}

func TestCommandThatIgnoresSIGTERMIsKilledAfterTheGrace(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	h := hold(ctx, t, far, 100*time.Millisecond, "trap '' TERM; echo >$dir/ready; stand never")
	h.text("ready")
	began := boottime.Now()
	cancel(errOver)
	end := h.wait()
	if took := boottime.Now() - began; end.Signal != syscall.SIGKILL || took < 100*time.Millisecond {
		t.Errorf("%+v after %v; want SIGKILL, and not before 100ms", end, took)
	}
}

func TestCallerKillsWhileTheGuardIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	h := hold(ctx, t, far, 100*time.Millisecond, "trap '' TERM; echo $LEASH_DEADLINE_FILE >$dir/path; stand never")
	syscall.Kill(guardOf(t, h.text("path"), 0), syscall.SIGSTOP)
	cancel(errOver)
	if end := h.wait(); end.Signal != syscall.SIGKILL {
		t.Errorf("%+v; want SIGKILL", end)
	}
}

func TestACommandIsStoppedBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	const grace = time.Hour // time to end in
	deadline := boottime.Now() + grace + time.Second
	h := hold(t.Context(), t, func() time.Duration { return deadline }, grace, "trap 'cat /proc/uptime >$dir/asked; exit 3' TERM; stand never")
	end := h.wait()
	if !errors.Is(end.Err, leash.ErrDeadline) || end.Code != 3 {
		t.Errorf("%+v; want ErrDeadline, and code 3", end)
	}
	asked, err := strconv.ParseFloat(strings.Fields(h.text("asked"))[0], 64)
	if left := deadline - time.Duration(asked*float64(time.Second)); err != nil || left > grace+10*time.Millisecond { // uptime is that coarse
		t.Errorf("it was asked %v before the deadline, %v; want %v", left, err, grace)
	}
}

func TestProcessesLeftByTheCommandAreKilled(t *testing.T) {
	t.Parallel()
	h := hold(t.Context(), t, far, time.Second, `
		sh -c 'trap "" TERM HUP; echo $$ >$dir/group; stand() { while :; do sleep 0.01; done; }; stand' &
		setsid sh -c 'echo $$ >$dir/left; while :; do sleep 0.01; done' &
		(setsid setsid sh -c 'echo $$ >$dir/daemon; while :; do sleep 0.01; done' &)
		stand over; exit 5`)
	pids := []int{h.pid("group"), h.pid("left"), h.pid("daemon")}
	h.allow("over")
	if end := h.wait(); end.Code != 5 || end.Err != nil {
		t.Errorf("%+v; want code 5", end)
	}
	for _, pid := range pids {
		if runs(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
}

func guardOf(t *testing.T, path string, not int) int {
	t.Helper()
	guard := 0
	machine.Eventually(t, "there is a guard", func() bool {
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			pid, err := strconv.Atoi(e.Name())
			if err == nil && pid != not && strings.HasSuffix(string(args), "\x00run-guard\x00"+variable+"="+path+"\x00") {
				guard = pid
			}
		}
		return guard > 0
	})
	return guard
}

func TestAGuardThatDiedIsReplacedAndTheCommandGoesOn(t *testing.T) {
	t.Parallel()
	h := hold(t.Context(), t, far, time.Second, "echo $LEASH_DEADLINE_FILE >$dir/path; stand over; exit 5")
	path := h.text("path")
	guard := 0
	for range 3 {
		guard = guardOf(t, path, guard)
		syscall.Kill(guard, syscall.SIGKILL)
	}
	guardOf(t, path, guard)
	h.allow("over")
	if end := h.wait(); end.Code != 5 || end.Err != nil {
		t.Errorf("%+v; want code 5", end)
	}
}

func TestAGuardThatIsStoppedIsReplaced(t *testing.T) {
	t.Parallel()
	h := hold(t.Context(), t, far, time.Second, "echo $LEASH_DEADLINE_FILE >$dir/path; stand over; exit 5")
	path := h.text("path")
	guard := guardOf(t, path, 0)
	syscall.Kill(guard, syscall.SIGSTOP)
	h.moved <- struct{}{} // the guard is stopped and does not answer
	h.moved <- struct{}{}
	h.moved <- struct{}{}
	awaitGone(t, guard)
	guardOf(t, path, guard)
	h.allow("over")
	if end := h.wait(); end.Code != 5 || end.Err != nil {
		t.Errorf("%+v; want code 5", end)
	}
}

// stalled is a log whose reader has stopped: a full pipe.
type stalled struct {
	slog.Handler
	full chan struct{}
}

func (s stalled) Handle(context.Context, slog.Record) error {
	<-s.full
	return nil
}

func TestBlockedLogDoesNotKeepACommandAliveWithoutItsGuard(t *testing.T) {
	t.Parallel()
	var stands atomic.Int64 // a deadline that is no longer moved on
	deadline := func() time.Duration { return cmp.Or(time.Duration(stands.Load()), boottime.Now()+4*time.Second) }
	full := make(chan struct{})
	h := holdAndLog(t.Context(), t, deadline, 300*time.Millisecond, "echo $LEASH_DEADLINE_FILE >$dir/path; echo $$ >$dir/pid; stand never", stalled{slog.DiscardHandler, full})
	pid, guard := h.pid("pid"), guardOf(t, h.text("path"), 0)
	stands.Store(int64(deadline()))
	syscall.Kill(guard, syscall.SIGKILL)
	awaitGone(t, pid) // while the log is blocked
	close(full)
	h.wait()
}

func TestTheGuardHasNoEnvironmentAndASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	h := hold(t.Context(), t, far, time.Second, "echo $LEASH_DEADLINE_FILE >$dir/path; stand over")
	guard := guardOf(t, h.text("path"), 0)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", guard))
	if err != nil || len(environ) > 0 {
		t.Errorf("environment %q, %v; want none", environ, err)
	}
	if session, err := unix.Getsid(guard); err != nil || session != guard {
		t.Errorf("session %d, %v; want its own", session, err)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		syscall.Kill(guard, s)
	}
	h.allow("over")
	if end := h.wait(); end.Err != nil || !runs(os.Getpid()) {
		t.Errorf("%+v", end)
	}
}
