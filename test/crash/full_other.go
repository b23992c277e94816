//go:build !linux

package crash

import (
	"errors"
	"syscall"
)

type fullDisk struct {
	Script    script
	Disk, Out string
	Bytes     int
}

var errNoMount = errors.New("crash: no file system can be mounted here")

func fillDisk(fullDisk) error { return errNoMount }

func ownMounts() *syscall.SysProcAttr { return nil }
