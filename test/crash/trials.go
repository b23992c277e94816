package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	count := make(map[target]int)
	for _, e := range clean {
		if e.Kind == said {
			continue
		}
		on := target{e.Kind, e.On}
		count[on]++
		list := failures(e.Kind)
		chosen := list[:1]
		if len(list) > 1 {
			chosen = []faults{list[0], list[1+random.IntN(len(list)-1)]}
		}
		for _, f := range chosen {
			f.on, f.at = on, count[on]
			all = append(all, trial{before: before, script: s, faults: f, what: fmt.Sprintf("start %d, %s: %s", s.Start, on.nth(f.at), f)})
		}
	}
	return all
}

// try runs the trial in a folder of its own, and returns what was done and printed; its own part
// begins at own.
func (t trial) try(ctx context.Context, dir string) (log []entry, own int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, err
	}
	files := filepath.Join(dir, folderName)
	t.script.Path = files
	log, err = restore(t.before, files)
	if err != nil {
		return nil, 0, err
	}
	run, err := runWriter(ctx, files, t.script, t.faults)
	return join(log, run), len(log), err
}

// restore makes the folder that the log makes at the path, and returns a log that makes it there
// and in which the same was printed.
func restore(log []entry, path string) ([]entry, error) {
	d := newDiskModel()
	d.advance(log, len(log))
	if err := d.image(cut{}).put(path); err != nil {
		return nil, err
	}
	return holds(log, path)
}

// holds returns a log in which the same was printed as in the other, and that makes the folder at
// the path durably.
func holds(log []entry, path string) (made []entry, err error) {
	v, err := readFolder(path)
	if err != nil {
		return nil, err
	}
	folder, err := inode(path)
	if err != nil {
		return nil, err
	}
	for name, id := range v.names {
		made = append(made,
			entry{Kind: named, File: id, Folder: folder, Name: name},
			entry{Kind: wrote, File: id, Data: v.file(id).data},
			entry{Kind: synced, File: id, Began: len(made) + 2})
	}
	made = append(made, entry{Kind: synced, File: folder, Began: len(made)})
	return join(slices.DeleteFunc(slices.Clone(log), entry.touches), made), nil
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
