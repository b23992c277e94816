//go:build !unix

package leash

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
)

// Signals are the signals that the caller of Run passes on.
var Signals = []os.Signal{os.Interrupt}

// Run returns an error: only Unix is supported.
func Run(context.Context, Config) (End, error) {
	return End{}, errors.New("leash: this system has no process groups")
}

// Main does nothing on this system.
func Main([]string, *slog.Logger) (code int, played bool) { return 0, false }

// OwnGroup does nothing: a command that is killed leaves what it has started.
func OwnGroup(*exec.Cmd) {}
