//go:build linux

package leash_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/test/machine"
)

const (
	plainUser = 65534 // a user without rights
	// stubborn makes this program print its user, and then ignore all signals that ask it to end.
	stubborn = "LEASH_STUBBORN"
	// allowing makes a caller let its command gain privileges.
	allowing = "LEASH_ALLOWING"
)

// beStubborn becomes root if it can, as sudo does, and prints its user and what the kernel says of
// new privileges.
func beStubborn() {
	_ = syscall.Setuid(0)
	status, _ := os.ReadFile("/proc/self/status")
	_, flag, _ := bytes.Cut(status, []byte("\nNoNewPrivs:"))
	flag, _, _ = bytes.Cut(flag, []byte("\n"))
	fmt.Printf("user %d, no new privileges %s\n", os.Getuid(), bytes.TrimSpace(flag))
	for {
		time.Sleep(time.Hour)
	}
}

// setUID copies this program and makes the copy set-uid to root. Another copy is not.
func setUID(t *testing.T) (program, command string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a program that is set-uid to root")
	}
	dir, err := os.MkdirTemp("", "leash-*") // unlike t.TempDir, in a folder that all users may enter
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.Executable()
	require.NoError(t, err)
	program, command = filepath.Join(dir, "program"), filepath.Join(dir, "command")
	for path, mode := range map[string]os.FileMode{program: 0o755, command: 0o755 | os.ModeSetuid} {
		// Not written by this process: a process that another test starts meanwhile would have the
		// file open for a moment, and a file that is open for writing cannot be executed.
		if out, err := exec.Command("cp", self, path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		require.NoError(t, os.Chmod(path, mode))
	}
	require.NoError(t, os.Chmod(dir, 0o755))
	return program, command
}

// unprivileged starts a caller without rights that runs a command which is set-uid to root. It
// returns the line that the command prints.
func unprivileged(t *testing.T, grace time.Duration, extra ...string) (process *exec.Cmd, line string) {
	t.Helper()
	program, command := setUID(t)
	process = exec.Command(program, command)
	process.Dir = "/"
	process.Env = append([]string{caller + "=" + grace.String(), stubborn + "=1", "TMPDIR=/tmp"}, extra...)
	process.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		killAll(command)
		process.Process.Kill()
		process.Wait()
	})
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return process, strings.TrimSpace(line)
}

// killAll kills all processes that run the program.
func killAll(program string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		var pid int
		if to, err := os.Readlink(link); err == nil && to == program {
			fmt.Sscanf(link, "/proc/%d/exe", &pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestSetUIDCommandGainsNothingAndIsGoneAtTheDeadline(t *testing.T) {
	t.Parallel()
	process, line := unprivileged(t, 2*time.Second)
	if want := fmt.Sprintf("user %d, no new privileges 1", plainUser); line != want {
		t.Errorf("the command says %q, want %q", line, want)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	select {
	case <-ended:
	case <-time.After(machine.Patience):
		t.Fatal("the command outlives its deadline")
	}
	if code := process.ProcessState.ExitCode(); code != 128+int(syscall.SIGKILL) && code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d; want that of a command that was killed", code)
	}
}

func TestSetUIDCommandGainsPrivilegesIfTheyAreAllowed(t *testing.T) {
	t.Parallel()
	if _, line := unprivileged(t, time.Hour, allowing+"=1"); line != "user 0, no new privileges 0" {
		t.Errorf("the command says %q", line)
	}
}

func TestCommandGainsNoPrivileges(t *testing.T) {
	t.Parallel()
	h := hold(t.Context(), t, far, time.Second, `grep ^NoNewPrivs /proc/self/status > $dir/status`)
	if got := strings.Fields(h.text("status")); len(got) != 2 || got[1] != "1" {
		t.Errorf("in what the command starts: %q; want 1", got)
	}
}
