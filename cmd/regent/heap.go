package main

// ballastSize is by how much more the heap may grow before it is collected; only garbage ever takes it up.
const ballastSize = 32 << 20

// ballast keeps the garbage collector from running all the time while there is next to nothing on the heap: Go collects when the heap has doubled, which
// for a server of few elections is many times a second, and a tenth of its processor time. The ballast counts for the heap's size, and as nobody
// writes to it takes no memory; beside thousands of waiters it makes no difference. Whoever has set GOGC wants no such thing.
func ballast(env map[string]string) []byte {
	if env["GOGC"] != "" {
		return nil
	}
	return make([]byte, ballastSize)
}
