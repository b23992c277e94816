//go:build unix

package httpapi

import (
	"math"
	"syscall"
)

// reservedFiles are for the store, the topic, keys and policies, and for connections that are on their way out.
const reservedFiles = 64

// mostConnections is how many connections a server may have: as many as the process may have files, but for those it needs itself.
func mostConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxInt
	}
	return int(min(max(files.Cur, 2*reservedFiles)-reservedFiles, math.MaxInt32))
}
