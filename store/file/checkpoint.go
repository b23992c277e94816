package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

const (
	minCheckpoint = 16 << 20 // a shorter log is not worth a snapshot
	blockSize     = 1 << 20  // of a snapshot, written and synced at once
)

// checkpoints makes snapshots, one at a time, while the writer goes on. Only the writer uses it.
type checkpoints struct {
	log      *slog.Logger
	least    int64       // the least length of a log that gets a checkpoint
	due      int64       // the length of the present log at which the next checkpoint is due
	snapshot int64       // the size of the newest snapshot
	failed   error       // of the last attempt
	done     chan result // of the attempt in progress; nil if there is none
}

type result struct {
	size int64
	err  error
}

// rotate begins the next log and a snapshot, if the log is long enough. After an error the log can
// no longer be relied on.
func (c *checkpoints) rotate(l *log, t *table) error {
	select {
	case r := <-c.done:
		c.ended(r)
	default:
	}
	if l.at < c.due || c.done != nil {
		return nil
	}
	next, err := createLog(l.folder, fileHead{kindLog, l.head.id, l.head.number + 1, l.sequence + 1})
	if err != nil {
		c.due = l.at + c.least
		c.ended(result{err: err})
		return nil
	}
	if err := l.append(append(appendInstant(beginFrame(nil), t.last), tagEnd)); err != nil {
		next.disk.Close()
		return err
	}
	l.disk.Close() // all of it is durable
	*l = *next
	c.due = max(c.least, c.snapshot)
	c.done = make(chan result, 1)
	h, frozen, done := fileHead{kindSnapshot, l.head.id, l.head.number, l.sequence}, t.frozen(), c.done
	go func() {
		size, err := frozen.write(l.folder, h)
		done <- result{size, err}
	}()
	return nil
}

func (c *checkpoints) ended(r result) {
	c.done, c.failed = nil, nil
	if r.err != nil {
		c.failed = fmt.Errorf("file: the last checkpoint failed, so the logs become longer: %w", r.err)
		c.log.Warn("a checkpoint has failed, so the logs become longer; nothing is lost", "reason", r.err)
		return
	}
	c.snapshot = r.size
}

// wait returns the error of the last attempt, once it has ended.
func (c *checkpoints) wait() error {
	if c.done != nil {
		c.ended(<-c.done)
	}
	return c.failed
}

// frozen returns a copy of those parts of the table that a snapshot has. Neither the copy nor
// anything that it shares with the table ever changes.
func (t *table) frozen() *table {
	return &table{
		entries: maps.Clone(t.entries), events: pages{list: slices.Clone(t.events.list)},
		logs: maps.Clone(t.logs), last: t.last, pruned: t.pruned, boot: t.boot, anchor: t.anchor,
	}
}

// write writes the table as a snapshot, and then removes older logs and snapshots.
func (t *table) write(folder string, h fileHead) (size int64, err error) {
	err = writeFile(filepath.Join(folder, snapshotName(h.number)), func(write func([]byte) error) error {
		return t.encode(h, func(part []byte) error {
			size += int64(len(part))
			return write(part)
		})
	})
	if err != nil {
		return 0, err
	}
	files, err := list(folder)
	for _, name := range files.before(h.number) {
		err = errors.Join(err, os.Remove(filepath.Join(folder, name)))
	}
	return size, err
}

// encode passes the parts of the snapshot to write: its head, and then frames of about blockSize.
func (t *table) encode(h fileHead, write func([]byte) error) error {
	if err := write(h.encode()); err != nil {
		return err
	}
	seed, sequence := h.id.seed(), uint64(0)
	b := appendInstant(beginFrame(nil), t.last)
	flush := func() error {
		sequence++
		b = endFrame(b, seed, sequence)
		err := write(append(b, make([]byte, aligned(len(b))-len(b))...))
		b = appendInstant(beginFrame(b), t.last)
		return err
	}
	add := func(encode func([]byte) []byte) error {
		if b = encode(b); len(b) < blockSize {
			return nil
		}
		return flush()
	}
	b = appendInstant(appendText(append(b, tagBoot), t.boot), t.anchor)
	b = appendInstant(append(b, tagPruned), t.pruned)
	for i := range t.events.list {
		if err := add(t.events.list[i].encode); err != nil {
			return err
		}
	}
	for _, n := range t.entries {
		if err := add(n.encode); err != nil {
			return err
		}
	}
	for _, l := range t.logs {
		if err := encodeLog(l, add); err != nil {
			return err
		}
	}
	b = append(b, tagEnd)
	return flush()
}

func (p *page) encode(b []byte) []byte {
	if p.packed != nil {
		return append(binary.AppendUvarint(append(b, tagPage), uint64(len(p.packed))), p.packed...)
	}
	for d := (&decoder{rest: p.raw}); len(d.rest) > 0; {
		b = append(append(b, tagEvent), d.text()...)
	}
	return b
}

func (n *entry) encode(b []byte) []byte {
	e := n.record.Election
	if n.carried.Needs != 0 {
		r := n.current()
		b = appendRecord(b, &r, n.carried)
	}
	if len(n.places) > 0 && n.places[0].revision > 1 {
		b = appendRevision(b, tagForgotten, e, n.places[0].revision-1)
	}
	b = binary.AppendUvarint(appendElection(b, tagWaiting, e), uint64(len(n.waiting)))
	for _, r := range n.waiting {
		b = binary.AppendVarint(b, int64(r))
	}
	return b
}
