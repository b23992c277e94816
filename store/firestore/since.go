package firestore

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
	"regent/store/internal/history"
)

// sincePage is how many documents Since asks for at once.
const sincePage = 1000

// Since looks for events by requestedAt, from some time before the instant on, and takes those
// whose create_time is after it: an event is requested before it is committed, by no more than
// history.Slack. It is one RunQuery for each sincePage of documents; Now is when the first began.
func (s *Store) Since(ctx context.Context, after time.Time, limit int) (leadership.Recent, error) {
	const operation = "read recent events"
	if err := s.begin(ctx); err != nil {
		return leadership.Recent{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	q := s.requestedSince(after.Add(-history.Slack))
	window := window{after: after}
	for {
		found, err := s.run(ctx, q)
		if err != nil {
			return leadership.Recent{}, unavailable(ctx, operation, err)
		}
		if err := window.add(s.database, found); err != nil {
			return leadership.Recent{}, fmt.Errorf("firestore: %s: %w", operation, err)
		}
		if len(found.docs) < q.limit || len(window.events) > limit || s.history.Over(after, window.now) {
			return s.history.Since(after, window.now, window.events, limit)
		}
		last := found.docs[len(found.docs)-1].doc
		q.after, q.afterAt = last.Name, last.Fields[requestedField].GetTimestampValue().AsTime()
	}
}

// requestedSince asks for all events that were requested after the instant.
func (s *Store) requestedSince(at time.Time) query {
	if first := time.Unix(0, 0); at.Before(first) {
		at = first // Firestore knows no time before the year 1
	}
	return query{parent: s.database.documents(), collection: eventsCollection, everywhere: true, by: requestedField, later: at, limit: sincePage}
}

// window gathers the events that were committed after an instant and not after now, in the order in
// which they were requested.
type window struct {
	after, now time.Time
	events     []leadership.Event
}

// add takes the next findings. An event that cannot be read is an error, because none may be
// missing.
func (w *window) add(d database, found findings) error {
	if w.now.IsZero() {
		w.now = found.at
	}
	for _, r := range found.docs {
		id, ours := d.parseEvent(r.doc.Name)
		at := timeOf(r.doc.CreateTime)
		if !ours || !at.After(w.after) || at.After(w.now) {
			continue
		}
		ev, err := decodeEvent(id, r.doc.Fields, at)
		if err != nil {
			return leadership.Corrupt(id.Election, err)
		}
		w.events = append(w.events, ev)
	}
	return nil
}
