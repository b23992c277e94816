//go:build unix

package bolt

import "golang.org/x/sys/unix"

const noFollow = unix.O_NOFOLLOW
