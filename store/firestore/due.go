package firestore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
)

// Held reads a page of the elections whose leaderId is not empty, in the order of leaderId and
// name: one RunQuery. Records are checked as List does.
func (s *Store) Held(ctx context.Context, after leadership.Election, limit int) (rule.Listing, error) {
	const operation = "read what is held"
	if err := s.begin(ctx); err != nil {
		return rule.Listing{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if limit < 1 {
		return rule.Listing{}, nil
	}
	limit = min(limit, maxPage-1)
	q := query{
		parent:     s.database.documents(),
		collection: collection,
		where:      where(leaderField, greater, text("")),
		by:         leaderField,
		limit:      limit + 1,
	}
	if leader, e, ok := cutHolder(after); ok {
		q.after, q.afterBy = s.database.lease(e), text(leader)
	}
	answer, err := s.run(ctx, q)
	if err != nil {
		return rule.Listing{}, unavailable(ctx, operation, indexed(leaderField, err))
	}
	var listing rule.Listing
	found := answer.docs
	if len(found) > limit { // the extra one only says that there are more
		found = found[:limit]
		last := found[limit-1]
		listing.Next = holder(last.doc.Fields[leaderField].GetStringValue(), electionOf(last))
	}
	s.enter(&listing, found)
	return listing, nil
}

// holder names a place in the order of Held. No document's id has a slash.
func holder(leader string, e leadership.Election) leadership.Election {
	return leadership.Election(leader) + "/" + e
}

func cutHolder(place leadership.Election) (leader string, e leadership.Election, ok bool) {
	i := strings.LastIndexByte(string(place), '/')
	if i < 0 {
		return "", "", false
	}
	return string(place[:i]), place[i+1:], true
}

// Retirable reads the documents whose retireAt is not after the instant: one RunQuery.
func (s *Store) Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error) {
	const operation = "read what is to be retired"
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if limit < 1 {
		return nil, nil
	}
	answer, err := s.run(ctx, query{
		parent:     s.database.documents(),
		collection: collection,
		where:      where(retireField, notGreater, instant(at)),
		by:         retireField,
		limit:      limit,
	})
	if err != nil {
		return nil, unavailable(ctx, operation, indexed(retireField, err))
	}
	var due []leadership.Election
	for _, r := range answer.docs {
		if e := electionOf(r); e.Validate() == nil {
			due = append(due, e)
		}
	}
	return due, nil
}

// indexed adds advice to the error if Firestore refused a query because an index is missing.
func indexed(field string, err error) error {
	if status.Code(err) != codes.FailedPrecondition {
		return err
	}
	return fmt.Errorf("the database may have no index over the field %s of the collection %s: exempt the field from indexing no longer "+
		"(terraform apply does it, and an index takes some minutes to build): %w", field, collection, err)
}
