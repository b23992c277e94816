package emulators

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that records how it was ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "TestOfSomething" }
func (r *recorder) Skip(args ...any) {
	r.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func record(set *Set, err error) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hostOf(r, KindFirestore, set, err)
	}()
	<-done
	return r
}

func TestMissingEmulatorSkipsAndSaysWhatWasNotTested(t *testing.T) {
	log := filepath.Join(t.TempDir(), "skipped")
	t.Setenv("REGENT_SKIPPED_LOG", log)
	t.Setenv("REGENT_REQUIRE_EMULATORS", "")
	for range 2 {
		got := record(nil, fmt.Errorf("here: %w", ErrUnavailable))
		if got.failed != "" || !strings.HasPrefix(got.skipped, "SKIPPED, NOT PROVED: nothing was tested against the Firestore emulator: here") {
			t.Fatalf("skipped %q, failed %q", got.skipped, got.failed)
		}
	}
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	if n := strings.Count(string(text), "TestOfSomething: SKIPPED, NOT PROVED"); n != 2 {
		t.Errorf("the log has %d tests, want 2:\n%s", n, text)
	}
}

func TestAMissingEmulatorFailsWhereOneIsRequiredAndABrokenOneAlways(t *testing.T) {
	for required, err := range map[string]error{"1": ErrUnavailable, "": errors.New("no memory")} {
		t.Setenv("REGENT_REQUIRE_EMULATORS", required)
		if got := record(nil, err); got.failed == "" || got.skipped != "" {
			t.Errorf("%v: skipped %q, failed %q, want it failed", err, got.skipped, got.failed)
		}
	}
}
