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

// allAfter is how often a handle looks at all of the outbox. Such a look scans the index entries of
// all events that were announced lately, which Firestore keeps for a while. So the other looks are
// only at events requested since shortly before the last complete look.
const allAfter = time.Hour

// outboxLooks is the progress of a handle's looks into the outbox.
type outboxLooks struct {
	mu      sync.Mutex // guards all below
	since   time.Time  // all events requested before are announced; zero if unknown
	all     time.Time  // when all of the outbox was last looked at, by the store's time
	last    time.Time  // the last complete look
	noIndex time.Time  // until then only the whole is looked at, because the index for a part is missing
}

// from returns the time of request from which to look; zero: at all of the outbox.
func (l *outboxLooks) from() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.Before(l.noIndex) || l.last.Sub(l.all) >= allAfter {
		return time.Time{}
	}
	return l.since
}

// complete notes a look that has found all events to be announced at that time. oldest is the
// earliest time of request among them, zero if there were none.
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

// lost notes that the content of the outbox is not known. A missing index may be created later.
func (l *outboxLooks) lost(noIndex bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since = (time.Time{}); noIndex {
		l.noIndex = l.last.Add(allAfter)
	}
}

// lately reads the events that were requested since then and are still to be announced, in the
// order of names. ok is false if there are more than the limit, or if the index is missing.
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
