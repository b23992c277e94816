package firestore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/internal/history"
)

// sincePage is how many documents Since asks for at once.
const sincePage = 1000

// usual is longer than the time from an event's request to its commit, unless Firestore is very
// slow: by then the caller has given up.
const usual = rpcTimeout

// Since looks for events by requestedAt, from some time before the instant on, and takes those
// whose create_time is after it: an event is requested before it is committed, by no more than
// history.Slack. It is one RunQuery for each sincePage of documents; Now is when the first began.
//
// A handle that has read these events before reads only those requested within usual of the
// instant, and counts the earlier ones, which costs a read for each 1000 documents. If the count
// equals the number that it has read before, no late commit has added an event, and all of them
// were committed soon after their request, before the instant. (If an event was not, that is
// remembered, and all are read again.)
func (s *Store) Since(ctx context.Context, after time.Time, limit int) (rule.Recent, error) {
	const operation = "read recent events"
	if err := s.begin(ctx); err != nil {
		return rule.Recent{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	window := window{after: after, seen: make(map[int64]int)}
	from, soon := after.Add(-history.Slack).Unix(), after.Add(-usual).Unix()
	begin := from
	if n := s.requests.between(from, soon); n >= sincePage {
		all := s.requestedSince(from)
		all.where = append(all.where, where(requestedField, less, instant(time.Unix(soon, 0)))...)
		if counted, at, err := s.count(ctx, all); err == nil && counted == n {
			begin, window.now = soon, at
		}
	}
	q := s.requestedSince(begin)
	for {
		found, err := s.run(ctx, q)
		if err != nil {
			return rule.Recent{}, unavailable(ctx, operation, err)
		}
		if err := window.add(s.database, found); err != nil {
			return rule.Recent{}, fmt.Errorf("firestore: %s: %w", operation, err)
		}
		whole := len(found.docs) < q.limit
		if whole {
			s.requests.note(from, begin, window)
		}
		if whole || len(window.events) > limit || s.history.Over(after, window.now) {
			return s.history.Since(after, window.now, window.events, limit)
		}
		last := found.docs[len(found.docs)-1].doc
		q.after, q.afterBy = last.Name, last.Fields[requestedField]
	}
}

// requests counts the documents that a handle has read, by the second of their requestedAt.
type requests struct {
	mu   sync.Mutex // guards all below
	from int64      // all from this second on were read
	seen map[int64]int
}

// between returns how many documents of these seconds were read; 0 if not all of them were.
func (r *requests) between(from, to int64) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, docs := range r.seen {
		if r.from <= from && from <= at && at < to {
			n += docs
		}
	}
	return n
}

// note adds the documents that were read from the second begin on. All of the seconds between from
// and begin were read before.
func (r *requests) note(from, begin int64, w window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, docs := range r.seen {
		if from <= at && at < begin {
			w.seen[at] = docs
		}
	}
	if r.from, r.seen = from, w.seen; w.late {
		r.seen = nil
	}
}

// requestedSince returns the query for all events that were requested in that second or later.
func (s *Store) requestedSince(second int64) query {
	return s.requestedAfter(time.Unix(max(second, 1), -1000), sincePage) // Firestore knows no time before the year 1
}

// requestedAfter returns the query for all events that were requested after an instant, in that
// order.
func (s *Store) requestedAfter(at time.Time, limit int) query {
	return query{
		parent:     s.database.documents(),
		collection: eventsCollection,
		everywhere: true,
		where:      where(requestedField, greater, instant(at)),
		by:         requestedField,
		limit:      limit,
	}
}

// window gathers the events that were committed after an instant and not after now, in the order in
// which they were requested.
type window struct {
	after, now time.Time
	events     []leadership.Event
	seen       map[int64]int // all documents, by the second in which they were requested
	late       bool          // an event was committed more than usual after its request
}

// add adds the next findings. An event that cannot be decoded is an error, because none may be
// missing.
func (w *window) add(d database, found findings) error {
	if w.now.IsZero() {
		w.now = found.at
	}
	for _, r := range found.docs {
		id, ours := d.parseEvent(r.doc.Name)
		at, requested := timeOf(r.doc.CreateTime), timeOf(r.doc.Fields[requestedField].GetTimestampValue())
		w.seen[requested.Unix()]++
		w.late = w.late || ours && at.Sub(requested) > usual
		if !ours || !at.After(w.after) || at.After(w.now) {
			continue
		}
		ev, err := decodeEvent(id, r.doc.Fields, at)
		if err != nil {
			return rule.Corrupt(id.Election, err)
		}
		w.events = append(w.events, ev)
	}
	return nil
}
