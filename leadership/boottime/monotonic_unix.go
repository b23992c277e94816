//go:build darwin || dragonfly || freebsd || openbsd || solaris

package boottime

import "golang.org/x/sys/unix"

const clockMonotonic = unix.CLOCK_MONOTONIC
