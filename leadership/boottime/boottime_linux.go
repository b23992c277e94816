package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine was started, including suspensions: CLOCK_BOOTTIME. Within
// one boot it never goes back, and all processes in one time namespace read the same. It costs a
// system call.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("boottime: this kernel has no CLOCK_BOOTTIME: " + err.Error()) // Linux before 2.6.39
	}
	return time.Duration(ts.Nano())
}
