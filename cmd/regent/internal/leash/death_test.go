//go:build linux

package leash_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership/boottime"
)

// startCaller starts a process that calls Run with a script, and returns the numbers that the
// script prints first.
func startCaller(t *testing.T, grace time.Duration, script string) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), caller+"="+grace.String())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var numbers []int
	for f := range strings.FieldsSeq(line) {
		n, err := strconv.Atoi(f)
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
	return cmd, numbers
}

// family starts one process in the command's group and one outside, and prints their PIDs.
const family = `trap "" TERM HUP
	export away=$(mktemp -u)
	sh -c 'trap "" TERM HUP; while :; do sleep 0.01; done' & group=$!
	setsid sh -c 'trap "" TERM HUP; : >$away; while :; do sleep 0.01; done' & left=$!
	while [ ! -e $away ]; do sleep 0.01; done; rm $away
	echo $$ $group $left
	while :; do sleep 0.01; done`

func TestKillingTheCallerKillsEverythingItRuns(t *testing.T) {
	t.Parallel()
	cmd, pids := startCaller(t, time.Hour, family)
	cmd.Process.Kill()
	for _, pid := range pids {
		awaitGone(t, pid)
	}
}

func TestGuardEnforcesTheDeadlineOfAStoppedCaller(t *testing.T) {
	t.Parallel()
	const grace = time.Second
	began := boottime.Now()
	cmd, pids := startCaller(t, grace, family)
	cmd.Process.Signal(syscall.SIGSTOP)
	for _, pid := range pids {
		awaitGone(t, pid)
	}
	if took := boottime.Now() - began; took < 3*grace {
		t.Errorf("they were killed after %v, before the deadline in %v", took, 3*grace)
	}
	cmd.Process.Signal(syscall.SIGCONT)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 137 {
		t.Errorf("%v; want 137, the code of the command", err)
	}
}

func TestKernelKillsTheCommandOfADeadCaller(t *testing.T) {
	t.Parallel()
	cmd, pids := startCaller(t, time.Hour, `trap "" TERM HUP; echo $$; while :; do sleep 0.01; done`)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pids[0]))
	require.NoError(t, err)
	_, path, _ := strings.Cut(string(environ), variable+"=")
	path, _, _ = strings.Cut(path, "\x00")
	guard := guardOf(t, path, 0)
	syscall.Kill(guard, syscall.SIGSTOP)
	t.Cleanup(func() { syscall.Kill(guard, syscall.SIGCONT) }) // it finds nothing to do
	cmd.Process.Kill()
	awaitGone(t, pids[0])
}

func TestCommandNeverBeginsIfTheCallerDiedBeforeItsMessage(t *testing.T) {
	t.Parallel()
	neverBegins(t, "")
}

func TestCommandNeverBeginsIfTheCallerDiedAfterItsMessage(t *testing.T) {
	t.Parallel()
	neverBegins(t, fmt.Sprintln(1<<22, false)) // no such process
}

// neverBegins requires that nothing begins after this message of a caller that is gone.
func neverBegins(t *testing.T, message string) {
	word, say, err := os.Pipe()
	require.NoError(t, err)
	fmt.Fprint(say, message)
	say.Close()
	cmd := exec.Command("/proc/self/exe", "run-gate", "/bin/echo", "echo", "begun")
	cmd.ExtraFiles = []*os.File{word}
	if out, err := cmd.Output(); err == nil || len(out) > 0 || cmd.ProcessState.ExitCode() != 125 {
		t.Errorf("%q, %v; want nothing, and code 125", out, err)
	}
}

// startGuardProcess starts a guard directly, over a group that only SIGKILL ends.
func startGuardProcess(t *testing.T) (guard, command *exec.Cmd, order func(deadline time.Duration), hangUp func()) {
	t.Helper()
	const mark = variable + "=/nowhere/at/all/deadline"
	command = exec.Command("/bin/sleep", "3600")
	command.Env = []string{mark}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, command.Start())
	guard = exec.Command("/proc/self/exe", "run-guard", mark)
	in, err := guard.StdinPipe()
	require.NoError(t, err)
	out, err := guard.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, guard.Start())
	t.Cleanup(func() {
		guard.Process.Kill()
		guard.Wait()
		command.Process.Kill()
		command.Wait()
	})
	order = func(deadline time.Duration) {
		t.Helper()
		require.NoError(t, binary.Write(in, binary.NativeEndian, []int64{int64(os.Getpid()), int64(command.Process.Pid), int64(deadline)}))
	}
	order(boottime.Now() + time.Hour)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return guard, command, order, func() { in.Close() }
}

func TestStoppedGuardReadsOrdersBeforeItKills(t *testing.T) {
	t.Parallel()
	guard, command, order, _ := startGuardProcess(t)
	soon := boottime.Now() + 2*time.Second // when the guard is surely stopped
	order(soon)
	guard.Process.Signal(syscall.SIGSTOP)
	order(soon + time.Hour)
	for boottime.Now() < soon {
		<-time.After(soon - boottime.Now())
	}
	guard.Process.Signal(syscall.SIGCONT)
	order(soon + 2*time.Hour)
	<-time.After(200 * time.Millisecond) // a broken guard would kill it now
	if !runs(command.Process.Pid) {
		t.Error("the guard killed what had a later deadline")
	}
}

func TestGuardWithoutACallerKillsAtOnce(t *testing.T) {
	t.Parallel()
	_, command, _, hangUp := startGuardProcess(t)
	hangUp()
	awaitGone(t, command.Process.Pid)
}

func TestGuardSparesAReusedGroup(t *testing.T) {
	t.Parallel()
	other := exec.Command("/bin/sleep", "3600")
	other.Env = []string{}
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		other.Process.Kill()
		other.Wait()
	})
	var order bytes.Buffer
	// as if the PID had belonged to the command before
	binary.Write(&order, binary.NativeEndian, []int64{1 << 22, int64(other.Process.Pid), 0})
	guard := exec.Command("/proc/self/exe", "run-guard", variable+"=/nowhere/at/all/else/deadline")
	guard.Stdin = &order
	if err := guard.Run(); err != nil || !runs(other.Process.Pid) {
		t.Errorf("%v; the other runs: %t", err, runs(other.Process.Pid))
	}
}
