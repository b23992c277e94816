package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// log is the file that commits are appended to.
type log struct {
	folder   string
	path     string
	head     fileHead
	seed     uint32 // of the store's id
	sequence uint64 // of the last commit
	disk     disk
	info     os.FileInfo // of the file
	at       int64       // where the next frame begins
	size     int64       // up to where it is filled with zeros, durably
}

// disk is a log's file.
type disk interface {
	WriteAt(b []byte, at int64) (int, error)
	SyncData() error // makes the content and the length durable
	Sync() error
	Close() error
}

type diskFile struct{ *os.File }

func (f diskFile) SyncData() error { return syncData(f.File) }

func logName(n uint64) string      { return fmt.Sprintf("log-%010d", n) }
func snapshotName(n uint64) string { return fmt.Sprintf("snapshot-%010d", n) }

func newIdentity() (id identity) {
	rand.Read(id[:]) // never fails
	return id
}

// createLog makes an empty log with the head, durably.
func createLog(folder string, h fileHead) (*log, error) {
	content := make([]byte, step)
	copy(content, h.encode())
	name := filepath.Join(folder, logName(h.number))
	if err := writeFile(name, func(write func([]byte) error) error { return write(content) }); err != nil {
		return nil, err
	}
	return openLog(folder, h, h.sequence, headSize, step)
}

// openLog opens a log that was read up to the given place.
func openLog(folder string, h fileHead, sequence uint64, at, size int64) (*log, error) {
	path := filepath.Join(folder, logName(h.number))
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &log{folder: folder, path: path, head: h, seed: h.id.seed(), sequence: sequence, disk: diskFile{f}, info: info, at: at, size: size}, nil
}

// append writes a frame and makes it durable: one write and one sync, if there is space filled with
// zeros. After an error the content of the disk is not known.
func (l *log) append(frame []byte) error {
	frame = endFrame(frame, l.seed, l.sequence+1)
	next := l.at + int64(aligned(len(frame)))
	if next > l.size {
		if err := l.extend(next); err != nil {
			return err
		}
	}
	if _, err := l.disk.WriteAt(frame, l.at); err != nil {
		return err
	}
	if err := l.disk.SyncData(); err != nil {
		return err
	}
	l.at = next
	l.sequence++
	return nil
}

// extend fills the log with zeros up to at least the given size. By these zeros a frame that a
// power cut left in part is recognized.
func (l *log) extend(size int64) error {
	size = (size + step - 1) / step * step
	zeros := make([]byte, step)
	for at := l.size; at < size; at += step {
		if _, err := l.disk.WriteAt(zeros, at); err != nil {
			return err
		}
	}
	if err := l.disk.Sync(); err != nil {
		return err
	}
	l.size = size
	return nil
}

// inPlace returns an error unless the log is still at its path. If the folder was removed or
// replaced, another process may have opened a new one at that path, and would grant a second
// leader.
func (l *log) inPlace() error {
	now, err := os.Lstat(l.path)
	if err == nil && !os.SameFile(now, l.info) {
		err = fmt.Errorf("%s is another file now", l.path)
	}
	return err
}

// erase overwrites a torn frame with zeros.
func (l *log) erase(t *torn) error {
	_, err := l.disk.WriteAt(make([]byte, t.to-t.from), int64(t.from))
	return errors.Join(err, l.disk.Sync())
}

// writeFile creates a file from the parts that the function writes: durably with all of them, or
// not at all. Each part is made durable before the next one is written, so that concurrent commits
// do not have to wait for all of a large file.
func writeFile(name string, parts func(write func([]byte) error) error) error {
	f, err := os.OpenFile(name+unfinishedName, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	err = parts(func(part []byte) error {
		_, err := f.Write(part)
		return errors.Join(err, syncData(f))
	})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name()) // if this fails, the next open removes it
		return err
	}
	return syncFolder(filepath.Dir(name))
}

// writeState durably records whether the store is closed, and the sequence of its last commit.
func (l *log) writeState(closed bool) (err error) {
	f, err := os.OpenFile(filepath.Join(l.folder, stateName), os.O_WRONLY|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := fileHead{kind: kindState, id: l.head.id, sequence: l.sequence}
	if closed {
		h.number = 1
	}
	_, err = f.WriteAt(h.encode(), 0)
	return errors.Join(err, f.Sync(), syncFolder(l.folder))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
