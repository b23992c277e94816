package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// inspect checks an existing file before it is opened for good. bbolt trusts what it finds: a page
// that makes no sense, or that is not there, ends the process, and of its two meta pages it
// silently takes the older one if the newer is damaged, which undoes the last commit. A token that
// was granted in that commit would be granted again, so such a file is refused.
func inspect(path string) error {
	f, err := openPrivate(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return create(path)
	}
	if err != nil {
		return openError(path, err)
	}
	defer f.Close() // which unlocks it
	if err := lockShared(f, lockWait); err != nil {
		return openError(path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return openError(path, err)
	}
	if info.Size() == 0 {
		return nil // created, and never written
	}
	if err := checkPages(f, info.Size()); err != nil {
		return damaged(path, err)
	}
	return nil
}

// create makes an empty database and puts it in place whole, so that a power cut leaves no file
// that looks damaged. If another process was faster it has nothing to do.
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
	err = os.Link(f.Name(), path)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		return nil // this file system has no links; bbolt creates the file where it is to be
	}
	return openError(path, err)
}

// unusable is the error of a file that was opened and cannot be used.
func unusable(path string, err error) error {
	if errors.Is(err, errNotWhole) {
		return damaged(path, err)
	}
	return fmt.Errorf("%s cannot be used: %w", path, err)
}

func damaged(path string, err error) error {
	return fmt.Errorf("%s is damaged, or no file of Regent's: %w; nothing is granted on it. Restore a backup, with fencing tokens above every one ever seen", path, err)
}
