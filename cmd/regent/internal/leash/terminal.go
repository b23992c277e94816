//go:build unix

package leash

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the one on standard input, if this process has it in the foreground.
type terminal struct {
	file *os.File // nil if there is none
	ours int      // the group that has it otherwise
}

func terminalOf(f *os.File) terminal {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return terminal{}
	}
	return terminal{f, group}
}

// lend puts another group in the foreground, as a shell does. Else its reading would stop it.
func (t terminal) lend(group int) {
	if t.file == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // which stops those who write to a terminal, or take it, from the background
	unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
}

func (t terminal) takeBack() { t.lend(t.ours) }
