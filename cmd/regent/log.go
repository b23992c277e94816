package main

import (
	"io"
	"log/slog"
	"os"
	"time"
)

// newLog writes lines for a person if w is a terminal, and otherwise JSON with the names that Google's Cloud Logging knows.
func newLog(w io.Writer) *slog.Logger { return newLogTo(w, isTerminal(w)) }

func newLogTo(w io.Writer, terminal bool) *slog.Logger {
	if terminal {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: cloudLogging}))
}

func cloudLogging(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration { // else a bare number of nanoseconds
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "message"
	case slog.LevelKey:
		a.Key = "severity"
		if a.Value.Any() == slog.LevelWarn {
			a.Value = slog.StringValue("WARNING")
		}
	}
	return a
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
