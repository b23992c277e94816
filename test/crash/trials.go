package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"regent/test/load"
)

// trial is a short run of the writer in which one call fails.
type trial struct {
	before []entry // what the file was made by
	script script
	faults faults
	what   string
}

// failures are what can happen to a call of a kind. The first of them is always tried.
func failures(k kind) []faults {
	fails := func(now, after syscall.Errno) faults {
		return faults{effect: effect{errno: now}, after: effect{errno: after}}
	}
	switch k {
	case wrote:
		short := faults{effect: effect{short: true}}
		ends := faults{effect: effect{short: true}, after: effect{errno: syscall.ENOSPC}}
		return []faults{fails(syscall.EIO, 0), fails(syscall.ENOSPC, syscall.ENOSPC), ends, short}
	case resized:
		return []faults{fails(syscall.ENOSPC, syscall.ENOSPC), fails(syscall.EIO, 0)}
	}
	return []faults{fails(syscall.EIO, 0)}
}

// trials plans, for every call on files in the log of a run without failures, a trial of its first
// failure and of one more.
func trials(clean, before []entry, s script, random *rand.Rand) (all []trial) {
	n := 0
	for _, e := range clean {
		if !e.touches() {
			continue
		}
		n++
		list := failures(e.Kind)
		chosen := list[:1]
		if len(list) > 1 {
			chosen = []faults{list[0], list[1+random.IntN(len(list)-1)]}
		}
		for _, f := range chosen {
			f.at = n
			all = append(all, trial{before: before, script: s, faults: f, what: fmt.Sprintf("start %d, call %d (%s): %s", s.Start, n, e.Kind, f)})
		}
	}
	return all
}

// try runs the trial in a folder of its own, and returns what was done and printed; its own part
// begins at own.
func (t trial) try(ctx context.Context, dir string) (log []entry, own int, err error) {
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return nil, 0, err
	}
	t.script.Path = filepath.Join(files, fileName)
	log, err = restore(t.before, t.script.Path)
	if err != nil {
		return nil, 0, err
	}
	run, err := runWriter(ctx, files, t.script, t.faults)
	return join(log, run), len(log), err
}

// restore puts the file that the log makes at the path, and returns a log that makes it there and
// in which the same was printed.
func restore(log []entry, path string) ([]entry, error) {
	if len(log) == 0 {
		return nil, nil
	}
	d := newDiskModel()
	d.advance(log, len(log))
	v := d.image(cut{})
	file := v.file(v.names[fileName])
	if err := file.put(path); err != nil {
		return nil, err
	}
	return holds(log, *file, path)
}

// holds returns a log in which the same was printed as in the other, and that makes the durable
// file at the path.
func holds(log []entry, file content, path string) ([]entry, error) {
	id, missing := inode(path)
	folder, err := inode(filepath.Dir(path))
	if err := errors.Join(missing, err); err != nil {
		return nil, err
	}
	var spoken []entry
	for _, e := range log {
		if e.Kind == said {
			spoken = append(spoken, e)
		}
	}
	return join(spoken, []entry{
		{Kind: named, File: id, Folder: folder, Name: fileName},
		{Kind: wrote, File: id, Data: file.data},
		{Kind: resized, File: id, Size: file.size},
		{Kind: synced, File: id, Began: 3},
		{Kind: synced, File: folder, Began: 3},
	}), nil
}

// carryOut runs the trials, several at a time, and saves the log of the i-th as dir/i.log.
func carryOut(ctx context.Context, all []trial, dir string) error {
	return load.Each(len(all), runtime.GOMAXPROCS(0), func(i int) error {
		own := filepath.Join(dir, strconv.Itoa(i))
		defer os.RemoveAll(own)
		log, _, err := all[i].try(ctx, own)
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].what, err)
		}
		return save(log, logOf(dir, i))
	})
}

func logOf(dir string, i int) string { return filepath.Join(dir, strconv.Itoa(i)+".log") }
