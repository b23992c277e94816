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

// Exit codes of a command that never began, as env(1) and timeout(1) have them.
const (
	codeNeverBegan  = 125
	codeNotExecuted = 126
	codeNotFound    = 127
)

// gateFile is where the gate hears that it may become the command.
const gateFile = 3

// gate waits for the word, which is the caller's process, and becomes the command. It returns if there is no word, or no such command.
func gate(path string, args []string) int {
	unix.CloseOnExec(gateFile)
	var caller int
	if _, err := fmt.Fscanln(os.NewFile(gateFile, "gate"), &caller); err != nil {
		return codeNeverBegan
	}
	// What the caller ignores for its own sake would be ignored by the command as well; what is caught is not inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGTTOU)
	if err := dieWithParent(); err != nil || os.Getppid() != caller { // looked at last, for a parent that has died sends nothing
		return codeNeverBegan
	}
	err := syscall.Exec(path, args, os.Environ())
	fmt.Fprintf(os.Stderr, "regent: %s: %v\n", path, err)
	if errors.Is(err, fs.ErrNotExist) {
		return codeNotFound
	}
	return codeNotExecuted
}
