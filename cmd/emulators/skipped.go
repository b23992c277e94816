package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// skippedLog is the file to which package emulators appends a line for each test
// that it skips, because go test keeps such lines to itself.
type skippedLog struct {
	path string
	own  bool // made here, and removed here
}

// newSkippedLog makes the file, or takes the one that REGENT_SKIPPED_LOG names
// already.
func newSkippedLog() (skippedLog, error) {
	if path := os.Getenv("REGENT_SKIPPED_LOG"); path != "" {
		return skippedLog{path: path}, nil
	}
	f, err := os.CreateTemp("", "regent-skipped-*.log")
	if err != nil {
		return skippedLog{}, err
	}
	return skippedLog{path: f.Name(), own: true}, f.Close()
}

// tell writes the lines to w, if there are any. A file that belongs to someone
// further out is left for them to tell of.
func (l skippedLog) tell(w io.Writer) error {
	if !l.own {
		return nil
	}
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[0] == "" {
		return nil
	}
	slices.Sort(lines)
	_, err = fmt.Fprintf(w, "emulators: tests that proved nothing: %d\n%s\n", len(lines), strings.Join(lines, "\n"))
	return err
}

func (l skippedLog) close() error {
	if !l.own {
		return nil
	}
	if err := os.Remove(l.path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
