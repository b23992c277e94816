package main

import (
	"math"
	"runtime/debug"
)

const (
	// ballastSize is how many bytes the heap counts more than it takes.
	ballastSize = 320 << 20
	// growth is by how much the heap may grow before the next collection, in percent.
	growth = 10
)

// ballast makes collections fit a server that has either few elections or thousands of waiters, and
// returns memory that is never written to, so that it counts towards the heap's size but takes no
// RAM. Go collects when the heap has doubled. A small heap would be collected many times a second,
// at a tenth of the CPU time; with the ballast it may grow by 32 MiB. Thousands of waiters seldom
// do anything, and twice their memory would be wasted: a large heap grows by a tenth. It returns
// nil, and leaves all as it is, if GOGC or GOMEMLIMIT is set.
func ballast(env map[string]string) []byte {
	if env["GOGC"] != "" || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return nil
	}
	debug.SetGCPercent(growth)
	return make([]byte, ballastSize)
}
