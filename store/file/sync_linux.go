package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the content of a file durable, and its length, but no times.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
