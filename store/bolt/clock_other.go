//go:build !linux

package bolt

import "time"

// machineClock counts from the start of the process, on the clock that Go calls monotonic. It has no boot id, so every start counts as
// another boot.
func machineClock() Clock {
	start := time.Now()
	return Clock{SinceBoot: func() time.Duration { return time.Since(start) }}
}
