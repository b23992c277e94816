//go:build linux && (amd64 || arm64)

package crash

import (
	"cmp"
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
	c.effect = t.faults.next(target{c.entry.Kind, c.entry.On})
	if c.effect.short && c.entry.Kind == wrote {
		half := half(c.entry)
		if half > 0 {
			return shorten(tid, half)
		}
		c.effect.errno = unix.ENOSPC
	}
	if c.effect.errno != 0 {
		return skip(tid)
	}
	return nil
}

// half is about half the length of a write, up to the end of a sector; 0 if it is within one.
func half(e entry) int {
	n := int64(len(e.Data))
	for _, end := range []int64{(e.Offset + n/2) / sector * sector, (e.Offset/sector + 1) * sector} {
		if e.Offset < end && end < e.Offset+n {
			return int(end - e.Offset)
		}
	}
	return 0
}

// returned logs a call that has returned.
func (t *tracer) returned(tid int, result int64) error {
	c := t.calls[tid]
	if c == nil {
		return nil
	}
	delete(t.calls, tid)
	if c.effect.errno != 0 {
		if c.entry.Kind == synced {
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
	case c.entry.Kind == named, c.entry.Kind == renamed:
		var err error
		if c.entry.File, err = inode(filepath.Join(t.dir, cmp.Or(c.entry.To, c.entry.Name))); err != nil {
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
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_GETDENTS64:
		return t.onFile(tid, args[0], entry{Kind: used})
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
	if !t.watched(opened(tid, fd)) {
		return nil
	}
	return fmt.Errorf("system call %d changes a file, and the tracer does not know it", number)
}

// writes takes offset -1 for the present position.
func (t *tracer) writes(tid int, args []uint64, offset int64) (*call, error) {
	output := args[0] == 1 && offset < 0
	if !output && !t.watched(opened(tid, args[0])) {
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
		var err error
		if offset, err = position(tid, args[0]); errors.Is(err, fs.ErrNotExist) {
			return nil, nil // another thread has closed it, or the process ends: nothing is written
		} else if err != nil {
			return nil, err
		}
	}
	return t.onFile(tid, args[0], entry{Kind: wrote, Offset: offset, Data: data})
}

func (t *tracer) onFile(tid int, fd uint64, e entry) (_ *call, err error) {
	path := opened(tid, fd)
	switch {
	case t.watched(path):
		e.On = filepath.Base(path)
	case path != t.dir:
		return nil, nil
	}
	e.File, err = inode(descriptor(tid, fd))
	return &call{entry: e}, err
}

// opens records that a file is created, emptied, or opened as it is.
func (t *tracer) opens(tid int, args []uint64) (*call, error) {
	c, err := t.names(tid, entry{Kind: named}, args[1])
	if c == nil || err != nil {
		return nil, err
	}
	if args[2]&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		c.entry.Kind = used
		return c, nil
	}
	id, err := inode(filepath.Join(t.dir, c.entry.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err == nil && args[2]&unix.O_TRUNC != 0:
		return &call{entry: entry{Kind: resized, File: id, On: c.entry.Name}}, nil
	}
	c.entry.Kind = used
	return c, err
}

func (t *tracer) names(tid int, e entry, path uint64) (*call, error) {
	name, err := text(tid, path)
	if err != nil || !t.watched(name) {
		return nil, err
	}
	e.Folder, e.Name = t.folder, filepath.Base(name)
	e.On = e.Name
	return &call{entry: e}, nil
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

// opened is the path of an open file of the process; "" if it is none.
func opened(tid int, fd uint64) string {
	path, _ := os.Readlink(descriptor(tid, fd))
	return strings.TrimSuffix(path, " (deleted)")
}

// position is where the next write to an open file begins.
func position(tid int, fd uint64) (at int64, err error) {
	info, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/fdinfo/" + strconv.Itoa(int(fd)))
	if err == nil {
		_, err = fmt.Sscanf(string(info), "pos:\t%d", &at)
	}
	return at, err
}

func inode(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, err
	}
	return s.Ino, nil
}
