package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"regent/leadership"
)

// loaded is what was read of a folder, and what has to be mended before it can be used.
type loaded struct {
	path      string
	table     *table
	id        identity
	fresh     bool     // nothing is in the folder yet
	log       uint64   // the newest
	at, size  int64    // where its next frame begins, and up to where it is filled with zeros
	sequence  uint64   // of the last commit
	torn      *torn    // of the newest log; nil if it is whole
	closed    bool     // as state says
	leftovers []string // of an interrupted checkpoint
	snapshot  int64    // the size of the snapshot
	bytes     int64    // of all files
}

// load reads a folder and verifies it. It changes nothing.
func load(path string, codec leadership.Codec) (*loaded, error) {
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
	if len(files.logs) == 0 && len(files.snapshots) == 0 {
		if l.fresh = state == nil; !l.fresh {
			return nil, faulty(logName(1), "it is missing, and so is every other log and snapshot")
		}
		if files.others {
			return nil, errors.New("it has files in it that are not the store's; name a folder that is empty, or a new one")
		}
		return l, nil
	}
	if err := l.read(files, state); err != nil {
		return nil, err
	}
	l.table.ready(codec)
	return l, l.reaches(state)
}

// readState returns what the state file says, nil if there is none or if it was never written.
func (l *loaded) readState(there bool) (*fileHead, error) {
	if !there {
		return nil, nil
	}
	content, err := l.content(stateName)
	if err != nil || zero(content) {
		return nil, err
	}
	h, err := decodeHead(kindState, content)
	if err != nil {
		return nil, asFault(stateName, err)
	}
	if len(content) != headSize || h.number > 1 {
		return nil, faulty(stateName, "it does not say whether the store was closed")
	}
	l.id, l.closed = h.id, h.number == 1
	return &h, nil
}

// content reads a file.
func (l *loaded) content(name string) ([]byte, error) {
	info, err := os.Lstat(filepath.Join(l.path, name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, faulty(name, "it is missing")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, faulty(name, "it is not a regular file")
	}
	content, err := os.ReadFile(filepath.Join(l.path, name))
	l.bytes += int64(len(content))
	return content, err
}

// read reads the newest snapshot, and the logs from it on.
func (l *loaded) read(files contents, state *fileHead) error {
	first := uint64(1)
	if n := len(files.snapshots); n > 0 {
		first = files.snapshots[n-1]
		if err := l.readSnapshot(first); err != nil {
			return err
		}
		for _, older := range files.snapshots[:n-1] {
			l.leftovers = append(l.leftovers, snapshotName(older))
		}
	}
	logs := files.logs
	for len(logs) > 0 && logs[0] < first {
		l.leftovers = append(l.leftovers, logName(logs[0]))
		logs = logs[1:]
	}
	for n := first; ; n++ {
		if len(logs) == 0 || logs[0] != n {
			return faulty(logName(n), "it is missing")
		}
		logs = logs[1:]
		ended, err := l.readLog(n)
		switch {
		case err != nil:
			return err
		case ended:
			continue
		case len(logs) == 1 && logs[0] == n+1:
			return l.unused(n + 1)
		case len(logs) > 0:
			return faulty(logName(n), "its last commits are missing: it does not lead to %s", logName(logs[0]))
		}
		return nil
	}
}

// open reads a file's head, and returns what follows as frames.
func (l *loaded) open(kind, name string, number uint64, content []byte) (*frames, error) {
	h, err := decodeHead(kind, content)
	switch {
	case err != nil:
		return nil, asFault(name, err)
	case l.id != identity{} && h.id != l.id:
		return nil, faulty(name, "it belongs to another store")
	case h.number != number:
		return nil, faulty(name, "it is number %d", h.number)
	}
	l.id = h.id
	return &frames{seed: h.id.seed(), content: content, at: headSize, sequence: h.sequence}, nil
}

// asFault adds a file's name to damage; another error stays what it is.
func asFault(name string, err error) error {
	if _, is := errors.AsType[damage](err); is {
		return &fault{name, err}
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (l *loaded) readSnapshot(n uint64) error {
	name := snapshotName(n)
	content, err := l.content(name)
	if err != nil {
		return err
	}
	if len(content)%alignment != 0 {
		return faulty(name, "it has been cut off")
	}
	f, err := l.open(kindSnapshot, name, n, content)
	if err != nil {
		return err
	}
	l.sequence, f.sequence = f.sequence, 0
	ended, err := l.replay(name, f)
	_, inPart := errors.AsType[*torn](err)
	switch {
	case inPart, err == nil && !ended:
		return faulty(name, "at byte %d: its end is missing", f.at)
	case err != nil:
		return err
	case f.at != len(content):
		return faulty(name, "at byte %d: something follows its end", f.at)
	}
	l.snapshot = int64(len(content))
	return nil
}

// readLog reads a log. It reports whether the log leads to the next one.
func (l *loaded) readLog(n uint64) (ended bool, err error) {
	name := logName(n)
	content, err := l.content(name)
	if err != nil {
		return false, err
	}
	// A power cut can leave a part of the last step, in which nothing was written yet.
	whole := content[:len(content)/step*step]
	if len(whole) == 0 || !zero(content[len(whole):]) {
		return false, faulty(name, "it has %d bytes, which is no multiple of %d: it has been cut off", len(content), step)
	}
	f, err := l.open(kindLog, name, n, whole)
	if err != nil {
		return false, err
	}
	if n > 1 && f.sequence != l.sequence {
		return false, faulty(name, "it begins after commit %d, and what is before it ends with commit %d", f.sequence, l.sequence)
	}
	ended, err = l.replay(name, f)
	l.log, l.at, l.size, l.sequence = n, int64(f.at), int64(len(whole)), f.sequence
	if t, is := errors.AsType[*torn](err); is {
		l.torn, err = t, nil
	}
	if err != nil {
		return false, err
	}
	if ended && !zero(whole[f.at:]) {
		return false, faulty(name, "at byte %d: something follows its end", f.at)
	}
	return ended, nil
}

// replay repeats what a file's frames say, up to its end.
func (l *loaded) replay(name string, f *frames) (ended bool, err error) {
	for !ended {
		at := f.at
		payload, err := f.next()
		if _, is := errors.AsType[damage](err); is {
			return false, &fault{name, err}
		}
		if payload == nil || err != nil {
			return false, err
		}
		if ended, err = l.table.replay(payload); err != nil {
			return false, &fault{name, damage{at, err.Error()}}
		}
	}
	return true, nil
}

// unused checks that the log behind the last one that was used has no commit in it.
func (l *loaded) unused(n uint64) error {
	name := logName(n)
	content, err := l.content(name)
	if err != nil {
		return err
	}
	f, err := l.open(kindLog, name, n, content)
	switch {
	case err != nil:
		return err
	case !zero(content[headSize:]):
		return faulty(name, "it has commits, and %s does not lead to it", logName(n-1))
	case f.sequence > l.sequence+1: // less, if it was made in vain and the log before went on
		return faulty(logName(n-1), "it ends with commit %d, and %s was made after commit %d", l.sequence, name, f.sequence-1)
	}
	l.leftovers = append(l.leftovers, name)
	return nil
}

// reaches checks that the last commit is not before the one that the state names, and is that one
// if the store was closed.
func (l *loaded) reaches(state *fileHead) error {
	switch {
	case state == nil:
		return nil
	case l.sequence < state.sequence:
		return faulty(logName(l.log), "it ends with commit %d, and the store has had %d", l.sequence, state.sequence)
	case state.number == 1 && (l.sequence > state.sequence || l.torn != nil):
		return faulty(logName(l.log), "it goes on after commit %d, with which the store was closed", state.sequence)
	}
	return nil
}

// mend removes what an interrupted checkpoint or a power cut has left, and opens the newest log, or
// creates the first.
func (l *loaded) mend() (*log, error) {
	for _, name := range l.leftovers {
		if err := os.Remove(filepath.Join(l.path, name)); err != nil {
			return nil, err
		}
	}
	if l.fresh {
		l.log, l.id = 1, newIdentity()
		made, err := createLog(l.path, l.id, 1, 0)
		if err != nil {
			return nil, err
		}
		return made, writeState(l.path, l.id, false, 0)
	}
	opened, err := openLog(l.path, l.id, l.log, l.sequence, l.at, l.size)
	if err != nil {
		return nil, err
	}
	if l.torn != nil {
		err = opened.erase(l.torn)
	}
	if err = errors.Join(err, writeState(l.path, l.id, false, l.sequence)); err != nil {
		opened.disk.Close()
		return nil, err
	}
	return opened, nil
}

// writeState says durably whether the store is closed, and that it has had so many commits.
func writeState(path string, id identity, closed bool, sequence uint64) (err error) {
	f, err := os.OpenFile(filepath.Join(path, stateName), os.O_WRONLY|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := fileHead{kind: kindState, id: id, sequence: sequence}
	if closed {
		h.number = 1
	}
	if _, err := f.WriteAt(h.encode(), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncFolder(path)
}

// count returns how many elections and events there are.
func (t *table) count() (elections, events int) {
	for _, n := range t.entries {
		events += len(n.places)
	}
	return len(t.entries), events
}
