package authz

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// File is an access file, which may change. Its methods are safe for concurrent use.
type File struct {
	path    string
	crowd   Crowd
	log     *slog.Logger
	text    []byte // last parsed, valid or not; only Run uses it
	bad     bool   // whether text is invalid; only Run uses it
	seen    []byte // last read; only Run uses it
	unread  int    // reads in a row that failed; only Run uses it
	trouble string // last logged; only Run uses it
	invalid atomic.Bool
	current atomic.Pointer[Access]
}

// OpenFile reads the access file of a service with that crowd of callers. Changes of the file, and
// errors in them, are logged.
func OpenFile(path string, crowd Crowd, log *slog.Logger) (*File, error) {
	f := &File{path: path, crowd: crowd, log: log}
	text, err := f.read()
	if err != nil {
		return nil, err
	}
	access, err := ParseAccess(text, crowd)
	if err != nil {
		return nil, err
	}
	f.text = text
	f.current.Store(access)
	return f, nil
}

// Access returns the newest valid access file.
func (f *File) Access() *Access { return f.current.Load() }

// Invalid reports whether the present file is invalid: then an earlier version is in force, and no
// service could start with the file.
func (f *File) Invalid() bool { return f.invalid.Load() }

const (
	// reloadEvery is how often the file is read. A secret mounted as a file sends no notification,
	// and on Cloud Run each read is a call of Secret Manager.
	reloadEvery = 15 * time.Second
	// settleAfter is how long a changed file must stay as it is to count.
	settleAfter = 5 * time.Second
	// maxUnread is how many reads in a row may fail before the file counts as invalid: most often
	// it is such a call that failed.
	maxUnread = 2
)

// Run follows the file until ctx ends. An invalid access file changes nothing, so that a typing
// error neither lets callers in nor locks them out. A change counts once it was read twice, so that
// a file which is still being written is not taken.
func (f *File) Run(ctx context.Context) {
	for next := time.NewTimer(reloadEvery); ; {
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
			next.Reset(f.reload(ctx))
		}
	}
}

// reload reads the file, and returns when to do so again.
func (f *File) reload(ctx context.Context) time.Duration {
	text, err := f.read()
	if err != nil {
		if f.unread++; f.unread > maxUnread {
			f.invalid.Store(true)
			f.complain(ctx, err)
		}
		return reloadEvery
	}
	f.unread = 0
	if bytes.Equal(text, f.text) {
		f.seen, f.trouble = text, ""
		f.invalid.Store(f.bad)
		return reloadEvery
	}
	if !bytes.Equal(text, f.seen) { // it may still be being written
		f.seen = text
		return settleAfter
	}
	f.text = text
	access, err := ParseAccess(text, f.crowd)
	f.bad = err != nil
	f.invalid.Store(f.bad)
	if err != nil {
		f.complain(ctx, err)
		return reloadEvery
	}
	f.trouble = ""
	f.current.Store(access)
	f.log.LogAttrs(ctx, slog.LevelInfo, "the access file has changed", slog.Int("grants", len(access.grants)))
	return reloadEvery
}

// complain logs the problem, once.
func (f *File) complain(ctx context.Context, err error) {
	if trouble := err.Error(); trouble != f.trouble {
		f.trouble = trouble
		f.log.LogAttrs(ctx, slog.LevelError, "the access file cannot be used; the access file before it stays in force", slog.String("reason", trouble))
	}
}

func (f *File) read() ([]byte, error) {
	in, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would block
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s is not a regular file", f.path))
	}
	text, err := io.ReadAll(io.LimitReader(in, MaxAccess+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return text, nil
}
