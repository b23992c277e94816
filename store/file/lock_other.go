//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package file

import (
	"os"
	"time"
)

// lockShared does nothing here: a file that another process is writing to may be taken for a
// damaged one, and is refused either way.
func lockShared(*os.File, time.Duration) error { return nil }
