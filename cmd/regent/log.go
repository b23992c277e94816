package main

import (
	"io"
	"log/slog"
	"os"

	"regent/leadership/telemetry"
)

// newLog logs text if w is a terminal, and otherwise JSON in the form that Cloud Logging reads.
func newLog(w io.Writer) *slog.Logger { return newLogTo(w, isTerminal(w), "") }

// newLogTo is newLog for a writer that may wrap a terminal. project is the Google Cloud project of
// the traces; "" for none.
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
