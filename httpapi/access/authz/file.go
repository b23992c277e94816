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

// File is a policy in a file that may change. All methods may be called at the same time.
type File struct {
	path    string
	log     *slog.Logger
	text    []byte // as it was taken last, good or bad; of Run alone
	seen    []byte // as it was read last; of Run alone
	trouble string // that was told last; of Run alone
	current atomic.Pointer[Policy]
}

// OpenFile reads the policy. log is told when a later one is taken, or is none.
func OpenFile(path string, log *slog.Logger) (*File, error) {
	f := &File{path: path, log: log}
	text, err := f.read()
	if err != nil {
		return nil, err
	}
	policy, err := ParsePolicy(text)
	if err != nil {
		return nil, err
	}
	f.text = text
	f.current.Store(policy)
	return f, nil
}

// Policy is the newest that was good.
func (f *File) Policy() *Policy { return f.current.Load() }

// reloadEvery is how often the file is looked at. A secret that is mounted as a file tells nobody that it has changed.
const reloadEvery = 5 * time.Second

// Run takes over what becomes of the file until ctx ends. One that is no policy changes nothing, so that a slip of the pen neither lets
// anybody in nor throws anybody out, and one that is read half is not taken: a text is taken when it has been there for two looks.
func (f *File) Run(ctx context.Context) {
	for ticks := time.NewTicker(reloadEvery); ; {
		select {
		case <-ctx.Done():
			ticks.Stop()
			return
		case <-ticks.C:
			f.reload(ctx)
		}
	}
}

func (f *File) reload(ctx context.Context) {
	text, err := f.read()
	if err == nil && bytes.Equal(text, f.text) {
		f.seen, f.trouble = text, ""
		return
	}
	if err == nil && !bytes.Equal(text, f.seen) { // somebody may still be writing it
		f.seen = text
		return
	}
	policy := f.Policy()
	if err == nil {
		f.text = text
		policy, err = ParsePolicy(text)
	}
	if err != nil {
		f.complain(ctx, err.Error())
		return
	}
	f.trouble = ""
	f.current.Store(policy)
	f.log.LogAttrs(ctx, slog.LevelInfo, "the policy was changed", slog.Int("grants", len(policy.grants)))
}

// complain tells once what is wrong.
func (f *File) complain(ctx context.Context, trouble string) {
	if trouble != f.trouble {
		f.trouble = trouble
		f.log.LogAttrs(ctx, slog.LevelError, "the policy's file cannot be used; the policy before it holds", slog.String("reason", trouble))
	}
}

func (f *File) read() ([]byte, error) {
	in, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would hold up whoever opens it
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s is no regular file", f.path))
	}
	text, err := io.ReadAll(io.LimitReader(in, MaxPolicy+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return text, nil
}
