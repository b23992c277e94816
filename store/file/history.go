package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/internal/history"
)

func (s *Store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	var found []slot
	err := s.view(ctx, func(t *table) {
		if n := t.entries[e]; n != nil {
			for _, p := range n.places[n.behind(after):] {
				if len(found) >= limit {
					break
				}
				found = append(found, t.events.at(p.number))
			}
		}
	})
	return s.read(found, err)
}

func (s *Store) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	var found []slot
	err := s.view(ctx, func(t *table) {
		elections := []leadership.Election{e}
		if e == "" {
			elections = slices.Sorted(maps.Keys(t.waiting))
		}
		for _, e := range elections {
			if n := t.entries[e]; n != nil {
				for _, r := range n.waiting[:min(len(n.waiting), max(limit-len(found), 0))] {
					found = append(found, t.events.at(n.places[n.behind(r-1)].number))
				}
			}
		}
	})
	return s.read(found, err)
}

// read reads one event of each slot, while commits go on.
func (s *Store) read(found []slot, err error) ([]leadership.Event, error) {
	if err != nil || len(found) == 0 {
		return nil, err
	}
	events := make([]leadership.Event, 0, len(found))
	for _, at := range found {
		err := s.cache.read(at, func(e leadership.Event) bool {
			events = append(events, e)
			return false
		})
		if err != nil {
			return nil, fmt.Errorf("file: event %d: %w", at.number, err)
		}
	}
	return events, nil
}

func (s *Store) Since(ctx context.Context, after time.Time, limit int) (recent rule.Recent, err error) {
	now, err := s.settled(ctx)
	if err != nil {
		return rule.Recent{}, err
	}
	var found []leadership.Event
	if !s.history.Over(after, now) && after.Before(now) { // otherwise there is nothing to find
		found, err = s.between(ctx, after, now, limit+1)
	}
	if err != nil {
		return rule.Recent{}, err
	}
	return s.history.Since(after, now, found, limit)
}

// settled returns the present instant once every commit up to it is visible. A commit becomes
// visible only after its time, when it is durable.
func (s *Store) settled(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.writer.do(ctx, func(b *batch) error {
		now = b.now
		return nil
	})
	switch {
	case errors.Is(err, leadership.OutcomeUnknown): // of a change, and a read changes nothing
		return time.Time{}, s.writer.usable(ctx)
	case err != nil:
		return time.Time{}, err
	}
	return now, nil
}

// between reads up to limit events that were committed after the instant after and not after last.
func (s *Store) between(ctx context.Context, after, last time.Time, limit int) (events []leadership.Event, err error) {
	var found []slot
	var pruned time.Time
	err = s.view(ctx, func(t *table) { found, pruned = t.events.after(after.UnixNano()), t.pruned })
	if err == nil && after.Before(pruned) {
		err = history.Compacted(after, pruned) // Config.History was shorter before
	}
	for _, at := range found {
		if err != nil || len(events) >= limit {
			break
		}
		err = s.cache.read(at, func(e leadership.Event) bool {
			if e.At.After(after) && !e.At.After(last) {
				events = append(events, e)
			}
			return len(events) < limit
		})
	}
	return events, err
}
