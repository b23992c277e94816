package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
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

// maxEndings is how many power cuts are tried at the end of a run.
const maxEndings = 12

// end runs the trial with that number, and checks what it has left: as it is, and after power cuts.
// It returns whether the store failed in the run, or went on.
func (t trial) end(ctx context.Context, dir string, run int, seed uint64, clean *truth) (kind, verdict string, err error) {
	own := filepath.Join(dir, strconv.Itoa(run))
	log, _, err := t.try(ctx, own)
	if err == nil {
		verdict, err = endings(log, clean, own, rand.New(rand.NewPCG(seed, uint64(run))))
	}
	if err != nil {
		return "", "", errors.Join(fmt.Errorf("%s: %s: %w", own, t.what, err), save(log, filepath.Join(own, "recording.log")))
	}
	return "fault", verdict, os.RemoveAll(own)
}

// endings checks what a run has left.
func endings(log []entry, clean *truth, dir string, random *rand.Rand) (verdict string, err error) {
	r, err := newRecording(log, clean, dir)
	if err != nil {
		return "", err
	}
	failed, err := silentAfterFailure(log)
	if err != nil {
		return "", err
	}
	d := newDiskModel()
	d.advance(log, len(log))
	plans := []plan{{}, {Cut: &cut{Drop: 1<<63 - 1}}}
	for _, c := range d.cuts(random) {
		plans = append(plans, plan{Cut: &c})
	}
	for i, p := range plans[:min(len(plans), maxEndings)] {
		p.At, p.Seen = len(log), len(log)
		if _, err := r.try(d, p, "ending-"+strconv.Itoa(i), i%4 == 3); err != nil {
			return "", err
		}
	}
	if failed {
		return "stopped", nil
	}
	return "went on", nil
}

// silentAfterFailure reports whether the store has failed. It is an error if it answered anything
// after that: such an answer could be lost.
func silentAfterFailure(log []entry) (failed bool, err error) {
	var first line
	for _, e := range log {
		if e.Kind != said {
			continue
		}
		l, err := decode(e.Data)
		switch {
		case err != nil:
			return failed, err
		case !l.Told:
		case failed && !l.lost():
			return failed, fmt.Errorf("call %s was answered after %s had failed: %s", l.ID, first.ID, first.Detail)
		case !failed && l.lost():
			failed, first = true, l
		}
	}
	return failed, nil
}
