package main

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
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

// giveMemoryBack returns memory to the system once a minute, if much of it is free, until ctx ends.
// After a crowd of streams has left, Go itself returns little: it keeps room for the heap to grow
// to what the crowd took. What has left is free after a collection, which Go makes every 2 minutes.
func giveMemoryBack(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if free, used := heldMemory(); tooMuchFree(free, used) {
				debug.FreeOSMemory()
			}
		}
	}
}

// tooMuchFree reports whether the process should return memory: at least the ballast's size is
// free, and that is more than half of what is used. To return it costs a collection.
func tooMuchFree(free, used uint64) bool { return free >= ballastSize && free > used/2 }

// heldMemory returns how many bytes of the system's memory the process holds without use, and how
// many it uses, the ballast included.
func heldMemory() (free, used uint64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(samples)
	free, released, total := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return free, total - released - free
}
