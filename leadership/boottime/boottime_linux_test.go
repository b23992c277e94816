package boottime_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"regent/leadership/boottime"
)

func TestTheClockCountsFromTheStartOfTheMachine(t *testing.T) {
	t.Parallel()
	const tick = 10 * time.Millisecond // /proc/uptime has two decimals
	before := boottime.Now().Truncate(tick)
	text, err := os.ReadFile("/proc/uptime") // CLOCK_BOOTTIME, as the kernel prints it
	if err != nil {
		t.Skip(err)
	}
	after := boottime.Now()
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	uptime := time.Duration(seconds * float64(time.Second)).Round(tick)
	if uptime < before || uptime > after {
		t.Errorf("the machine is up for %v; the clock said %v before, and %v after", uptime, before, after)
	}
}
