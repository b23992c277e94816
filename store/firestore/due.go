package firestore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
	q := leases(filter(leaderField, firestorepb.StructuredQuery_FieldFilter_GREATER_THAN, text("")), leaderField, limit+1)
	if leader, e, ok := cutHolder(after); ok {
		q.StartAt = &firestorepb.Cursor{Values: []*firestorepb.Value{text(leader), reference(s.database.lease(e))}}
	}
	answer, err := s.find(ctx, s.database.documents(), q)
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
	q := leases(filter(retireField, firestorepb.StructuredQuery_FieldFilter_LESS_THAN_OR_EQUAL, instant(at)), retireField, min(limit, maxPage))
	answer, err := s.find(ctx, s.database.documents(), q)
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

// leases asks for lease documents that pass the filter, in the order of its field and then of
// names.
func leases(where *firestorepb.StructuredQuery_Filter, by string, limit int) *firestorepb.StructuredQuery {
	return &firestorepb.StructuredQuery{
		From:    []*firestorepb.StructuredQuery_CollectionSelector{{CollectionId: collection}},
		Where:   where,
		OrderBy: []*firestorepb.StructuredQuery_Order{ascending(by), ascending(nameField)},
		Limit:   wrapperspb.Int32(int32(limit)),
	}
}

// indexed says what to do if Firestore refused a query because an index is missing.
func indexed(field string, err error) error {
	if status.Code(err) != codes.FailedPrecondition {
		return err
	}
	return fmt.Errorf("the database may have no index over the field %s of the collection %s: exempt the field from indexing no longer "+
		"(terraform apply does it, and an index takes some minutes to build): %w", field, collection, err)
}
