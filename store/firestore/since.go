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

// usual is longer than it takes from an event's request to its commit, unless Firestore holds it
// up: by then the call has been given up.
const usual = rpcTimeout

// Since looks for events by requestedAt, from some time before the instant on, and takes those
// whose create_time is after it: an event is requested before it is committed, by no more than
// history.Slack. It is one RunQuery for each sincePage of documents; Now is when the first began.
//
// A handle that has read so far before reads what was requested within usual of the instant, and
// counts the rest, which costs a read for each 1000 documents. Times of commits and reads are of
// one order, but say nothing of when a commit was requested. If it counts as many as it has read,
// though, none was added by a late commit, and those that were read were committed soon after their
// request, before the instant: an event that was not is remembered, and all is read again.
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

// requests are how many documents a handle has read, by the second of their requestedAt.
type requests struct {
	mu   sync.Mutex // guards all below
	from int64      // all from this second on were read
	seen map[int64]int
}

// between returns how many it has read of some seconds; 0 if it has not read them all.
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

// note takes what was read from begin on; of the seconds from from to begin it has read all before.
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

// requestedSince asks for all events that were requested in the second or later.
func (s *Store) requestedSince(second int64) query {
	return s.requestedAfter(time.Unix(max(second, 1), -1000), sincePage) // Firestore knows no time before the year 1
}

// requestedAfter asks for all events that were requested after an instant, in that order.
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
	late       bool          // one was committed longer after its request than is usual
}

// add takes the next findings. An event that cannot be read is an error, because none may be
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
