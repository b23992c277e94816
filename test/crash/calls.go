//go:build linux && (amd64 || arm64)

package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// call is a system call that has begun.
type call struct {
	entry  entry
	path   string // of the file to be created
	effect effect
}

// begun looks at a call that begins. It keeps it if it concerns the files, and lets it fail if it
// is its turn.
func (t *tracer) begun(tid int, number uint64, args []uint64) error {
	c, err := t.understand(tid, number, args)
	if c == nil || err != nil {
		return err
	}
	c.entry.Began = len(t.log)
	if c.entry.Kind == said {
		t.log = append(t.log, c.entry)
		return nil
	}
	t.calls[tid] = c
	c.effect = t.faults.next(c.entry.Kind)
	switch {
	case c.effect.skips():
		return skip(tid)
	case c.effect.short && c.entry.Kind == wrote:
		return shorten(tid, len(c.entry.Data)/2)
	}
	return nil
}

// returned logs a call that has returned.
func (t *tracer) returned(tid int, result int64) error {
	c := t.calls[tid]
	if c == nil {
		return nil
	}
	delete(t.calls, tid)
	if c.effect.skips() {
		if c.effect.errno != 0 && c.entry.Kind == synced {
			c.entry.Failed = true
			t.log = append(t.log, c.entry)
		}
		return answer(tid, -int64(c.effect.errno))
	}
	switch {
	case result < 0 && c.entry.Kind == synced:
		c.entry.Failed = true
	case result < 0:
		return nil
	case c.entry.Kind == wrote:
		c.entry.Data = c.entry.Data[:result]
	case c.entry.Kind == named:
		var err error
		if c.entry.File, err = inode(c.path); err != nil {
			return err
		}
	}
	t.log = append(t.log, c.entry)
	return nil
}

// understand returns nil for a call that does not concern the files, and an error for one that
// changes a file in a way that the tracer does not know.
func (t *tracer) understand(tid int, number uint64, args []uint64) (*call, error) {
	switch number {
	case unix.SYS_WRITE:
		return t.writes(tid, args, -1)
	case unix.SYS_PWRITE64:
		return t.writes(tid, args, int64(args[3]))
	case unix.SYS_FTRUNCATE:
		return t.onFile(tid, args[0], entry{Kind: resized, Size: int64(args[1])})
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return t.onFile(tid, args[0], entry{Kind: synced})
	case unix.SYS_OPENAT:
		return t.opens(tid, args)
	case unix.SYS_LINKAT:
		return t.names(tid, entry{Kind: named}, args[3])
	case unix.SYS_UNLINKAT:
		return t.names(tid, entry{Kind: unnamed}, args[1])
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return t.renames(tid, args)
	case unix.SYS_MMAP:
		if args[2]&unix.PROT_WRITE != 0 && args[3]&unix.MAP_SHARED != 0 {
			return nil, t.refuse(tid, number, args[4])
		}
	case unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2, unix.SYS_FALLOCATE, unix.SYS_SENDFILE, unix.SYS_SYNC_FILE_RANGE:
		return nil, t.refuse(tid, number, args[0])
	case unix.SYS_COPY_FILE_RANGE:
		return nil, t.refuse(tid, number, args[2])
	case unix.SYS_IO_URING_SETUP:
		return nil, errors.New("io_uring is used, which cannot be traced")
	}
	return nil, nil
}

func (t *tracer) refuse(tid int, number, fd uint64) error {
	if !t.watched(target(tid, fd)) {
		return nil
	}
	return fmt.Errorf("system call %d changes a file, and the tracer does not know it", number)
}

// writes takes offset -1 for the standard output.
func (t *tracer) writes(tid int, args []uint64, offset int64) (*call, error) {
	output := args[0] == 1 && offset < 0
	if !output && !t.watched(target(tid, args[0])) {
		return nil, nil
	}
	data := make([]byte, args[2])
	if err := peek(tid, args[1], data); err != nil {
		return nil, err
	}
	switch {
	case output:
		return &call{entry: entry{Kind: said, Data: data}}, nil
	case offset < 0:
		return nil, errors.New("a file is written at its present position, which the tracer does not know")
	}
	return t.onFile(tid, args[0], entry{Kind: wrote, Offset: offset, Data: data})
}

func (t *tracer) onFile(tid int, fd uint64, e entry) (_ *call, err error) {
	if path := target(tid, fd); !t.watched(path) && path != t.dir {
		return nil, nil
	}
	e.File, err = inode(descriptor(tid, fd))
	return &call{entry: e}, err
}

// opens records that a file is created.
func (t *tracer) opens(tid int, args []uint64) (*call, error) {
	if args[2]&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return nil, nil
	}
	c, err := t.names(tid, entry{Kind: named}, args[1])
	if c == nil || err != nil {
		return nil, err
	}
	_, err = os.Lstat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err == nil && args[2]&unix.O_TRUNC != 0:
		return nil, errors.New("a file is truncated as it is opened, which the tracer does not know")
	}
	return nil, err
}

func (t *tracer) names(tid int, e entry, path uint64) (*call, error) {
	name, err := text(tid, path)
	if err != nil || !t.watched(name) {
		return nil, err
	}
	e.Folder, e.Name = t.folder, filepath.Base(name)
	return &call{entry: e, path: name}, nil
}

func (t *tracer) renames(tid int, args []uint64) (*call, error) {
	c, err := t.names(tid, entry{Kind: renamed}, args[1])
	if c == nil || err != nil {
		return nil, err
	}
	to, err := text(tid, args[3])
	c.entry.To = filepath.Base(to)
	return c, err
}

// watched reports whether the path is a file in the folder.
func (t *tracer) watched(path string) bool { return filepath.Dir(path) == t.dir }

func descriptor(tid int, fd uint64) string {
	return "/proc/" + strconv.Itoa(tid) + "/fd/" + strconv.Itoa(int(fd))
}

// target is the path of an open file of the process; "" if it is none.
func target(tid int, fd uint64) string {
	path, _ := os.Readlink(descriptor(tid, fd))
	return strings.TrimSuffix(path, " (deleted)")
}

func inode(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, err
	}
	return s.Ino, nil
}
