//go:build unix

package boottime_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"regent/leadership/boottime"
)

const askedForNow = "REGENT_TEST_PRINT_NOW"

func TestMain(m *testing.M) {
	if os.Getenv(askedForNow) != "" {
		fmt.Println(int64(boottime.Now()))
		return
	}
	os.Exit(m.Run())
}

// A guard process is given a deadline on its parent's clock.
func TestAllProcessesReadTheSameClock(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), askedForNow+"=1")
	before := boottime.Now()
	out, err := child.Output()
	after := boottime.Now()
	var now time.Duration
	if _, failed := fmt.Sscan(string(out), &now); err != nil || failed != nil {
		t.Fatalf("%v, %v: %s", err, failed, out)
	}
	if now < before || now > after {
		t.Errorf("another process reads %v between %v and %v", now, before, after)
	}
}
