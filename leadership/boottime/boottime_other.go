//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !solaris

package boottime

import "time"

var start = time.Now()

// Now returns the time since the process was started, on Go's monotonic clock. It never goes back
// and cannot be set; but on some systems it stands still while the machine is suspended, so that
// the age of something held across a suspension seems shorter than it is.
func Now() time.Duration { return time.Since(start) }
