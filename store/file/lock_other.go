//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package file

import (
	"errors"
	"os"
	"time"
)

// lock refuses: two processes that serve one folder would make two leaders.
func lock(*os.File, bool, time.Duration) error {
	return errors.New("this program cannot lock a folder on this operating system; use another store")
}
