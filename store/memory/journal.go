package memory

import (
	"context"
	"maps"
	"slices"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/internal/logs"
)

var _ service.Journal = (*Store)(nil)

// look runs a read of a log.
func (s *Store) look(ctx context.Context, id rule.LogID, read func(logs.Log)) error {
	d, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	read(d.log(id))
	return nil
}

// log returns a log, empty if it was never written. Call with mu held.
func (d *data) log(id rule.LogID) logs.Log {
	l := d.logs[id]
	l.Head.ID = id
	return l
}

func (s *Store) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return rule.Log{}, err
	}
	defer d.mu.Unlock()
	l, now := d.log(id), d.now().Round(0)
	ch, err := decide(l.Head)
	if err != nil {
		return rule.Log{}, err
	}
	if ch.Text == "" {
		return l.Head, nil
	}
	l.Head = rule.Log{ID: id, Text: ch.Text, Body: ch.Body, WrittenAt: now}
	for _, segment := range ch.Add {
		if segment.At.IsZero() {
			segment.At = now
		}
		l.Put(segment)
	}
	d.logs[id] = l
	return l.Head, nil
}

func (s *Store) Look(ctx context.Context, id rule.LogID) (head rule.Log, err error) {
	err = s.look(ctx, id, func(l logs.Log) { head = l.Head })
	return head, err
}

func (s *Store) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) (found []rule.Segment, err error) {
	err = s.look(ctx, id, func(l logs.Log) { found = l.Page(after, limit) })
	return found, err
}

func (s *Store) Snapshot(ctx context.Context, id rule.LogID) (snapshot rule.Segment, err error) {
	err = s.look(ctx, id, func(l logs.Log) { snapshot = l.Snapshot })
	return snapshot, err
}

func (s *Store) Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error {
	return s.look(ctx, id, func(l logs.Log) {
		if l.Trim(upTo) {
			s.data.logs[id] = l
		}
	})
}

func (s *Store) Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	return logs.After(slices.Collect(maps.Keys(d.logs)), after, limit), nil
}
