package leash

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes make the kernel kill the gate when its parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// dieWithParent asks for the parent-death signal again. It belongs to a thread, and only the thread
// that executes the command survives, so the goroutine stays locked to it.
func dieWithParent() error {
	runtime.LockOSThread()
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// refusePrivileges makes the kernel ignore set-uid bits, set-gid bits and file capabilities in what
// this thread and its descendants execute. It cannot be undone. Without it a set-uid command would
// run as a user whom the caller may not signal.
func refusePrivileges(string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("the kernel does not keep it from gaining privileges: %w", err)
	}
	return nil
}

// awaitExit returns when the process has exited, without reaping it. A process that has the
// terminal and is stopped by Ctrl-Z is continued at once, unless it is paused: no shell could
// continue it, and a stopped process cannot lead.
func awaitExit(p *os.Process, foreground bool, paused *atomic.Bool) {
	events := unix.WEXITED
	if foreground {
		events |= unix.WSTOPPED
	}
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Pid, &info, events|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && info.Code == cldStopped:
			unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED|unix.WNOHANG, nil)
			if !paused.Load() {
				unix.Kill(-p.Pid, unix.SIGCONT)
			}
		default:
			return
		}
	}
}

const cldStopped = 5 // CLD_STOPPED of <signal.h>
