package main

import (
	"math"
	"runtime/debug"
)

// ballastSize is by how much the heap may grow before the first collection.
const ballastSize = 32 << 20

// ballast returns memory that is never written to, so that it counts towards the heap's size but
// takes no RAM. Go collects when the heap has doubled; without the ballast a server with few
// elections collects many times a second, a tenth of its CPU time. It makes no difference to a
// server with thousands of waiters. It returns nil if GOGC or GOMEMLIMIT is set.
func ballast(env map[string]string) []byte {
	if env["GOGC"] != "" || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return nil
	}
	return make([]byte, ballastSize)
}
