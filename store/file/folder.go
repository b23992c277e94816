package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// lockWait is how long Open waits for another process to close the folder, such as one that is just
// shutting down.
const lockWait = time.Second

const (
	stateName      = "state"
	unfinishedName = ".new"
)

var errInUse = errors.New("in use")

// openFolder opens a folder and locks it until it is closed. With write it creates the folder if
// there is none, and the lock is exclusive; otherwise the lock is shared.
func openFolder(path string, write bool) (*os.File, error) {
	if write {
		if err := makeFolder(path); err != nil {
			return nil, openError(path, err)
		}
	}
	f, err := openPrivate(path)
	if err != nil {
		return nil, openError(path, err)
	}
	if err := lock(f, !write, lockWait); err != nil {
		f.Close()
		return nil, openError(path, err)
	}
	return f, nil
}

func makeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	// At every open: the process that made the folder may have died before its name was durable.
	return errors.Join(err, syncFolder(filepath.Dir(path)))
}

// openPrivate opens the folder if it belongs to this user and no other user can read or write it.
// It does not follow a link at the end of the path.
func openPrivate(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return nil, errors.New("it is a file, and a store is a folder; name another path")
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errors.New("it is a link; name the folder itself")
	case !info.IsDir():
		return nil, errors.New("it is not a folder")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		if all, err := list(path); err != nil || all.others || info.Mode()&fs.ModeSticky != 0 {
			return nil, fmt.Errorf("others may read or write in it (mode %04o), and it is not for a store alone; name a new folder, such as %s", info.Mode().Perm(), filepath.Join(path, "leases"))
		}
		return nil, fmt.Errorf("others may read or write in it (mode %04o); run: chmod 700 %s", info.Mode().Perm(), path)
	}
	if err := checkOwner(info, path, os.Geteuid()); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(opened, info) {
		f.Close()
		return nil, errors.Join(errors.New("it was replaced meanwhile"), err)
	}
	return f, nil
}

// checkOwner refuses a folder of another user, which that user could change at any time, even if
// this process may open it because it runs as root.
func checkOwner(info fs.FileInfo, path string, user int) error {
	if owner, known := ownerOf(info); known && owner != user {
		return fmt.Errorf("it belongs to another user (%d, and this is %d), who may change it; run as that user, or: chown -R %d %s", owner, user, user, path)
	}
	return nil
}

func openError(path string, err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, errInUse):
		return fmt.Errorf("%s is in use by another process; only one may serve a folder, so stop that one or name another folder", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be created: the folder that it is to be in does not exist; create that, or name another path: %w", path, fs.ErrNotExist)
	case errors.As(err, &at):
		return fmt.Errorf("%s cannot be opened: %w", path, at.Err) // at itself would name the path again
	}
	return fmt.Errorf("%s cannot be opened: %w", path, err)
}

// unusable returns the error for a folder that was opened and cannot be used.
func unusable(path string, err error) error {
	if _, is := errors.AsType[*damage](err); is {
		return fmt.Errorf("%s is damaged, or no folder of Regent's: %w; nothing is granted on it. Restore a backup, with fencing tokens above every one ever seen", path, err)
	}
	return fmt.Errorf("%s cannot be used: %w", path, err)
}

// contents lists the files of a folder.
type contents struct {
	logs, snapshots []uint64 // in order
	unfinished      []string
	state           bool
	others          bool
}

// list returns the files of the folder.
func list(path string) (c contents, err error) {
	files, err := os.ReadDir(path) // sorted, and so are numbers of ten digits
	for _, f := range files {
		name, unfinished := strings.CutSuffix(f.Name(), unfinishedName)
		isLog, n := numbered(name, logName)
		isSnapshot, m := numbered(name, snapshotName)
		switch {
		case unfinished && (isLog || isSnapshot):
			c.unfinished = append(c.unfinished, f.Name())
		case f.Name() == stateName:
			c.state = true
		case isLog:
			c.logs = append(c.logs, n)
		case isSnapshot:
			c.snapshots = append(c.snapshots, m)
		default:
			c.others = true
		}
	}
	return c, err
}

// before returns the names of the logs and snapshots with smaller numbers.
func (c contents) before(number uint64) (names []string) {
	for _, n := range c.logs {
		if n < number {
			names = append(names, logName(n))
		}
	}
	for _, n := range c.snapshots {
		if n < number {
			names = append(names, snapshotName(n))
		}
	}
	return names
}

// numbered reports whether name is that of a file with a number, and returns the number.
func numbered(name string, nameOf func(uint64) string) (is bool, n uint64) {
	_, digits, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return err == nil && name == nameOf(n), n
}
