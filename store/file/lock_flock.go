//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package file

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock keeps other processes from the folder until it is closed; a shared lock keeps only writers
// out. If another process has the folder, it waits up to patience and then returns errInUse. It
// locks the folder itself, because a lock file could be removed and created anew.
func lock(folder *os.File, shared bool, patience time.Duration) error {
	const pause = 20 * time.Millisecond
	how := unix.LOCK_EX | unix.LOCK_NB
	if shared {
		how = unix.LOCK_SH | unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(folder.Fd()), how)
		switch {
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case patience <= 0:
			return errInUse
		default:
			time.Sleep(pause)
			patience -= pause
		}
	}
}
