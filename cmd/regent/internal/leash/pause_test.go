//go:build linux

package leash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"regent/cmd/regent/internal/leash"
	"regent/leadership/boottime"
	"regent/test/machine"
)

// awaitStopped waits until the process is stopped by a signal or, if not, runs.
func awaitStopped(t *testing.T, pid int, stopped bool) {
	t.Helper()
	machine.Eventually(t, fmt.Sprintf("process %d is stopped: %v", pid, stopped), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") T ") == stopped
	})
}

// paused is a script with another process in its group, both of which are paused.
func paused(ctx context.Context, t *testing.T, deadline func() time.Duration, grace time.Duration) (h *held, child int) {
	t.Helper()
	h = hold(ctx, t, deadline, grace, `
		trap 'exit 3' TERM INT
		sh -c 'echo $$ >$dir/child; exec sleep 3600' &
		echo $$ >$dir/pid; wait`)
	pid, child := h.pid("pid"), h.pid("child")
	h.pause <- true
	awaitStopped(t, pid, true)
	awaitStopped(t, child, true)
	return h, child
}

func TestAPausedCommandGoesOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	h, child := paused(ctx, t, far, time.Hour)
	h.pause <- true // again
	h.pause <- false
	awaitStopped(t, h.pid("pid"), false)
	awaitStopped(t, child, false)
	cancel(errOver)
	if end := h.wait(); end.Err != errOver || end.Code != 3 {
		t.Errorf("%+v; want the cause, and code 3", end)
	}
}

func TestAPausedCommandIsStoppedWhenTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	h, child := paused(ctx, t, far, 10*time.Second) // time to end in
	cancel(errOver)
	if end := h.wait(); end.Err != errOver || end.Code != 3 {
		t.Errorf("%+v; want the cause, and code 3: it has run again", end)
	}
	awaitGone(t, child)
}

func TestAPausedCommandDoesNotOutliveItsDeadline(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Second // time to end in
	deadline := boottime.Now() + grace + 2*time.Second
	h, child := paused(t.Context(), t, func() time.Duration { return deadline }, grace)
	if end := h.wait(); !errors.Is(end.Err, leash.ErrDeadline) || end.Code != 3 || boottime.Now() >= deadline {
		t.Errorf("%+v; want ErrDeadline, and code 3, before the deadline", end)
	}
	awaitGone(t, child)
}

func TestASignalReachesAPausedCommand(t *testing.T) {
	t.Parallel()
	h, _ := paused(t.Context(), t, far, time.Hour)
	h.signals <- syscall.SIGINT
	if end := h.wait(); end.Err != nil || end.Code != 3 {
		t.Errorf("%+v; want code 3", end)
	}
}
