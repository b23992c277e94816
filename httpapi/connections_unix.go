//go:build unix

package httpapi

import (
	"math"
	"syscall"
)

// reservedFiles are for the store, the topic, keys, access files and connections that are being
// closed.
const reservedFiles = 64

// mostByFiles returns how many connections the process may open files for, besides reservedFiles.
func mostByFiles() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxInt
	}
	return int(min(max(files.Cur, 2*reservedFiles)-reservedFiles, math.MaxInt32))
}
