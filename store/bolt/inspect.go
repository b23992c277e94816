package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// inspect looks at an existing file before it is opened for good. bbolt trusts what it finds: a page that makes no sense, or that is not
// there, ends the process, and of its two meta pages it takes the older one without a word if the newer is damaged, which undoes the last
// commit. A token that was granted in that commit would be granted again, so such a file is refused.
func inspect(path string) error {
	f, err := openPrivate(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return create(path)
	}
	if err != nil {
		return openError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return openError(path, err)
	}
	if info.Size() == 0 {
		return nil // created, and never written
	}
	if err := checkMetas(f, info.Size()); err != nil {
		return damaged(path, err)
	}
	return walk(path)
}

// create makes an empty database and puts it in place whole, so that a power cut leaves no file that looks damaged. Who finds that another
// process was faster has nothing to do.
func create(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return openError(path, err)
	}
	f.Close()
	defer os.Remove(f.Name())
	db, err := bbolt.Open(f.Name(), 0o600, nil)
	if err != nil {
		return openError(path, err)
	}
	if err := db.Close(); err != nil {
		return openError(path, err)
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return openError(path, err)
	}
	return nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("%s is damaged, or no file of Regent's: %w; nothing is granted on it. Restore a backup, with fencing tokens above every one ever seen", path, err)
}

// The meta page of bbolt's format 2: a page header of 16 bytes, then these fields, each in the machine's byte order.
const (
	metaAt       = 16
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	pageSizeAt   = metaAt + 8
	highestAt    = metaAt + 40 // the number of pages in use
	checksumAt   = metaAt + 56 // FNV-1a, 64 bits, of the meta before it
	metaEnd      = checksumAt + 8
	smallestPage = 1024
	largestPage  = 1 << 20
)

// checkMetas expects both meta pages whole, and the file to be as long as they say.
func checkMetas(f io.ReaderAt, size int64) error {
	first, err := readMeta(f, 0)
	if err != nil {
		return err
	}
	page := int64(binary.NativeEndian.Uint32(first[pageSizeAt:]))
	if page < smallestPage || page > largestPage {
		return fmt.Errorf("its pages have %d bytes", page)
	}
	second, err := readMeta(f, page)
	if err != nil {
		return err
	}
	pages := max(binary.NativeEndian.Uint64(first[highestAt:]), binary.NativeEndian.Uint64(second[highestAt:]))
	if pages > uint64(size/page) {
		return fmt.Errorf("it has %d bytes, and %d pages of %d bytes are in use", size, pages, page)
	}
	return nil
}

func readMeta(f io.ReaderAt, at int64) ([]byte, error) {
	meta := make([]byte, metaEnd)
	if _, err := f.ReadAt(meta, at); err != nil {
		return nil, fmt.Errorf("its meta page at byte %d: %w", at, err)
	}
	sum := fnv.New64a()
	sum.Write(meta[metaAt:checksumAt])
	switch {
	case binary.NativeEndian.Uint32(meta[metaAt:]) != metaMagic, binary.NativeEndian.Uint32(meta[metaAt+4:]) != metaVersion:
		return nil, fmt.Errorf("there is no meta page at byte %d", at)
	case binary.NativeEndian.Uint64(meta[checksumAt:]) != sum.Sum64():
		return nil, fmt.Errorf("its meta page at byte %d has a wrong checksum, so that its last commit may be missing", at)
	}
	return meta, nil
}

// walk reads every page that is in use, without the free list: of that bbolt makes a goroutine whose panics nobody can stop.
func walk(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait, OpenFile: openPrivate})
	if err != nil {
		return openError(path, err)
	}
	defer db.Close()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err = undamaged(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
				return b.ForEach(func(_, value []byte) error {
					readAll(value)
					return nil
				})
			})
		})
	})
	if err != nil {
		return damaged(path, err)
	}
	return nil
}

// readAll touches the value, which may lie on a page of its own.
func readAll(value []byte) (sum byte) {
	for _, b := range value {
		sum ^= b
	}
	return sum
}
