package file

import (
	"os"
	"strings"

	"regent/leadership/boottime"
)

// machineClock returns CLOCK_BOOTTIME. A time namespace (as containers may have) shifts it, so the
// namespace's offsets are part of the boot's id.
func machineClock() Clock {
	c := Clock{SinceBoot: boottime.Now}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		c.BootID = strings.TrimSpace(string(id))
		if offsets, err := os.ReadFile("/proc/self/timens_offsets"); err == nil {
			c.BootID += " " + strings.Join(strings.Fields(string(offsets)), " ")
		}
	}
	return c
}
