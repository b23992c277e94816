package file

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"regent/leadership/rule"
)

// loaded is the content of a folder, with the faults to repair before the folder can be used.
type loaded struct {
	path      string
	table     *table
	id        identity
	log       uint64   // number of the newest log; 0 if the folder is empty
	head      fileHead // of the newest log
	sequence  uint64   // of the last commit
	at, size  int64    // where the log's next frame begins, and up to where it is filled with zeros
	torn      *torn    // a torn frame of the log; nil if all are whole
	closed    bool     // whether the store was closed, according to the file state
	leftovers []string // of an interrupted checkpoint
	snapshot  int64    // the size of the snapshot
	bytes     int64    // of all files
}

// load reads a folder and verifies it. It changes nothing.
func load(path string, codec rule.Codec) (*loaded, error) {
	l := &loaded{path: path, table: newTable()}
	files, err := list(path)
	if err != nil {
		return nil, err
	}
	state, err := l.readState(files.state)
	if err != nil {
		return nil, err
	}
	l.leftovers = files.unfinished
	switch none := len(files.logs) == 0 && len(files.snapshots) == 0; {
	case none && state != nil:
		return nil, damaged(logName(1), "it is missing, and so is every other log and snapshot")
	case none && files.others:
		return nil, errors.New("it has files in it that are not the store's; name a folder that is empty, or a new one")
	case none:
		return l, nil
	}
	if err := l.read(files); err != nil {
		return nil, err
	}
	l.table.ready(codec)
	return l, l.reaches(state)
}

// content reads a file.
func (l *loaded) content(name string) ([]byte, error) {
	info, err := os.Lstat(filepath.Join(l.path, name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, damaged(name, "it is missing")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, damaged(name, "it is not a regular file")
	}
	content, err := os.ReadFile(filepath.Join(l.path, name))
	l.bytes += int64(len(content))
	return content, err
}

// readState returns the head of the state file, nil if there is none or if it was never written.
func (l *loaded) readState(there bool) (*fileHead, error) {
	if !there {
		return nil, nil
	}
	content, err := l.content(stateName)
	if err != nil || zero(content) {
		return nil, err
	}
	h, err := decodeHead(kindState, stateName, content)
	if err == nil && (len(content) != headSize || h.number > 1) {
		err = damaged(stateName, "it does not say whether the store was closed")
	}
	l.id, l.closed = h.id, h.number == 1
	return &h, err
}

// read reads the newest snapshot, and the logs from it on.
func (l *loaded) read(files contents) error {
	first, logs := uint64(1), files.logs
	if n := len(files.snapshots); n > 0 {
		first = files.snapshots[n-1]
		if err := l.readSnapshot(first); err != nil {
			return err
		}
	} else if logs[0] > 1 { // without a snapshot there is at least one log
		return damaged(snapshotName(logs[0]), "it is missing")
	}
	l.leftovers = append(l.leftovers, files.before(first)...)
	unread, _ := slices.BinarySearch(logs, first)
	logs = logs[unread:]
	for n := first; ; n++ {
		if len(logs) == 0 || logs[0] != n {
			return damaged(logName(n), "it is missing")
		}
		logs = logs[1:]
		if ended, err := l.readLog(n); err != nil {
			return err
		} else if !ended {
			return l.unused(n, logs)
		}
	}
}

// open reads a log or a snapshot, and returns its frames.
func (l *loaded) open(kind, name string, number uint64) (*frames, error) {
	content, err := l.content(name)
	if err != nil {
		return nil, err
	}
	h, err := decodeHead(kind, name, content)
	switch {
	case err != nil:
		return nil, err
	case l.id != identity{} && h.id != l.id:
		return nil, damaged(name, "it belongs to another store")
	case h.number != number:
		return nil, damaged(name, "it is number %d", h.number)
	}
	return &frames{name: name, head: h, seed: h.id.seed(), content: content, at: headSize, sequence: h.sequence}, nil
}

func (l *loaded) readSnapshot(n uint64) error {
	f, err := l.open(kindSnapshot, snapshotName(n), n)
	if err != nil {
		return err
	}
	l.snapshot = int64(len(f.content))
	l.sequence, f.sequence = f.sequence, 0
	f.content = f.content[:len(f.content)&^(alignment-1)]
	ended, err := l.replay(f)
	if err == nil && (!ended || f.at != int(l.snapshot)) {
		err = f.damaged("its end is missing, or something follows it")
	}
	return err
}

// readLog reads a log. It reports whether the log leads to the next one.
func (l *loaded) readLog(n uint64) (ended bool, err error) {
	f, err := l.open(kindLog, logName(n), n)
	if err != nil {
		return false, err
	}
	// A power cut can leave a part of the last step, in which nothing was written yet.
	part := f.content[len(f.content)/step*step:]
	f.content = f.content[:len(f.content)/step*step]
	switch {
	case len(f.content) == 0 || !zero(part):
		return false, damaged(f.name, "it has been cut off within a step of %d bytes", step)
	case f.sequence != l.sequence:
		return false, damaged(f.name, "it begins after commit %d, and what is before it ends with commit %d", f.sequence, l.sequence)
	}
	ended, err = l.replay(f)
	l.head = f.head
	l.log, l.at, l.size, l.sequence, l.torn = n, int64(f.at), int64(len(f.content)), f.sequence, f.torn
	if ended && !zero(f.content[f.at:]) {
		err = f.damaged("something follows its end")
	}
	return ended, err
}

// replay applies a file's frames. It reports whether there was an end entry.
func (l *loaded) replay(f *frames) (ended bool, err error) {
	for !ended {
		payload, err := f.next()
		if payload == nil || err != nil {
			return false, err
		}
		if ended, err = l.table.replay(payload); err != nil {
			return false, f.damaged("before this, commit %d: %v", f.sequence, err)
		}
	}
	return true, nil
}

// unused checks the logs after the last one that was used: there may be one, without commits, which
// an interrupted checkpoint has made.
func (l *loaded) unused(n uint64, behind []uint64) error {
	if len(behind) == 0 {
		return nil
	}
	name := logName(behind[0])
	f, err := l.open(kindLog, name, behind[0])
	if err != nil {
		return err
	}
	switch {
	case len(behind) > 1, behind[0] != n+1, !zero(f.content[headSize:]):
		return damaged(name, "%s does not lead to it: the last commits of that are missing", logName(n))
	case f.sequence > l.sequence+1: // it is less if the checkpoint failed and the previous log went on
		return damaged(logName(n), "it ends with commit %d, and %s was made after commit %d", l.sequence, name, f.sequence-1)
	}
	l.leftovers = append(l.leftovers, name)
	return nil
}

// reaches checks that the last commit is not before the one that the state file names, and is that
// one if the store was closed.
func (l *loaded) reaches(state *fileHead) error {
	switch {
	case state == nil && (l.sequence > 0 || l.log > 1 || l.torn != nil): // the state file is written before the first commit
		return damaged(stateName, "it is missing, or was emptied")
	case state == nil:
		return nil
	case l.sequence < state.sequence:
		return damaged(logName(l.log), "it ends with commit %d, and the store has had %d", l.sequence, state.sequence)
	case state.number == 1 && (l.sequence > state.sequence || l.torn != nil):
		return damaged(logName(l.log), "it goes on after commit %d, with which the store was closed", state.sequence)
	}
	return nil
}

// mend removes the leftovers of an interrupted checkpoint or a power cut, and opens the newest log,
// or creates the first.
func (l *loaded) mend() (made *log, err error) {
	for _, name := range l.leftovers {
		if err := os.Remove(filepath.Join(l.path, name)); err != nil {
			return nil, err
		}
	}
	if l.log == 0 {
		made, err = createLog(l.path, fileHead{kind: kindLog, id: newIdentity(), number: 1})
	} else {
		made, err = openLog(l.path, l.head, l.sequence, l.at, l.size)
	}
	if err != nil {
		return nil, err
	}
	if l.torn != nil {
		err = made.erase(l.torn)
	}
	if err = errors.Join(err, made.writeState(false)); err != nil {
		made.disk.Close()
	}
	return made, err
}
