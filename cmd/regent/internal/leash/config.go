package leash

import (
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// Config says what to run, and until when. All but Moved and Signals is needed.
type Config struct {
	// Path is the program's file, and Args its arguments, of which the first is what it is called.
	Path string
	Args []string
	// Env is its environment, to which DeadlineVariable is added: the path of a file that tells the deadline. Its first line is the deadline in
	// whole milliseconds of CLOCK_BOOTTIME, the second is the same as RFC 3339, for people. It is replaced, never written to, as the
	// deadline moves, and is gone after the command.
	Env              []string
	DeadlineVariable string
	// Files are standard input, output and error. If the first is a terminal that the caller has in the foreground, the command has it there.
	Files [3]*os.File

	// Deadline is when the command has to be gone, on boottime.Now. It never moves back. Run asks again each time that Moved rings.
	Deadline func() time.Duration
	Moved    <-chan struct{}
	// Grace is the time between SIGTERM and SIGKILL, of which the second is never later than the deadline.
	Grace time.Duration

	// Signals are passed on to the group.
	Signals <-chan os.Signal
	Log     *slog.Logger
}

// End is how a command ended.
type End struct {
	// Err is why it was stopped: the cause of the context's end, or ErrDeadline, or ErrGuard. It is nil if it ended by itself.
	Err error
	// Code is its exit code or, if a signal killed it, 128 and the signal's number.
	Code   int
	Signal syscall.Signal // 0 if it exited
	// Passed are the signals that were passed on, each once.
	Passed []os.Signal
	// Terminal says that it had the terminal, so that a signal of the keyboard went to it and not to the caller.
	Terminal bool
}

var (
	// ErrDeadline says that the deadline has come, or is so near that the command was stopped.
	ErrDeadline = errors.New("leash: the deadline has come")
	// ErrGuard says that no guard could be had to watch over the command.
	ErrGuard = errors.New("leash: there is no guard")
)
