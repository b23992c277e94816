package leash

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes have the gate die with its parent, too.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// dieWithParent asks for the parent-death signal again. It is a thread's, not a process's, and of all threads only the one that executes the
// command lives on: the goroutine stays on it.
func dieWithParent() error {
	runtime.LockOSThread()
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// awaitExit returns when the process has ended, and leaves it to be reaped. One that has the terminal and is stopped, by Ctrl-Z, is made to go on
// at once: there is no shell that could, and nobody leads while stopped.
func awaitExit(p *os.Process, foreground bool) {
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
			unix.Kill(-p.Pid, unix.SIGCONT)
		default:
			return
		}
	}
}

const cldStopped = 5 // CLD_STOPPED of <signal.h>
