package firestore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/store/internal/history"
)

// A look into the whole outbox would pass over the index entries of all events that were announced
// lately, which Firestore keeps for a while. So a handle looks only at what was requested since
// shortly before its last complete look: at all of the outbox at first, and then once in allAfter.
const allAfter = time.Hour

// outboxLooks is how far a handle has looked into the outbox.
type outboxLooks struct {
	mu      sync.Mutex // guards all below
	since   time.Time  // what was requested before is announced; zero if that is not known
	all     time.Time  // when all of it was looked at, by the store's time
	last    time.Time  // the last complete look
	noIndex time.Time  // until when only the whole is looked at, for a look at a part had no index
}

// from returns since when to look; zero: at all of the outbox.
func (l *outboxLooks) from() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.Before(l.noIndex) || l.last.Sub(l.all) >= allAfter {
		return time.Time{}
	}
	return l.since
}

// complete notes a look that has found all that there was at that time. oldest is the time of the
// oldest request among it, zero if there was nothing.
func (l *outboxLooks) complete(at, oldest time.Time, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last = at; all {
		l.all = at
	}
	if !oldest.IsZero() && oldest.Before(at) {
		at = oldest
	}
	l.since = at.Add(-history.Slack)
}

// lost notes that it is not known what is in the outbox. A missing index may be under way.
func (l *outboxLooks) lost(noIndex bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since = (time.Time{}); noIndex {
		l.noIndex = l.last.Add(allAfter)
	}
}

// lately reads what was requested since then and is still to be announced, in the order of names.
// ok is false if there is more than the limit, or no index for that.
func (s *Store) lately(ctx context.Context, since time.Time, limit int) (found findings, ok bool, err error) {
	q := s.requestedAfter(since, min(limit, maxPage))
	q.where = append(q.where, where(unannouncedField, equal, boolean(true))...)
	found, err = s.run(ctx, q)
	switch {
	case status.Code(err) == codes.FailedPrecondition:
		s.looks.lost(true)
		return findings{}, false, nil
	case err != nil:
		return findings{}, false, err
	case len(found.docs) == q.limit:
		s.looks.lost(false)
		return findings{}, false, nil
	}
	slices.SortFunc(found.docs, func(a, b reading) int { return strings.Compare(a.doc.Name, b.doc.Name) })
	return found, true, nil
}

// oldestRequest returns the earliest requestedAt; zero if there is none.
func oldestRequest(docs []reading) (oldest time.Time) {
	for _, r := range docs {
		at := timeOf(r.doc.Fields[requestedField].GetTimestampValue())
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}
