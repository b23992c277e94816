//go:build !linux

package file

import "regent/leadership/boottime"

// machineClock returns a clock that counts from the start of the process and has no boot id, so
// every start counts as another boot.
func machineClock() Clock { return Clock{SinceBoot: boottime.Now} }
