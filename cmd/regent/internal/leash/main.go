//go:build unix

package leash

import (
	"log/slog"
	"os"
	"runtime"
	"strconv"
)

// The parts that this program plays for itself, by its first argument.
const (
	partGate  = "run-gate"
	partGuard = "run-guard"
)

// Main plays the part of the gate or of the guard, if the process was started for that, and returns its exit code. A program that calls Run has
// to call it first of all in its main, before it ignores or handles any signal. args is os.Args. The guard tells log what it did.
func Main(args []string, log *slog.Logger) (code int, played bool) {
	if len(args) < 3 {
		return 0, false
	}
	switch args[1] {
	case partGate:
		return gate(args[2], args[3:]), true
	case partGuard:
		return stand(args[2], log), true
	}
	return 0, false
}

// self is the program that this process runs, also if its file was replaced since.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/" + strconv.Itoa(os.Getpid()) + "/exe", nil
	}
	return os.Executable()
}
