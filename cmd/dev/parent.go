package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// untilAbandoned returns when the process that started this one is gone, or the terminal is closed.
// A make that leads the session of that terminal gets its SIGHUP alone, and then waits for us.
func untilAbandoned(ctx context.Context, parent int) {
	for tick := time.NewTicker(time.Second); !abandoned(parent, os.Stdin); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// abandoned reports whether this process has another parent now, or the input is a terminal that is
// closed.
func abandoned(parent int, input *os.File) bool {
	if os.Getppid() != parent {
		return true
	}
	info, err := input.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 { // the end of a pipe says nothing
		return false
	}
	fds := []unix.PollFd{{Fd: int32(input.Fd())}}
	_, err = unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&unix.POLLHUP != 0
}
