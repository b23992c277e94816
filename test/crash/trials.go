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
	"sync"
	"syscall"
)

// trial is a short run of the writer to which something happens at one of its calls.
type trial struct {
	before []entry // what the file was made by
	script script
	faults faults
	what   string
}

// ills is what can happen to a call of a kind, the first of which always does.
func ills(k kind) []faults {
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

// trials plans a trial for every call that the writer makes on files in the log of a life in which nothing happened: the first of
// its ills, and one more.
func trials(life []entry, before []entry, s script, random *rand.Rand) (all []trial) {
	n := 0
	for _, e := range life {
		if !e.touches() {
			continue
		}
		n++
		list := ills(e.Kind)
		chosen := list[:1]
		if len(list) > 1 {
			chosen = []faults{list[0], list[1+random.IntN(len(list)-1)]}
		}
		for _, f := range chosen {
			f.at = n
			all = append(all, trial{before: before, script: s, faults: f, what: fmt.Sprintf("life %d, call %d (%s): %s", s.Life, n, e.Kind, f)})
		}
	}
	return all
}

// try carries out the trial in a folder of its own, and returns what was done and said; its own part begins at own.
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
	life, err := live(ctx, files, t.script, t.faults)
	return join(log, life), len(log), err
}

// restore puts the file that the log makes at the path, and returns a log that makes it there, and in which the same was said.
func restore(log []entry, path string) ([]entry, error) {
	if len(log) == 0 {
		return nil, nil
	}
	d := newDisk()
	d.advance(log, len(log))
	v := d.image(cut{})
	file := v.file(v.names[fileName])
	if err := file.put(path); err != nil {
		return nil, err
	}
	return holds(log, *file, path)
}

// holds is a log in which the same was said as in the other, and that the durable file at the path comes of.
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

// carryOut carries out the trials, several at a time, and saves the log of the i-th as dir/i.log.
func carryOut(ctx context.Context, all []trial, dir string) error {
	errs := make([]error, len(all))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, t := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			own := filepath.Join(dir, strconv.Itoa(i))
			defer os.RemoveAll(own)
			log, _, err := t.try(ctx, own)
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", t.what, err)
				return
			}
			errs[i] = save(log, logOf(dir, i))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func logOf(dir string, i int) string { return filepath.Join(dir, strconv.Itoa(i)+".log") }
