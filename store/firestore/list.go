package firestore

import (
	"context"
	"fmt"
	"path"

	"regent/leadership"
)

// List reads a page of elections: one RunQuery. A record must be readable and agree with itself; whether it agrees with its history is for
// those to find out who decide on it.
func (s *Store) List(ctx context.Context, prefix string, after leadership.Election, limit int) (leadership.Listing, error) {
	operation := fmt.Sprintf("list %q", prefix)
	if err := s.calls.enter(ctx); err != nil {
		return leadership.Listing{}, unavailable(ctx, operation, err)
	}
	defer s.calls.leave()
	end := leadership.Election(prefix + lastRune)
	if limit < 1 || after >= end {
		return leadership.Listing{}, nil
	}
	limit = min(limit, maxPage-1)
	q := query{parent: s.database.documents(), collection: collection, before: s.database.lease(end), limit: limit + 1}
	if prefix != "" {
		q.from = s.database.lease(leadership.Election(prefix))
	}
	if string(after) >= prefix && after != "" {
		q.after = s.database.lease(after)
	}
	for {
		answer, err := s.run(ctx, q)
		if err != nil {
			return leadership.Listing{}, unavailable(ctx, operation, err)
		}
		found := answer.docs
		if len(found) <= limit {
			return leadership.Listing{Snapshots: snapshots(found)}, nil
		}
		found = found[:limit] // the one beyond only says that there are more
		if next := lastElection(found); next != "" {
			return leadership.Listing{Snapshots: snapshots(found), Next: next}, nil
		}
		q.after = found[limit-1].doc.Name // a whole page of documents that are no elections
	}
}

// snapshots leaves out what cannot be trusted.
func snapshots(found []reading) []leadership.Snapshot {
	var out []leadership.Snapshot
	for _, r := range found {
		doc, err := decodeRecord(path.Base(r.doc.Name), r.doc.Fields, r.updated())
		if err != nil {
			continue
		}
		snap := leadership.Snapshot{Record: doc.record, Now: r.at, Guard: guard}
		if sound(snap) == nil {
			out = append(out, snap)
		}
	}
	return out
}

// lastElection returns the last name that an election can have, "" if there is none.
func lastElection(found []reading) leadership.Election {
	for i := len(found) - 1; i >= 0; i-- {
		if e := leadership.Election(path.Base(found[i].doc.Name)); e.Validate() == nil {
			return e
		}
	}
	return ""
}
