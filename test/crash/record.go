package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// errNoTrace: this machine does not allow a process to trace another.
var errNoTrace = errors.New("crash: processes cannot be traced here")

// record runs the writer on a new folder dir, several times, and returns what it did and printed.
// It is killed at the end of the first run, and the folder is left as in the middle of a commit and
// of a checkpoint. In the second its commits fill more than one step of a log. In the others there
// is a checkpoint as soon as a log is longer than the last snapshot.
func record(ctx context.Context, dir string, s script) (log []entry, err error) {
	s.Path = dir
	for s.Start = range starts {
		s.Abandon, s.Fill, s.Times, s.Checkpoint = s.Start == 0, 0, 0, 1
		if s.Start == 1 {
			s.Fill, s.Times, s.Checkpoint = 16, 40, 1<<20+100<<10
		}
		run, err := runWriter(ctx, dir, s, faults{})
		log = join(log, run)
		if err != nil {
			return log, err
		}
		if !s.Abandon {
			continue
		}
		unseen, err := unseen(log, dir)
		if err != nil {
			return log, err
		}
		log = join(log, unseen)
		left, err := interrupt(dir)
		if err != nil {
			return log, err
		}
		log = join(log, left)
	}
	return log, same(log, dir)
}

// starts is how often the writer is started on one folder.
const starts = 3

// runWriter runs the writer once.
func runWriter(ctx context.Context, dir string, s script, f faults) ([]entry, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stderr, err := os.OpenFile(filepath.Join(filepath.Dir(dir), "writer.txt"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	log, err := trace(ctx, dir, stderr, f, program, partWriter, string(text))
	if err != nil {
		text, _ := os.ReadFile(stderr.Name())
		err = fmt.Errorf("%w: %s", err, text[:min(len(text), 2000)])
	}
	return log, err
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

// unseen returns what the process did last, in calls that had not returned when it ended.
func unseen(log []entry, dir string) (last []entry, err error) {
	d := newDiskModel()
	d.advance(log, len(log))
	v := d.image(cut{})
	real, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	folder, err := inode(dir)
	for name, id := range v.names {
		if to := real.nameOf(id); to == "" {
			last = append(last, entry{Kind: unnamed, File: id, Folder: folder, On: name, Name: name})
		} else if to != name {
			last = append(last, entry{Kind: renamed, File: id, Folder: folder, On: name, Name: name, To: to})
		}
	}
	for name, id := range real.names {
		if v.nameOf(id) == "" {
			last = append(last, entry{Kind: named, File: id, Folder: folder, On: name, Name: name})
		}
		if made, there := v.file(id), real.file(id); !made.equal(there) {
			last = append(last, entry{Kind: wrote, File: id, On: name, Data: there.data})
		}
	}
	return last, err
}

// interrupt leaves in the folder, durably, what a power cut can leave of a commit whose first
// sector was not written, and of a file that was being made. It returns the entries that say so.
func interrupt(dir string) (log []entry, err error) {
	v, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	folder, err := inode(dir)
	if err != nil {
		return nil, err
	}
	newest := newestLog(v.sorted())
	if newest == "" {
		return nil, errors.New("the writer has left no log")
	}
	at := secondSector(v.file(v.names[newest]).used())
	if err := patchFile(filepath.Join(dir, newest), at, torn()); err != nil {
		return nil, err
	}
	unfinished := "snapshot-0000009999.new"
	if err := patchFile(filepath.Join(dir, unfinished), 0, torn()); err != nil {
		return nil, err
	}
	made, err := inode(filepath.Join(dir, unfinished))
	return []entry{
		{Kind: wrote, File: v.names[newest], On: newest, Offset: at, Data: torn()},
		{Kind: synced, File: v.names[newest], On: newest, Began: 1},
		{Kind: named, File: made, Folder: folder, On: unfinished, Name: unfinished},
		{Kind: wrote, File: made, On: unfinished, Data: torn()},
		{Kind: synced, File: made, On: unfinished, Began: 4},
		{Kind: synced, File: folder, Began: 4},
	}, err
}

// secondSector is where the second sector of the commit that follows the used bytes of a log
// begins. The commit itself begins at the next multiple of 16, which can be the end of a sector.
func secondSector(used int) int64 {
	begin := (used + 15) / 16 * 16
	return int64(begin/sector+1) * sector
}

func torn() []byte { return bytes.Repeat([]byte("torn"), sector/2) }

// patchFile writes to a file, which it creates if there is none.
func patchFile(path string, at int64, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(data, at)
	return err
}

// same compares the folder that the log makes with the one that exists: the log is complete and was
// understood.
func same(log []entry, dir string) error {
	d := newDiskModel()
	d.advance(log, len(log))
	v := d.image(cut{})
	real, err := readFolder(dir)
	if err != nil {
		return err
	}
	if made, there := v.sorted(), real.sorted(); !slices.Equal(made, there) {
		return fmt.Errorf("the folder that the log makes has %v, and the folder itself has %v", made, there)
	}
	for name, id := range v.names {
		made, there := v.file(id), real.file(real.names[name])
		if id != real.names[name] || !made.equal(there) {
			return fmt.Errorf("%s: the file that the log makes (%d bytes) differs from the file itself (%d bytes)", name, made.size, there.size)
		}
	}
	return nil
}
