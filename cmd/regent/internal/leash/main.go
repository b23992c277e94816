//go:build unix

package leash

import (
	"log/slog"
	"os"
	"runtime"
	"strconv"
)

// The roles of the helper processes, as their first argument.
const (
	roleGate  = "run-gate"
	roleGuard = "run-guard"
)

// Main runs the gate or the guard if the process was started as one, and returns its exit code. A
// program that calls Run must call Main first in its main, before it ignores or handles any signal.
// args is os.Args. The guard logs to log.
func Main(args []string, log *slog.Logger) (code int, played bool) {
	if len(args) < 3 {
		return 0, false
	}
	switch args[1] {
	case roleGate:
		return gate(args[2], args[3:]), true
	case roleGuard:
		return guardMain(args[2], log), true
	}
	return 0, false
}

// self returns the program that this process runs, even if its file was replaced.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/" + strconv.Itoa(os.Getpid()) + "/exe", nil
	}
	return os.Executable()
}
