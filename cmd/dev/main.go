// Command dev runs Regent on this machine as it runs on Google Cloud: two instances of regent serve
// on the public emulators of Firestore (or Spanner) and Pub/Sub, with events, members and the
// dashboard. make dev builds regent and runs this:
//
//	make dev [STORE=spanner] [LISTEN=HOST:PORT,HOST:PORT] [PROJECT=P] [ARGS="--mcp"]
//
// It prints the addresses, the variables for other programs, and what to try, and runs until
// SIGINT, SIGTERM or SIGHUP, or until make or the terminal is gone. An instance that ends in
// between is started again after a while, as Cloud Run does. Each child has a guard (see package
// emulators), so that none keeps running however this process ends.
//
// Package emulators describes where the emulators come from.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	err := run(context.Background(), os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "make dev:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	parent := os.Getppid()
	s, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	go func() { untilAbandoned(ctx, parent); abandon() }()
	defer context.AfterFunc(ctx, stop)() // a second signal ends this process at once, and the guards the rest
	return develop(ctx, s, os.Stdout)
}

// untilAbandoned returns when the process that started this one is gone, or the terminal is closed.
// If make leads the session of that terminal, only make gets the SIGHUP, and then waits for this
// process.
func untilAbandoned(ctx context.Context, parent int) {
	for tick := time.NewTicker(time.Second); !abandoned(parent, os.Stdin); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// abandoned reports whether the parent of this process has changed, or the input is a terminal that
// was closed.
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
