//go:build darwin || dragonfly || freebsd || netbsd || openbsd || solaris

package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine was started: CLOCK_MONOTONIC. It never goes back, and all
// processes read the same. On darwin it includes suspensions; on some other systems it stands still
// meanwhile, so that the age of something held across a suspension seems shorter than it is.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clockMonotonic, &ts); err != nil {
		panic("boottime: this system has no CLOCK_MONOTONIC: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
