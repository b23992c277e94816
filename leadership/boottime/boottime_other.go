//go:build !linux

package boottime

import "time"

var start = time.Now()

// Now is the time since the process was started, on the clock that Go calls monotonic. It never goes back and nobody can set it; but on some
// systems it stands still while the machine is suspended, so that what was held across a suspension looks younger than it is.
func Now() time.Duration { return time.Since(start) }
