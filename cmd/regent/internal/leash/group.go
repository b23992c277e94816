//go:build unix

package leash

import (
	"log/slog"
	"os/exec"
	"syscall"
	"time"
)

const (
	minLook = time.Millisecond
	maxLook = 50 * time.Millisecond
)

// slowDeath is after how long a process that does not die is logged: it is in an uninterruptible
// sleep, or belongs to another user.
const slowDeath = time.Second

// OwnGroup gives a command that was not started yet a process group, which is killed with it when
// its context ends.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// end kills the group and the processes that left it, and returns once all have ended.
// One SIGKILL reaches the whole group, because a fork fails while it is pending. Processes that
// left are searched for until none is found.
func (g *group) end(log *slog.Logger) {
	slow := time.AfterFunc(slowDeath, func() { log.Error("the command was killed and is not gone; waiting for it") })
	defer slow.Stop()
	for pause := minLook; ; pause = min(2*pause, maxLook) {
		g.signal(syscall.SIGKILL)
		if !g.sweep() {
			return
		}
		time.Sleep(pause)
	}
}
