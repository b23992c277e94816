package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// skippedLog is the file to which package emulators appends a line for each test that it skips,
// because go test does not show them.
type skippedLog struct {
	path string
	own  bool // created here, and removed here
}

// newSkippedLog creates the file, or uses the one that REGENT_SKIPPED_LOG already names.
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

// end writes the skipped tests and the reasons to w, and removes the file. It leaves a file of an
// outer process to that process.
func (l skippedLog) end(w io.Writer) error {
	if !l.own {
		return nil
	}
	text, err := os.ReadFile(l.path)
	if len(text) > 0 {
		_, err = io.WriteString(w, summary(strings.Split(strings.TrimSpace(string(text)), "\n")))
	}
	return errors.Join(err, os.Remove(l.path))
}

// summary lists each reason once, with its tests; a test that was skipped in several parts is
// listed once, with their number.
func summary(lines []string) string {
	causes := map[string]map[string]int{} // number of parts, by cause and test
	for _, line := range lines {
		test, cause, _ := strings.Cut(line, ": ")
		test, _, _ = strings.Cut(test, "/")
		if causes[cause] == nil {
			causes[cause] = map[string]int{}
		}
		causes[cause][test]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "emulators: tests that proved nothing: %d\n", len(lines))
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		fmt.Fprintf(&b, "%s\n  %d: %s\n", cause, len(causes[cause]), names(causes[cause]))
	}
	return b.String()
}

func names(tests map[string]int) string {
	var all []string
	for _, test := range slices.Sorted(maps.Keys(tests)) {
		if parts := tests[test]; parts > 1 {
			test = fmt.Sprintf("%s (%d)", test, parts)
		}
		all = append(all, test)
	}
	return strings.Join(all, ", ")
}
