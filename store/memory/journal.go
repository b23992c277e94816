package memory

import (
	"context"
	"slices"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// logData is a log as it is stored.
type logData struct {
	head     rule.Log
	snapshot rule.Segment
	segments []rule.Segment // in order
}

var _ service.Journal = (*Store)(nil)

// look runs a read of a log.
func (s *Store) look(ctx context.Context, id rule.LogID, read func(logData)) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	read(s.data.log(id))
	return nil
}

// log is a log, empty if it was never written; mu must be held.
func (d *data) log(id rule.LogID) logData {
	l := d.logs[id]
	l.head.ID = id
	return l
}

func (s *Store) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	if err := s.ready(ctx); err != nil {
		return rule.Log{}, err
	}
	d := s.data
	d.mu.Lock()
	defer d.mu.Unlock()
	l, now := d.log(id), d.now().Round(0)
	ch, err := decide(l.head)
	if err != nil {
		return rule.Log{}, err
	}
	if ch.Text == "" {
		return l.head, nil
	}
	l.head = rule.Log{ID: id, Text: ch.Text, Body: ch.Body, WrittenAt: now}
	l.segments = slices.Clone(l.segments)
	for _, segment := range ch.Add {
		if segment.At.IsZero() {
			segment.At = now
		}
		l.put(segment)
	}
	d.logs[id] = l
	return l.head, nil
}

func (l *logData) put(s rule.Segment) {
	if s.First == 0 {
		l.snapshot = s
		return
	}
	at := l.behind(s.First - 1)
	if at < len(l.segments) && l.segments[at].First == s.First {
		l.segments[at] = s
		return
	}
	l.segments = slices.Insert(l.segments, at, s)
}

// behind is the place of the first segment with an entry after the index.
func (l *logData) behind(after leadership.Index) int {
	at, _ := slices.BinarySearchFunc(l.segments, after+1, func(s rule.Segment, i leadership.Index) int { return int(s.Last - i) })
	return at
}

func (s *Store) Look(ctx context.Context, id rule.LogID) (head rule.Log, err error) {
	err = s.look(ctx, id, func(l logData) { head = l.head })
	return head, err
}

func (s *Store) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) (found []rule.Segment, err error) {
	err = s.look(ctx, id, func(l logData) {
		size := 0
		for _, segment := range l.segments[l.behind(after):] {
			if size += len(segment.Data); len(found) >= limit || size > leadership.MaxReadBytes && len(found) > 0 {
				break
			}
			found = append(found, segment)
		}
	})
	return found, err
}

func (s *Store) Snapshot(ctx context.Context, id rule.LogID) (snapshot rule.Segment, err error) {
	err = s.look(ctx, id, func(l logData) { snapshot = l.snapshot })
	return snapshot, err
}

func (s *Store) Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error {
	return s.look(ctx, id, func(l logData) {
		if at := l.behind(upTo); at > 0 {
			l.segments = slices.Clone(l.segments[at:])
			s.data.logs[id] = l
		}
	})
}

func (s *Store) Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	var ids []rule.LogID
	for id := range s.data.logs {
		if id.Compare(after) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, rule.LogID.Compare)
	return ids[:min(len(ids), limit)], nil
}
