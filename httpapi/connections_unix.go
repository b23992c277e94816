//go:build unix

package httpapi

import (
	"math"
	"syscall"
)

// reservedFiles are for the store, the topic, keys, policies and connections that are being closed.
const reservedFiles = 64

// mostConnections returns how many connections a server may have: the files that the process may
// open, except those that it needs itself.
func mostConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxInt
	}
	return int(min(max(files.Cur, 2*reservedFiles)-reservedFiles, math.MaxInt32))
}
