//go:build unix

package file

import "golang.org/x/sys/unix"

const noFollow = unix.O_NOFOLLOW
