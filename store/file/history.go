package file

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"regent/leadership"
	"regent/store/internal/history"
)

// Events implements leadership.Store.
func (s *Store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) (events []leadership.Event, err error) {
	err = s.view(ctx, func(t *table, _ time.Time) error {
		if n := t.entries[e]; n != nil {
			events, err = t.eventsAt(e, n.places[n.behind(after):], limit)
		}
		return err
	})
	return events, err
}

// eventsAt reads up to limit events of an election.
func (t *table) eventsAt(e leadership.Election, places []place, limit int) (events []leadership.Event, err error) {
	for _, p := range places[:min(len(places), max(limit, 0))] {
		event, err := t.event(p.number)
		if err != nil {
			return nil, leadership.Corrupt(e, err)
		}
		events = append(events, event)
	}
	return events, nil
}

func (t *table) event(number uint64) (event leadership.Event, err error) {
	unread := t.events.read(number, func(content []byte) bool {
		event, err = decodeEvent(content)
		return false
	})
	return event, errors.Join(unread, err)
}

// Unannounced implements leadership.Store.
func (s *Store) Unannounced(ctx context.Context, e leadership.Election, limit int) (events []leadership.Event, err error) {
	err = s.view(ctx, func(t *table, _ time.Time) error {
		elections := []leadership.Election{e}
		if e == "" {
			elections = slices.Sorted(maps.Keys(t.waiting))
		}
		for _, e := range elections {
			if len(events) >= limit || !t.waiting[e] {
				continue
			}
			n := t.entries[e]
			for _, r := range n.waiting[:min(len(n.waiting), limit-len(events))] {
				found, err := t.eventsAt(e, n.places[n.behind(r-1):], 1)
				if err != nil {
					return err
				}
				events = append(events, found...)
			}
		}
		return nil
	})
	return events, err
}

// Since implements leadership.Store.
func (s *Store) Since(ctx context.Context, after time.Time, limit int) (recent leadership.Recent, err error) {
	now, err := s.settled(ctx)
	if err != nil {
		return leadership.Recent{}, err
	}
	err = s.view(ctx, func(t *table, _ time.Time) (err error) {
		var found []leadership.Event
		if !s.history.Over(after, now) && after.Before(now) { // else there is nothing to find
			found, err = t.between(after, now, limit+1)
		}
		if err == nil {
			recent, err = s.history.Since(after, now, found, limit)
		}
		return err
	})
	return recent, err
}

// settled returns the present instant, once every commit up to that instant is visible. A commit
// becomes visible only after its time, when the disk has it.
func (s *Store) settled(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.writer.do(ctx, func(b *batch) error {
		now = b.now
		return nil
	})
	switch {
	case errors.Is(err, leadership.OutcomeUnknown): // as far as a read's can be
		return time.Time{}, s.writer.usable(ctx)
	case err != nil:
		return time.Time{}, err // the writer may still be at it
	}
	return now, nil
}

// between reads up to limit of the events that were committed after the instant and not after the
// other.
func (t *table) between(after, last time.Time, limit int) (events []leadership.Event, err error) {
	if after.Before(t.pruned) {
		return nil, history.Compacted(after, t.pruned) // history was kept for a shorter time before
	}
	for n := t.events.after(after.UnixNano()); n < t.events.end() && len(events) < limit && err == nil; n += pageEvents {
		unread := t.events.read(n, func(content []byte) bool {
			event, undecoded := decodeEvent(content)
			if err = undecoded; err == nil && event.At.After(after) && !event.At.After(last) {
				events = append(events, event)
			}
			return err == nil && len(events) < limit
		})
		err = errors.Join(unread, err)
	}
	if err != nil {
		return nil, leadership.Corrupt("", err)
	}
	return events, nil
}
