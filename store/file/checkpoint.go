package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const (
	minCheckpoint = 16 << 20 // a shorter log is not worth a snapshot
	blockSize     = 1 << 20  // of a snapshot, written and synced at once
)

// checkpoints makes snapshots, one at a time, beside the writer.
type checkpoints struct {
	folder string
	least  int64 // the length of a log from which on there is a checkpoint
	due    int64 // the length of the present log at which there is the next one
	busy   chan struct{}

	mu       sync.Mutex
	snapshot int64 // the size of the newest; guarded by mu
	failed   error // of the last attempt; guarded by mu
}

func newCheckpoints(folder string, least, snapshot int64) *checkpoints {
	c := &checkpoints{folder: folder, least: least, snapshot: snapshot, busy: make(chan struct{}, 1)}
	c.due = max(least, snapshot)
	return c
}

// rotate begins the next log and a snapshot, if the log is long enough. An error means that the log
// cannot be relied on any more.
func (c *checkpoints) rotate(l *log, t *table) error {
	if l.at < c.due {
		return nil
	}
	select {
	case c.busy <- struct{}{}:
	default:
		return nil // the last one is not done yet
	}
	next, err := createLog(l.folder, l.id, l.number+1, l.sequence+1)
	if err != nil {
		c.due = l.at + c.least
		c.end(0, fmt.Errorf("file: the next log cannot be made: %w", err))
		return nil
	}
	end := append(appendInstant(beginFrame(nil), t.last), tagEnd)
	if err := l.append(end); err != nil {
		next.disk.Close()
		<-c.busy
		return err
	}
	l.disk.Close() // all of it is durable
	*l = *next
	c.due = max(c.least, c.size())
	go c.write(l.id, l.number, l.sequence, t.frozen())
	return nil
}

// wait returns the error of the last attempt, once it has ended.
func (c *checkpoints) wait() error {
	c.busy <- struct{}{}
	defer func() { <-c.busy }()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *checkpoints) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot
}

func (c *checkpoints) end(size int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed = err; err == nil {
		c.snapshot = size
	}
	<-c.busy
}

// write writes the snapshot that a log begins with, and then removes what is older.
func (c *checkpoints) write(id identity, number, sequence uint64, t *table) {
	var size int64
	err := writeParts(filepath.Join(c.folder, snapshotName(number)), func(write func([]byte) error) error {
		return t.encode(fileHead{kindSnapshot, id, number, sequence}, func(part []byte) error {
			size += int64(len(part))
			return write(part)
		})
	})
	if err == nil {
		err = removeOlder(c.folder, number)
	}
	if err != nil {
		err = fmt.Errorf("file: the last checkpoint failed, so the logs become longer: %w", err)
	}
	c.end(size, err)
}

// removeOlder removes the logs and snapshots before a number.
func removeOlder(folder string, number uint64) error {
	files, err := list(folder)
	for _, n := range files.logs {
		if n < number {
			err = errors.Join(err, os.Remove(filepath.Join(folder, logName(n))))
		}
	}
	for _, n := range files.snapshots {
		if n < number {
			err = errors.Join(err, os.Remove(filepath.Join(folder, snapshotName(n))))
		}
	}
	return err
}

// frozen is a copy of what a snapshot has of the table. It stays as it is: what both share is not
// changed any more.
func (t *table) frozen() *table {
	return &table{
		entries: maps.Clone(t.entries), events: pages{list: slices.Clone(t.events.list)},
		last: t.last, pruned: t.pruned, boot: t.boot, anchor: t.anchor,
	}
}

// encode writes the table as a snapshot.
func (t *table) encode(h fileHead, write func([]byte) error) error {
	s := &snapshotWriter{seed: h.id.seed(), write: write, t: t}
	if err := write(h.encode()); err != nil {
		return err
	}
	s.begin()
	s.frame = appendInstant(appendText(append(s.frame, tagBoot), t.boot), t.anchor)
	s.frame = appendInstant(append(s.frame, tagPruned), t.pruned)
	for i := range t.events.list {
		if err := s.page(&t.events.list[i]); err != nil {
			return err
		}
	}
	for _, n := range t.entries {
		if err := s.entry(n); err != nil {
			return err
		}
	}
	s.frame = append(s.frame, tagEnd)
	return s.flush()
}

// snapshotWriter gathers entries to blocks.
type snapshotWriter struct {
	seed     uint32
	write    func([]byte) error
	t        *table
	frame    []byte
	sequence uint64
}

func (s *snapshotWriter) begin() { s.frame = appendInstant(beginFrame(s.frame), s.t.last) }

func (s *snapshotWriter) flush() error {
	s.sequence++
	b := endFrame(s.frame, s.seed, s.sequence)
	b = append(b, make([]byte, aligned(len(b))-len(b))...)
	s.frame = b
	return s.write(b)
}

func (s *snapshotWriter) next() error {
	if len(s.frame) < blockSize {
		return nil
	}
	err := s.flush()
	s.begin()
	return err
}

func (s *snapshotWriter) page(p *page) error {
	if p.packed != nil {
		s.frame = appendPage(s.frame, p.packed)
		return s.next()
	}
	for d := (&decoder{rest: p.raw}); len(d.rest) > 0; {
		if event := d.text(); len(event) > 0 {
			s.frame = append(append(s.frame, tagEvent), event...)
		}
	}
	return s.next()
}

func (s *snapshotWriter) entry(n *entry) error {
	e := n.record.Election
	if n.carried.Needs != 0 {
		s.frame = appendRecord(s.frame, &n.record, n.carried)
	}
	if len(n.places) > 0 && n.places[0].revision > 1 {
		s.frame = appendRevision(s.frame, tagForgotten, e, n.places[0].revision-1)
	}
	s.frame = binary.AppendUvarint(appendElection(s.frame, tagWaiting, e), uint64(len(n.waiting)))
	for _, r := range n.waiting {
		s.frame = binary.AppendVarint(s.frame, int64(r))
	}
	return s.next()
}
