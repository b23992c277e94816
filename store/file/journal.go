package file

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/internal/logs"
)

var _ service.Journal = (*Store)(nil)

// log returns a log as changed by the batch so far.
func (b *batch) log(id rule.LogID) *logs.Log {
	if l := b.logs[id]; l != nil {
		return l
	}
	return b.table.log(id)
}

// ownLog returns a log that the batch may change.
func (b *batch) ownLog(id rule.LogID) *logs.Log {
	if b.logs[id] == nil {
		own := *b.table.log(id)
		b.logs[id] = &own
	}
	return b.logs[id]
}

// log returns a log of the table, an empty one if it was never written.
func (t *table) log(id rule.LogID) *logs.Log {
	if l := t.logs[id]; l != nil {
		return l
	}
	return &logs.Log{Head: rule.Log{ID: id}}
}

// amend decides on a log, and adds the change to the batch. If it returns an error it has added
// nothing.
func (b *batch) amend(id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	head := b.log(id).Head
	ch, err := func() (rule.LogChange, error) {
		defer b.catch()
		return decide(head)
	}()
	if err != nil {
		return rule.Log{}, err
	}
	if ch.Text == "" {
		return head, nil
	}
	if err := sound(id, ch); err != nil {
		return rule.Log{}, err
	}
	l := b.ownLog(id)
	l.Head = rule.Log{ID: id, Text: ch.Text, Body: ch.Body, WrittenAt: b.now}
	b.frame = appendLog(b.frame, &l.Head)
	for _, s := range ch.Add {
		if s.At.IsZero() {
			s.At = b.now
		}
		l.Put(s)
		b.frame = appendSegment(b.frame, id, &s)
	}
	return l.Head, nil
}

// sound returns an error if a change could make a sector of zeros, or has an invalid segment.
func sound(id rule.LogID, ch rule.LogChange) error {
	texts := []string{ch.Text, ch.Body}
	for _, s := range ch.Add {
		if s.First < 0 || s.Last < max(s.First, 1) {
			return fmt.Errorf("file: the %s of %q: there is no segment from %d to %d", id.Kind, id.Election, s.First, s.Last)
		}
		texts = append(texts, s.Data)
	}
	if slices.ContainsFunc(texts, func(s string) bool { return strings.ContainsRune(s, 0) }) {
		return fmt.Errorf("file: the %s of %q: one of its texts has a zero byte", id.Kind, id.Election)
	}
	return nil
}

// trim deletes segments of a log.
func (b *batch) trim(id rule.LogID, upTo leadership.Index) {
	if b.log(id).Behind(upTo) > 0 {
		b.ownLog(id).Trim(upTo)
		b.frame = appendTrim(b.frame, id, upTo)
	}
}

// Amend implements service.Journal. Deciding on a large body takes milliseconds, so it is done here
// first; the writer decides again only if the head has changed since.
func (s *Store) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	seen, err := s.Look(ctx, id)
	if err != nil {
		return rule.Log{}, err
	}
	ch, err := decide(seen)
	switch {
	case err != nil:
		return rule.Log{}, err
	case ch.Text == "":
		return seen, nil
	}
	var after rule.Log
	err = s.writer.do(ctx, func(b *batch) (err error) {
		after, err = b.amend(id, func(present rule.Log) (rule.LogChange, error) {
			if present == seen {
				return ch, nil
			}
			return decide(present)
		})
		return err
	})
	if err != nil {
		return rule.Log{}, err
	}
	return after, nil
}

func (s *Store) Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error {
	return s.writer.do(ctx, func(b *batch) error {
		b.trim(id, upTo)
		return nil
	})
}

func (s *Store) Look(ctx context.Context, id rule.LogID) (head rule.Log, err error) {
	err = s.view(ctx, func(t *table) { head = t.log(id).Head })
	return head, err
}

func (s *Store) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) (found []rule.Segment, err error) {
	err = s.view(ctx, func(t *table) { found = t.log(id).Page(after, limit) })
	return found, err
}

func (s *Store) Snapshot(ctx context.Context, id rule.LogID) (snapshot rule.Segment, err error) {
	err = s.view(ctx, func(t *table) { snapshot = t.log(id).Snapshot })
	return snapshot, err
}

func (s *Store) Logs(ctx context.Context, after rule.LogID, limit int) (ids []rule.LogID, err error) {
	err = s.view(ctx, func(t *table) { ids = slices.Collect(maps.Keys(t.logs)) })
	return logs.After(ids, after, limit), err
}

// appendLogID begins an entry of a log.
func appendLogID(b []byte, t tag, id rule.LogID) []byte {
	return appendText(appendElection(b, t, id.Election), id.Kind)
}

func appendLog(b []byte, l *rule.Log) []byte {
	return appendText(appendText(appendInstant(appendLogID(b, tagLog, l.ID), l.WrittenAt), l.Text), l.Body)
}

func appendSegment(b []byte, id rule.LogID, s *rule.Segment) []byte {
	b = appendLogID(b, tagSegment, id)
	b = binary.AppendVarint(binary.AppendVarint(b, int64(s.First)), int64(s.Last))
	return appendText(appendInstant(b, s.At), s.Data)
}

func appendTrim(b []byte, id rule.LogID, upTo leadership.Index) []byte {
	return binary.AppendVarint(appendLogID(b, tagTrimmed, id), int64(upTo))
}

func (d *decoder) logID() rule.LogID {
	return rule.LogID{Election: leadership.Election(d.text()), Kind: rule.LogKind(d.text())}
}

// log decodes what appendLog wrote after the tag.
func (d *decoder) log() (l rule.Log) {
	l.ID, l.WrittenAt, l.Text, l.Body = d.logID(), d.instant(), string(d.text()), string(d.text())
	if l.Text == "" {
		d.fail("a log has no text")
	}
	return l
}

// segment decodes what appendSegment wrote after the tag.
func (d *decoder) segment() (id rule.LogID, s rule.Segment) {
	id = d.logID()
	s = rule.Segment{First: leadership.Index(d.varint()), Last: leadership.Index(d.varint()), At: d.instant(), Data: string(d.text())}
	if s.First < 0 || s.Last < max(s.First, 1) {
		d.fail(fmt.Sprintf("a segment goes from %d to %d", s.First, s.Last))
	}
	return id, s
}

// replayLog replaces the head of a log.
func (t *table) replayLog(d *decoder) {
	if head := d.log(); d.err == nil {
		l := t.log(head.ID)
		l.Head, t.logs[head.ID] = head, l
	}
}

// replaySegment puts a segment in its place in a log.
func (t *table) replaySegment(d *decoder) {
	id, s := d.segment()
	if l := t.logs[id]; l != nil {
		l.Put(s)
	} else {
		d.fail(fmt.Sprintf("a segment belongs to the %s of %q, which is not there", id.Kind, id.Election))
	}
}

// replayTrim deletes segments of a log.
func (t *table) replayTrim(d *decoder) {
	id, upTo := d.logID(), leadership.Index(d.varint())
	if l := t.logs[id]; l == nil || !l.Trim(upTo) {
		d.fail(fmt.Sprintf("segments of the %s of %q are deleted that are not there", id.Kind, id.Election))
	}
}

// encodeLog passes the parts of a log to add.
func encodeLog(l *logs.Log, add func(func([]byte) []byte) error) error {
	err := add(func(b []byte) []byte { return appendLog(b, &l.Head) })
	if err == nil && l.Snapshot.Last > 0 {
		err = add(func(b []byte) []byte { return appendSegment(b, l.Head.ID, &l.Snapshot) })
	}
	for i := range l.Segments {
		if err != nil {
			return err
		}
		err = add(func(b []byte) []byte { return appendSegment(b, l.Head.ID, &l.Segments[i]) })
	}
	return err
}
