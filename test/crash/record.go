package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errNoTrace: this machine does not allow a process to trace another.
var errNoTrace = errors.New("crash: processes cannot be traced here")

// starts is how often the writer is started on one file.
const starts = 2

// record runs the writer on a new file in the folder, and returns what it did and printed. Between
// two starts the file is truncated to the pages in use, so that it has to grow again.
func record(ctx context.Context, dir string, s script, f faults) (log []entry, err error) {
	s.Path = filepath.Join(dir, fileName)
	for s.Start = range starts {
		run, err := runWriter(ctx, dir, s, f)
		log = join(log, run)
		if err != nil {
			return log, err
		}
		if s.Start == starts-1 {
			break
		}
		shrunk, err := shrink(log, s.Path)
		if err != nil {
			return log, err
		}
		log = join(log, shrunk)
	}
	return log, same(log, s.Path)
}

// runWriter runs the writer once.
func runWriter(ctx context.Context, dir string, s script, f faults) ([]entry, error) {
	program, args, err := self(partWriter, s)
	if err != nil {
		return nil, err
	}
	stderr, err := os.OpenFile(filepath.Join(filepath.Dir(dir), "writer.txt"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	log, err := trace(ctx, dir, stderr, f, program, args...)
	if err != nil {
		text, _ := os.ReadFile(stderr.Name())
		return log, errors.Join(err, stderrOf(text))
	}
	return log, nil
}

// join appends a log to another.
func join(log, next []entry) []entry {
	from := len(log)
	for _, e := range next {
		e.Began += from
		log = append(log, e)
	}
	return log
}

// shrink cuts the file down to the pages in use, durably, and returns the entries that say so.
func shrink(log []entry, path string) ([]entry, error) {
	d := newDiskModel()
	d.advance(log, len(log))
	v := d.image(cut{})
	id, ok := v.names[fileName]
	if !ok {
		return nil, errors.New("the writer has left no file")
	}
	size := int64(len(v.file(id).data))
	if err := os.Truncate(path, size); err != nil {
		return nil, err
	}
	return []entry{{Kind: resized, File: id, Size: size}, {Kind: synced, File: id, Began: 1}}, nil
}

// same compares the file that the log makes with the one that exists: the log is complete and was
// understood.
func same(log []entry, path string) error {
	d := newDiskModel()
	d.advance(log, len(log))
	v := d.image(cut{})
	id, ok := v.names[fileName]
	if !ok {
		return errors.New("the log has no file")
	}
	real, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	made := v.file(id)
	if made.size != int64(len(real)) || !bytes.Equal(made.data, real[:len(made.data)]) || len(bytes.Trim(real[len(made.data):], "\x00")) > 0 {
		return fmt.Errorf("the file that the log makes (%d bytes) differs from the file itself (%d bytes)", made.size, len(real))
	}
	return nil
}
