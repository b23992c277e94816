package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"regent/emulators"
)

// passedOn are the signals that are passed on to the command.
var passedOn = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// runCommand runs the command with the variables of the set, and then lists the tests that it
// skipped. An *exec.ExitError is the command's own.
func runCommand(command []string, set *emulators.Set, signals <-chan os.Signal) error {
	skipped, err := newSkippedLog()
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = commandEnv(os.Environ(), set, skipped.path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return errors.Join(err, skipped.end(os.Stderr))
	}
	ctx, ended := context.WithCancel(context.Background())
	go passOn(ctx, signals, cmd.Process)
	err = cmd.Wait()
	ended()
	if endErr := skipped.end(os.Stderr); endErr != nil {
		err = errors.Join(err, endErr)
	}
	return err
}

// commandEnv adds the hosts. If all hosts are known, a forced source is removed: the command must
// use these emulators and start none.
func commandEnv(env []string, set *emulators.Set, skippedLog string) []string {
	if len(set.Missing()) == 0 {
		env = slices.DeleteFunc(env, func(line string) bool { return strings.HasPrefix(line, "REGENT_EMULATORS=") })
	}
	return append(append(env, set.Env()...), "REGENT_SKIPPED_LOG="+skippedLog)
}

func passOn(ctx context.Context, signals <-chan os.Signal, to *os.Process) {
	for {
		select {
		case s := <-signals:
			if fromTerminal(s) {
				continue
			}
			if err := to.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
				fmt.Fprintf(os.Stderr, "emulators: pass on %v: %v\n", s, err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// fromTerminal reports whether the command has already received the signal: a key pressed at a
// terminal signals the whole foreground group. A second Ctrl-C makes many programs exit at once.
func fromTerminal(s os.Signal) bool {
	if s != os.Interrupt && s != syscall.SIGQUIT {
		return false
	}
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
