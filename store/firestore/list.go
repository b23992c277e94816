package firestore

import (
	"context"
	"fmt"
	"path"

	"regent/leadership"
	"regent/leadership/rule"
)

// List reads a page of elections: one RunQuery. A record must be readable and agree with itself;
// whether it agrees with its history is checked by Get and Update.
func (s *Store) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	operation := fmt.Sprintf("list %q", prefix)
	if err := s.begin(ctx); err != nil {
		return rule.Listing{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	end := leadership.Election(prefix + lastRune)
	if limit < 1 || after >= end {
		return rule.Listing{}, nil
	}
	limit = min(limit, maxPage-1)
	q := query{parent: s.database.documents(), collection: collection, before: s.database.lease(end), limit: limit + 1}
	if prefix != "" {
		q.from = s.database.lease(leadership.Election(prefix))
	}
	if string(after) >= prefix && after != "" {
		q.after = s.database.lease(after)
	}
	var listing rule.Listing
	for {
		answer, err := s.run(ctx, q)
		if err != nil {
			return rule.Listing{}, unavailable(ctx, operation, err)
		}
		found := answer.docs
		if len(found) <= limit {
			s.enter(&listing, found)
			return listing, nil
		}
		found = found[:limit] // the extra one only shows that there are more
		if n := throughElection(found); n > 0 {
			s.enter(&listing, found[:n]) // the rest is found again
			listing.Next = electionOf(found[n-1])
			return listing, nil
		}
		s.enter(&listing, found)
		q.after = found[limit-1].doc.Name // a whole page without an election
	}
}

// enter adds the found documents to the listing.
func (s *Store) enter(l *rule.Listing, found []reading) {
	for _, r := range found {
		e := electionOf(r)
		doc, err := decodeRecord(string(e), r.doc.Fields, r.updated(), s.codec)
		snap := rule.Snapshot{Record: doc.record, Now: r.at, Guard: guard}
		if err == nil {
			err = rule.VerifyAlone(snap)
		}
		l.Add(e, snap, err)
	}
}

// electionOf returns the document's id, which need not be a valid name of an election.
func electionOf(r reading) leadership.Election { return leadership.Election(path.Base(r.doc.Name)) }

// throughElection returns the number of documents up to the last one with a valid election name; 0
// if there is none.
func throughElection(found []reading) int {
	for n := len(found); n > 0; n-- {
		if electionOf(found[n-1]).Validate() == nil {
			return n
		}
	}
	return 0
}
