package main

import (
	"math"
	"runtime/debug"
)

// ballastSize is by how much more the heap may grow before it is collected. It may be taken up by garbage, and by nothing else.
const ballastSize = 32 << 20

// ballast keeps the garbage collector from running all the time while there is next to nothing on the heap: Go collects when the heap has doubled, which
// for a server of few elections is many times a second, and a tenth of its processor time. The ballast counts for the heap's size, and nobody writes
// to it, so that it is no memory itself; beside thousands of waiters it makes no difference. Whoever has set GOGC or GOMEMLIMIT wants no
// such thing.
func ballast(env map[string]string) []byte {
	if env["GOGC"] != "" || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return nil
	}
	return make([]byte, ballastSize)
}
