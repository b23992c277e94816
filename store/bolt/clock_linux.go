package bolt

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machineClock is CLOCK_BOOTTIME. A time namespace (as containers may have) shifts it, so the namespace's offsets are part of the
// boot's name.
func machineClock() Clock {
	c := Clock{SinceBoot: sinceBoot}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		c.BootID = strings.TrimSpace(string(id))
		if offsets, err := os.ReadFile("/proc/self/timens_offsets"); err == nil {
			c.BootID += " " + strings.Join(strings.Fields(string(offsets)), " ")
		}
	}
	return c
}

func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("bolt: this kernel has no CLOCK_BOOTTIME: " + err.Error()) // Linux before 2.6.39
	}
	return time.Duration(ts.Nano())
}
