//go:build unix

package leash

import (
	"os/exec"
	"syscall"
)

// OwnGroup gives a command that was not started yet a process group, which is killed with it when
// its context ends.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
