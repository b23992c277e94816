package firestore

import (
	"context"
	"errors"
	"io"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// maxPage limits the documents of one query, whatever the caller's limit.
const maxPage = 10_000

// query asks for documents in the order of their names or, with by, first in the order of a
// timestamp.
type query struct {
	parent     string // the document above the collection or, with everywhere, above all of them
	collection string
	everywhere bool      // in every collection of that name below parent
	onlyWith   string    // only documents in which this field is true; "" for all; with by it takes an index over both
	by         string    // the field with the timestamp,
	later      time.Time // which has to be later than this
	earlier    time.Time // and earlier than this; zero for no bound
	from       string    // no names before this one,
	after      string    // or, if it is set, only names after this one
	afterAt    time.Time // (with by: among those with this timestamp, and whatever has a later one),
	before     string    // and only names before this one; "" for no bound
	limit      int
	bytes      int    // no more documents than have so much data together, but one; 0: no bound
	only       string // of the documents' fields only this one, nameField for none; "": all
}

type findings struct {
	docs []reading
	at   time.Time // the store's time when it began: it has seen every commit before that
}

// run returns what the query finds, strongly. Each reading has its own time; of later ones it is no
// earlier.
func (s *Store) run(ctx context.Context, q query) (findings, error) {
	return s.findWithin(ctx, q.parent, q.structured(), q.bytes)
}

// find is run for a query in Firestore's own form, below the document parent.
func (s *Store) find(ctx context.Context, parent string, q *firestorepb.StructuredQuery) (findings, error) {
	return s.findWithin(ctx, parent, q, 0)
}

// findWithin is find for no more documents than have so many bytes of data together, but at least
// one; 0: no bound. It then gives the rest of the answer up. From the emulator it receives the rest
// all the same: the emulator would often close the connection, with all calls on it.
func (s *Store) findWithin(ctx context.Context, parent string, q *firestorepb.StructuredQuery, bytes int) (findings, error) {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	stream, err := s.client.RunQuery(ctx, &firestorepb.RunQueryRequest{
		Parent:    parent,
		QueryType: &firestorepb.RunQueryRequest_StructuredQuery{StructuredQuery: q},
	})
	if err != nil {
		return findings{}, err
	}
	var found findings
	size, full := 0, false
	for {
		reply, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && found.at.IsZero():
			return findings{}, errIncomplete
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return findings{}, err
		}
		if found.at.IsZero() {
			found.at = timeOf(reply.ReadTime)
		}
		if reply.Document == nil || full {
			continue // the reply is only of progress, or of the rest
		}
		size += len(reply.Document.Fields[dataField].GetStringValue())
		switch full = bytes > 0 && size > bytes && len(found.docs) > 0; {
		case !full:
			found.docs = append(found.docs, reading{doc: reply.Document, at: timeOf(reply.ReadTime)})
		case !s.emulated:
			return found, nil
		}
	}
}

// count returns how many documents the query finds, whatever its limit, and as of when.
func (s *Store) count(ctx context.Context, q query) (n int, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	sq := q.structured()
	sq.Limit = nil
	stream, err := s.client.RunAggregationQuery(ctx, &firestorepb.RunAggregationQueryRequest{
		Parent: q.parent,
		QueryType: &firestorepb.RunAggregationQueryRequest_StructuredAggregationQuery{StructuredAggregationQuery: &firestorepb.StructuredAggregationQuery{
			QueryType: &firestorepb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: sq},
			Aggregations: []*firestorepb.StructuredAggregationQuery_Aggregation{{
				Alias: "n", Operator: &firestorepb.StructuredAggregationQuery_Aggregation_Count_{Count: &firestorepb.StructuredAggregationQuery_Aggregation_Count{}},
			}},
		}},
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	for {
		reply, err := stream.Recv()
		if err != nil || reply.Result != nil {
			return int(reply.GetResult().GetAggregateFields()["n"].GetIntegerValue()), timeOf(reply.GetReadTime()), err
		}
	}
}

func (q query) structured() *firestorepb.StructuredQuery {
	sq := &firestorepb.StructuredQuery{
		From:    []*firestorepb.StructuredQuery_CollectionSelector{{CollectionId: q.collection, AllDescendants: q.everywhere}},
		OrderBy: []*firestorepb.StructuredQuery_Order{ascending(nameField)},
		Limit:   wrapperspb.Int32(int32(min(q.limit, maxPage))),
	}
	if q.only != "" {
		sq.Select = &firestorepb.StructuredQuery_Projection{Fields: []*firestorepb.StructuredQuery_FieldReference{field(q.only)}}
	}
	var filters []*firestorepb.StructuredQuery_Filter
	if q.onlyWith != "" {
		filters = append(filters, filter(q.onlyWith, firestorepb.StructuredQuery_FieldFilter_EQUAL, boolean(true)))
	}
	if q.by != "" {
		filters = append(filters, filter(q.by, firestorepb.StructuredQuery_FieldFilter_GREATER_THAN, instant(q.later)))
		sq.OrderBy = []*firestorepb.StructuredQuery_Order{ascending(q.by), ascending(nameField)}
	}
	if !q.earlier.IsZero() {
		filters = append(filters, filter(q.by, firestorepb.StructuredQuery_FieldFilter_LESS_THAN, instant(q.earlier)))
	}
	sq.Where = all(filters)
	switch {
	case q.after != "" && q.by != "":
		sq.StartAt = &firestorepb.Cursor{Values: []*firestorepb.Value{instant(q.afterAt), reference(q.after)}}
	case q.after != "":
		sq.StartAt = &firestorepb.Cursor{Values: []*firestorepb.Value{reference(q.after)}}
	case q.from != "":
		sq.StartAt = &firestorepb.Cursor{Values: []*firestorepb.Value{reference(q.from)}, Before: true}
	}
	if q.before != "" {
		sq.EndAt = &firestorepb.Cursor{Values: []*firestorepb.Value{reference(q.before)}, Before: true}
	}
	return sq
}

func ascending(path string) *firestorepb.StructuredQuery_Order {
	return &firestorepb.StructuredQuery_Order{Field: field(path), Direction: firestorepb.StructuredQuery_ASCENDING}
}

func field(path string) *firestorepb.StructuredQuery_FieldReference {
	return &firestorepb.StructuredQuery_FieldReference{FieldPath: path}
}

// all is the filter that all of them pass; nil for none.
func all(filters []*firestorepb.StructuredQuery_Filter) *firestorepb.StructuredQuery_Filter {
	switch len(filters) {
	case 0:
		return nil
	case 1:
		return filters[0]
	}
	return &firestorepb.StructuredQuery_Filter{FilterType: &firestorepb.StructuredQuery_Filter_CompositeFilter{
		CompositeFilter: &firestorepb.StructuredQuery_CompositeFilter{Op: firestorepb.StructuredQuery_CompositeFilter_AND, Filters: filters},
	}}
}

func filter(path string, op firestorepb.StructuredQuery_FieldFilter_Operator, v *firestorepb.Value) *firestorepb.StructuredQuery_Filter {
	return &firestorepb.StructuredQuery_Filter{FilterType: &firestorepb.StructuredQuery_Filter_FieldFilter{
		FieldFilter: &firestorepb.StructuredQuery_FieldFilter{Field: field(path), Op: op, Value: v},
	}}
}
