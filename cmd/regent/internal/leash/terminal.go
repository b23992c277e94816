//go:build unix

package leash

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is standard input, if it is a terminal with this process in the foreground.
type terminal struct {
	file *os.File // nil if there is none
	ours int      // this process's group
}

func terminalOf(f *os.File) terminal {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return terminal{}
	}
	return terminal{f, group}
}

// lend puts another group in the foreground, as a shell does. In the background, reading would stop
// it.
func (t terminal) lend(group int) {
	if t.file == nil {
		return
	}
	// it stops background processes that write to a terminal or change its foreground
	signal.Ignore(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
}

func (t terminal) takeBack() { t.lend(t.ours) }
