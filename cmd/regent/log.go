package main

import (
	"io"
	"log/slog"
	"os"

	"regent/leadership/telemetry"
)

// newLog writes lines for a person if w is a terminal, and otherwise JSON with the names that Google's Cloud Logging knows.
func newLog(w io.Writer) *slog.Logger { return newLogTo(w, isTerminal(w), "") }

// newLogTo is newLog for a writer that may stand before a terminal. project is where traces are kept; "" for nowhere.
func newLogTo(w io.Writer, terminal bool, project string) *slog.Logger {
	if terminal {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(telemetry.CloudLogging(w, project, nil))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
