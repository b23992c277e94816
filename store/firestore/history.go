package firestore

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
)

// Events reads a part of an election's history: one RunQuery.
func (s *Store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	operation := fmt.Sprintf("read the events of %q", e)
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if limit < 1 {
		return nil, nil
	}
	found, err := s.run(ctx, query{
		parent:     s.database.lease(e),
		collection: eventsCollection,
		after:      s.database.event(leadership.EventID{Election: e, Revision: max(after, 0)}),
		limit:      limit,
	})
	if err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	return s.events(operation, e, found.docs)
}

func (s *Store) events(operation string, e leadership.Election, found []reading) ([]leadership.Event, error) {
	var events []leadership.Event
	for _, r := range found {
		id, ok := s.database.parseEvent(r.doc.Name)
		if !ok {
			return nil, corruptHistory(operation, e, fmt.Errorf("event %.64q has no revision for a name", path.Base(r.doc.Name)))
		}
		ev, err := decodeEvent(id, r.doc.Fields, timeOf(r.doc.CreateTime))
		if err != nil {
			return nil, corruptHistory(operation, e, err)
		}
		events = append(events, ev)
	}
	return events, nil
}

func corruptHistory(operation string, e leadership.Election, why error) error {
	return fmt.Errorf("firestore: %s: %w", operation, rule.Corrupt(e, why))
}

// Unannounced reads the events that are still to be announced: one RunQuery over all elections, or
// over one. An event that cannot be decoded holds up the later ones of its election, which must not
// overtake it, but not other elections; it is returned as RecordCorrupt once there is nothing else.
func (s *Store) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	const operation = "read unannounced events"
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	left, err := s.left(ctx, e, limit)
	if err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	if len(left.events) == 0 && left.corrupt != nil {
		return nil, fmt.Errorf("firestore: %s: %w", operation, left.corrupt)
	}
	return left.events, nil
}

// left reads the outbox of an election, or of all.
func (s *Store) left(ctx context.Context, e leadership.Election, limit int) (left outbox, err error) {
	if since := s.looks.from(); e == "" && !since.IsZero() {
		found, ok, err := s.lately(ctx, since, limit)
		if err != nil {
			return outbox{}, err
		}
		if ok {
			left.add(s.database, found.docs)
			s.looks.complete(found.at, oldestRequest(found.docs), false)
			return left, nil
		}
	}
	q := s.unannounced(e)
	var began, oldest time.Time
	for len(left.events) < limit {
		q.limit = min(limit-len(left.events), maxPage)
		found, err := s.run(ctx, q)
		if err != nil {
			return outbox{}, err
		}
		if began.IsZero() {
			began = found.at
		}
		if first := oldestRequest(found.docs); oldest.IsZero() || !first.IsZero() && first.Before(oldest) {
			oldest = first
		}
		q.after = left.add(s.database, found.docs)
		if len(found.docs) < q.limit {
			if e == "" && left.corrupt == nil {
				s.looks.complete(began, oldest, true)
			}
			break
		}
	}
	return left, nil
}

// unannounced returns the query for the outbox of an election, or of all.
func (s *Store) unannounced(e leadership.Election) query {
	waiting := where(unannouncedField, equal, boolean(true))
	if e != "" {
		return query{parent: s.database.lease(e), collection: eventsCollection, where: waiting}
	}
	return query{
		parent:     s.database.documents(),
		collection: eventsCollection,
		everywhere: true,
		where:      waiting,
		from:       s.database.lease("0"), // the first and the last name an election can have: other collections may be called events too
		before:     s.database.lease(lastRune),
	}
}

// outbox gathers events that are to be announced, in the order of their names.
type outbox struct {
	events  []leadership.Event
	blocked leadership.Election // the last election with an event that cannot be decoded
	corrupt error               // the first such event
}

// add adds the next findings in the order of names, and returns the name to continue after.
func (o *outbox) add(d database, found []reading) (after string) {
	for _, r := range found {
		after = r.doc.Name
		id, ok := d.parseEvent(r.doc.Name)
		if !ok {
			continue // not an event of Regent
		}
		if id.Election != o.blocked {
			ev, err := decodeEvent(id, r.doc.Fields, timeOf(r.doc.CreateTime))
			if err == nil {
				o.events = append(o.events, ev)
				continue
			}
			o.blocked = id.Election
			o.corrupt = cmp.Or(o.corrupt, rule.Corrupt(id.Election, err))
		}
		after = d.afterEvents(id.Election)
	}
	return after
}

// MarkAnnounced removes the field unannounced from the events: one BatchWrite.
func (s *Store) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	const operation = "mark events as announced"
	if err := s.begin(ctx); err != nil {
		return unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	results, err := s.batchWrite(ctx, s.marks(ids))
	if err != nil {
		return unwritten(ctx, operation, err)
	}
	code := leadership.StoreUnavailable
	var refused error
	for _, w := range results {
		switch {
		case w.err == nil:
			code = leadership.OutcomeUnknown // some may have been marked
		case status.Code(w.err) == codes.NotFound: // there never was such an event
		default:
			refused = cmp.Or(refused, w.err)
			if writeCode(w.err) == leadership.OutcomeUnknown {
				code = leadership.OutcomeUnknown
			}
		}
	}
	if refused == nil {
		return nil
	}
	return failure(ctx, operation, code, refused)
}

// marks returns one write for each event, without repeats, because a BatchWrite must not name a
// document twice. A field in the mask that the write does not have is removed.
func (s *Store) marks(ids []leadership.EventID) []*firestorepb.Write {
	seen := make(map[leadership.EventID]bool, len(ids))
	var writes []*firestorepb.Write
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		w := put(s.database.event(id), nil, exists(true))
		w.UpdateMask = &firestorepb.DocumentMask{FieldPaths: []string{unannouncedField}}
		writes = append(writes, w)
	}
	return writes
}
