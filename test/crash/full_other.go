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

func fillUp(fullDisk) error { return errNoMount }

func apart() *syscall.SysProcAttr { return nil }
