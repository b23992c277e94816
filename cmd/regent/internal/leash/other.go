//go:build !unix

package leash

import (
	"context"
	"errors"
	"log/slog"
	"os"
)

// Signals are those that whoever runs a command passes on.
var Signals = []os.Signal{os.Interrupt}

// Run refuses.
func Run(context.Context, Config) (End, error) {
	return End{}, errors.New("leash: this system has no process groups")
}

// Main has no part to play here.
func Main([]string, *slog.Logger) (code int, played bool) { return 0, false }
