package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/store/internal/history"
)

// Events implements leadership.Store.
func (s *Store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) (events []leadership.Event, err error) {
	err = s.view(ctx, func(t *transaction) error {
		prefix := eventPrefix(e)
		c := t.tx.Bucket(eventsBucket).Cursor()
		for key, sealed := c.Seek(eventKey(leadership.EventID{Election: e, Revision: after + 1})); bytes.HasPrefix(key, prefix) && len(events) < limit; key, sealed = c.Next() {
			event, err := readEvent(key, sealed)
			if err != nil {
				return leadership.Corrupt(e, err)
			}
			events = append(events, event)
		}
		return nil
	})
	return events, err
}

// Unannounced implements leadership.Store.
func (s *Store) Unannounced(ctx context.Context, e leadership.Election, limit int) (events []leadership.Event, err error) {
	var prefix []byte // of all
	if e != "" {
		prefix = eventPrefix(e)
	}
	err = s.view(ctx, func(t *transaction) error {
		events, err = t.unannounced(prefix, limit)
		return err
	})
	return events, err
}

// unannounced leaves out an election's events from the first one on that cannot be read. That is an
// error only if no other event waits.
func (t *transaction) unannounced(prefix []byte, limit int) ([]leadership.Event, error) {
	var events []leadership.Event
	var bad error
	stuck := make(map[leadership.Election]bool)
	c := t.tx.Bucket(outboxBucket).Cursor()
	for key, sealed := c.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix) && len(events) < limit; key, sealed = c.Next() {
		id, err := decodeEventKey(key)
		if err == nil && stuck[id.Election] {
			continue
		}
		event, err := t.readWaiting(key, sealed)
		if err != nil {
			stuck[id.Election], bad = true, leadership.Corrupt(id.Election, err)
			continue
		}
		events = append(events, event)
	}
	if len(events) > 0 {
		return events, nil
	}
	return nil, bad
}

// readWaiting reads the event of the outbox's entry at the key.
func (t *transaction) readWaiting(key, sealed []byte) (leadership.Event, error) {
	if _, err := unseal(key, sealed); err != nil {
		return leadership.Event{}, err
	}
	return readEvent(key, t.tx.Bucket(eventsBucket).Get(key))
}

// Since implements leadership.Store.
func (s *Store) Since(ctx context.Context, after time.Time, limit int) (recent leadership.Recent, err error) {
	now, err := s.settled(ctx)
	if err != nil {
		return leadership.Recent{}, err
	}
	err = s.view(ctx, func(t *transaction) (err error) {
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

// settled returns the present instant, once every transaction up to that instant is visible. A
// transaction becomes visible only after its time, when the disk has it.
func (s *Store) settled(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.writer.do(ctx, func(t *transaction) error {
		now = t.now
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
// other. One that cannot be read is an error, because none may be missing.
func (t *transaction) between(after, last time.Time, limit int) ([]leadership.Event, error) {
	pruned, err := t.instant(metaBucket, prunedKey)
	switch {
	case err != nil:
		return nil, unavailable(fmt.Errorf("the time of the newest event that was deleted: %w", err))
	case after.Before(pruned):
		return nil, history.Compacted(after, pruned) // history was kept for a shorter time before
	}
	var events []leadership.Event
	c := t.tx.Bucket(timesBucket).Cursor()
	for key, sealed := c.Seek(encodeInstant(after.Add(1))); key != nil && len(events) < limit; key, sealed = c.Next() {
		event, err := t.readTimed(key, sealed)
		if err != nil {
			return nil, leadership.Corrupt(event.Election, err)
		}
		if event.At.After(last) {
			break
		}
		events = append(events, event)
	}
	return events, nil
}

// readTimed reads the event of the time index's entry at the key. With an error it returns as much
// as is known of it.
func (t *transaction) readTimed(key, sealed []byte) (leadership.Event, error) {
	at, eventKey, err := decodeTimeKey(key)
	if err != nil {
		return leadership.Event{}, err
	}
	if _, err := unseal(key, sealed); err != nil {
		return leadership.Event{}, err
	}
	event, err := readEvent(eventKey, t.tx.Bucket(eventsBucket).Get(eventKey))
	if err == nil && !event.At.Equal(at) {
		err = errors.New("an event's time differs from its place among the times")
	}
	return event, err
}

func readEvent(key, sealed []byte) (leadership.Event, error) {
	id, err := decodeEventKey(key)
	if err != nil {
		return leadership.Event{}, err
	}
	value, err := unseal(key, sealed)
	if err != nil {
		return leadership.Event{Election: id.Election}, err
	}
	return decodeEvent(id, value)
}

// maxPruned is how many events one change deletes at most: more than it adds, and few enough to
// stay quick.
const maxPruned = 100

// prune deletes the oldest events of an election that has just changed, as far as they need not be
// kept any longer. An event that cannot be read stays, and so do all later ones.
func (t *transaction) prune(e leadership.Election) {
	prefix := eventPrefix(e)
	var over []leadership.Event
	c := t.tx.Bucket(eventsBucket).Cursor()
	for key, sealed := c.Seek(prefix); bytes.HasPrefix(key, prefix) && len(over) < maxPruned; key, sealed = c.Next() {
		event, err := readEvent(key, sealed)
		if err != nil || !t.history.Over(event.At, t.now) {
			break
		}
		over = append(over, event)
	}
	for _, event := range over {
		key := eventKey(event.ID())
		t.remove(eventsBucket, key)
		t.remove(outboxBucket, key)
		t.remove(timesBucket, timeKey(event.At, key))
	}
	if n := len(over); n > 0 {
		t.pruned(over[n-1].At)
	}
}

// pruned notes that events committed up to the instant may be missing.
func (t *transaction) pruned(at time.Time) {
	if last, err := t.instant(metaBucket, prunedKey); err != nil || !last.Before(at) {
		return // what cannot be read is refused when it is asked for
	}
	t.put(metaBucket, prunedKey, encodeInstant(at))
}
