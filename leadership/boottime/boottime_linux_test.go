package boottime_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
	"regent/leadership/boottime"
)

const (
	uptimeFile = "/proc/uptime"        // CLOCK_BOOTTIME, as the kernel prints it
	tick       = 10 * time.Millisecond // it has two decimals
)

// uptime parses the file.
func uptime(t *testing.T, text []byte) time.Duration {
	t.Helper()
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	require.NoError(t, err)
	return time.Duration(seconds * float64(time.Second)).Round(tick)
}

func TestTheClockCountsFromTheStartOfTheMachine(t *testing.T) {
	t.Parallel()
	before := boottime.Now().Truncate(tick)
	text, err := os.ReadFile(uptimeFile)
	if err != nil {
		need.Lacks(t, err.Error())
	}
	after := boottime.Now()
	if up := uptime(t, text); up < before || up > after {
		t.Errorf("the machine is up for %v; the clock said %v before, and %v after", up, before, after)
	}
}

// After a suspension CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC. A time namespace can have the same
// effect without one.
func TestTheClockCountsTheTimeOfASuspension(t *testing.T) {
	t.Parallel()
	const suspended = time.Hour
	within := func(command ...string) *exec.Cmd {
		namespace := []string{"--user", "--map-root-user", "--fork", "--time", "--boottime", strconv.Itoa(int(suspended.Seconds()))}
		return exec.CommandContext(t.Context(), "unshare", append(namespace, command...)...)
	}
	if out, err := within("true").CombinedOutput(); err != nil {
		need.Lacks(t, fmt.Sprintf("no time namespace can be had here: %v: %s", err, out))
	}
	out, err := within(os.Args[0], "-test.run=^TestTheClockCountsFromTheStartOfTheMachine$", "-test.v").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("in the namespace: %v\n%s", err, out)
	}
}
