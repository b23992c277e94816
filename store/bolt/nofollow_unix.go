//go:build unix

package bolt

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// checkOwner returns an error if the file belongs to another user than this process: that user can
// change it, and with it who leads.
func checkOwner(file os.FileInfo) error {
	stat, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner is unknown")
	}
	if owner, me := int(stat.Uid), os.Geteuid(); owner != me {
		return fmt.Errorf("it belongs to user %d, who could change it, and this process is user %d; run this as user %d, or, if you trust what is in the file, give it to user %d with chown", owner, me, owner, me)
	}
	return nil
}
