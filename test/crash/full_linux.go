package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"regent/store/file"
)

// fullDisk is a script that is run on a disk of its own, too small for it.
type fullDisk struct {
	Script script // without a path
	Disk   string // a folder, to mount the disk at
	Out    string // where the folder is copied to in the end
	Bytes  int
}

// errNoMount: this process may not mount a disk.
var errNoMount = errors.New("crash: no file system can be mounted here")

// ownMounts is for a process with mounts of its own.
func ownMounts() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
}

// fillDisk runs in a process with mounts of its own. When the disk is full, and nothing can be
// written to it any more, it checks that the store cannot be opened on it.
func fillDisk(f fullDisk) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%w: %w", errNoMount, err)
	}
	if err := unix.Mount("tmpfs", f.Disk, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", f.Bytes)); err != nil {
		return fmt.Errorf("%w: %w", errNoMount, err)
	}
	f.Script.Path = filepath.Join(f.Disk, folderName)
	if err := write(f.Script); err != nil {
		return err
	}
	if err := unix.Mount("", f.Disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	if s, err := file.Open(f.Script.Path, file.Config{}); err == nil {
		s.Close()
		return errors.New("the store opens on a read-only disk")
	}
	return os.CopyFS(f.Out, os.DirFS(f.Script.Path))
}
