// Package need ends tests that cannot run on a machine, and says what was not tested.
package need

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// All reports whether a test may not be left out: REGENT_REQUIRE_EMULATORS is 1.
func All() bool { return os.Getenv("REGENT_REQUIRE_EMULATORS") == "1" }

// Lacks skips a test that lacks something on this machine, or fails it if All. The reason says what
// is missing and how to get it. go test shows it only with -v, so it is also appended to the file
// that REGENT_SKIPPED_LOG names.
func Lacks(tb testing.TB, why string) {
	tb.Helper()
	if All() {
		tb.Fatalf("%s. REGENT_REQUIRE_EMULATORS is 1, so this is an error.", why)
	}
	text := "SKIPPED, NOT PROVED: " + why + ". With REGENT_REQUIRE_EMULATORS=1 this is an error."
	if err := appendSkipped(tb.Name(), text); err != nil {
		tb.Errorf("report a skipped test: %v", err)
	}
	tb.Skip(text)
}

// Programs ends a test that Lacks one of the programs.
func Programs(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Lacks(tb, "there is no "+name+"; install it")
		}
	}
}

func appendSkipped(test, text string) error {
	path := os.Getenv("REGENT_SKIPPED_LOG")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s: %s\n", filepath.Base(os.Args[0]), test, text)
	return errors.Join(err, f.Close())
}
