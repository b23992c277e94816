//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package file

import (
	"errors"
	"os"
	"time"

	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// lockShared keeps other processes from writing to the file until it is closed, as bbolt does when
// it only reads. If another process has the file, it waits up to patience and then returns bbolt's
// error for that.
func lockShared(f *os.File, patience time.Duration) error {
	const pause = 20 * time.Millisecond
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		switch {
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case patience <= 0:
			return berrors.ErrTimeout
		}
		time.Sleep(pause)
		patience -= pause
	}
}
