//go:build unix

package leash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of a command that was never executed, as in env(1) and timeout(1).
const (
	codeNeverBegan  = 125
	codeNotExecuted = 126
	codeNotFound    = 127
)

// gateFile is the descriptor on which the gate waits for the caller's message.
const gateFile = 3

// gate waits for the caller's message, and then executes the command. It returns an exit code if
// there is no message or no such command.
func gate(path string, args []string) int {
	unix.CloseOnExec(gateFile)
	var caller int         // its PID
	var newPrivileges bool // may the command gain any
	if _, err := fmt.Fscanln(os.NewFile(gateFile, "gate"), &caller, &newPrivileges); err != nil {
		return codeNeverBegan
	}
	if !newPrivileges {
		if err := refusePrivileges(path); err != nil {
			fmt.Fprintf(os.Stderr, "regent: %s: %v\n", path, err)
			return codeNotExecuted
		}
	}
	// The command would inherit signals that the caller ignores; caught signals are reset by exec.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGTTOU)
	// checked last: a parent that is already dead sends no signal
	if err := dieWithParent(); err != nil || os.Getppid() != caller {
		return codeNeverBegan
	}
	err := syscall.Exec(path, args, os.Environ())
	fmt.Fprintf(os.Stderr, "regent: %s: %v\n", path, err)
	if errors.Is(err, fs.ErrNotExist) {
		return codeNotFound
	}
	return codeNotExecuted
}
