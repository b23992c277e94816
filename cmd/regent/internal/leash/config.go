package leash

import (
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// Config says what to run, and until when. NewPrivileges, Moved, Stop,
// Pause and Signals are optional.
type Config struct {
	// Path is the program's file. Args are its arguments; the first is its name.
	Path string
	Args []string
	// Env is the command's environment. Run adds DeadlineVariable, the path of a file with the
	// deadline: in the first line in whole milliseconds of CLOCK_BOOTTIME, in the second as RFC
	// 3339, for people. The file is replaced atomically when the deadline moves, and is removed
	// after the command.
	Env              []string
	DeadlineVariable string
	// NewPrivileges lets the command, and all that it starts, gain privileges: run set-uid programs
	// as their owner. Such a process belongs to another user; if the caller may not signal that
	// user's processes, nothing stops it at the deadline.
	NewPrivileges bool
	// Files are standard input, output and error. If the first is a terminal with the caller in the
	// foreground, the command runs in the foreground.
	Files [3]*os.File

	// Deadline returns when the command must be gone, on boottime.Now. It never moves back. Run
	// calls it again after each receive from Moved.
	Deadline func() time.Duration
	Moved    <-chan struct{}
	// Grace is the time between SIGTERM and SIGKILL. SIGKILL is never later than the deadline.
	Grace time.Duration

	// Stop stops the command before the deadline; what it receives is End.Err then.
	Stop <-chan error
	// Pause stops all processes of the group with SIGSTOP, for true, and continues them, for false.
	// A paused command that is to end, or gets SIGINT, SIGTERM or SIGQUIT, is continued: with that
	// signal pending, so that it does nothing before.
	Pause <-chan bool
	// Signals are passed on to the process group.
	Signals <-chan os.Signal
	Log     *slog.Logger
}

// End says how a command ended.
type End struct {
	// Err is why it was stopped: the context's cause, what Stop received, ErrDeadline or ErrGuard.
	// It is nil if the command ended by itself.
	Err error
	// Code is its exit code or, if a signal killed it, 128 plus the signal's number.
	Code   int
	Signal syscall.Signal // 0 if it exited
	// Passed are the signals that were passed on, each once.
	Passed []os.Signal
	// Terminal says that the command had the terminal, so that it, and not the caller, received the
	// signals of the keyboard.
	Terminal bool
}

var (
	// ErrDeadline says that the command was stopped because the deadline had come or was near.
	ErrDeadline = errors.New("leash: the deadline has come")
	// ErrGuard says that no guard process could be started.
	ErrGuard = errors.New("leash: no guard")
)
