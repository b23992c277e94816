// Package turn keeps the tests that start many processes, and count on the machine for their leases, from being run side by side: go test runs as many
// packages at a time as there are processors.
package turn

import (
	"os"
	"path/filepath"
	"syscall"
)

// Take waits until no other process has its turn, and has it until done is called or the process ends. Where there can be no lock nobody waits.
func Take() (done func()) {
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "regent-tests.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}
	}
	for syscall.Flock(int(file.Fd()), syscall.LOCK_EX) == syscall.EINTR {
	}
	return func() { file.Close() }
}
