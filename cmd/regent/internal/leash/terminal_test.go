//go:build linux

package leash_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regent/emulators/need"
	"regent/test/machine"
)

// onTerminal starts a caller of Run with a script on a terminal of its own, and returns the other
// end.
func onTerminal(t *testing.T, script string) (*exec.Cmd, *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		need.Lacks(t, fmt.Sprintf("no terminal can be had here: %v", err))
	}
	t.Cleanup(func() { keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	require.NoError(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()
	cmd := exec.Command("/proc/self/exe", "/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), caller+"=1h")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	stop := time.AfterFunc(machine.Patience, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		stop.Stop()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, keyboard
}

func hear(t *testing.T, from *bufio.Reader, text string) {
	t.Helper()
	var heard strings.Builder
	for !strings.Contains(heard.String(), text) {
		line, err := from.ReadString('\n')
		heard.WriteString(line)
		if err != nil {
			t.Fatalf("%q, and then %v; want %q", heard.String(), err, text)
		}
	}
}

func TestTheCommandHasTheTerminal(t *testing.T) {
	t.Parallel()
	cmd, keyboard := onTerminal(t, "echo begun; read line; echo heard $line; read line; exit 4")
	screen := bufio.NewReader(keyboard)
	hear(t, screen, "begun")
	fmt.Fprintln(keyboard, "hello")
	hear(t, screen, "heard hello")
	fmt.Fprint(keyboard, "\x1a") // Ctrl-Z
	fmt.Fprintln(keyboard, "again")
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("%v; want 4", cmd.ProcessState)
	}
}

func TestTheKeyboardInterruptsTheCommand(t *testing.T) {
	t.Parallel()
	cmd, keyboard := onTerminal(t, "echo begun; while :; do sleep 0.01; done")
	hear(t, bufio.NewReader(keyboard), "begun")
	fmt.Fprint(keyboard, "\x03")
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v; want 130", cmd.ProcessState)
	}
}
