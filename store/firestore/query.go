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

// query asks for documents in the order of their names or, with by, first in the order of a field.
type query struct {
	parent     string // the document above the collection or, with everywhere, above all of them
	collection string
	everywhere bool               // in every collection of that name below parent
	where      filters            // only documents that pass all; filters over several fields need an index
	by         string             // the field to order by first; "" for none
	from       string             // no names before this one,
	after      string             // or, if it is set, only names after this one
	afterBy    *firestorepb.Value // (with by: among those with this value, and all with a greater one),
	before     string             // and only names before this one; "" for no bound
	limit      int
	bytes      int    // no more documents than have that many bytes together, but at least one; 0: no bound
	only       string // return only this field of the documents, nameField for none; "": all
}

type findings struct {
	docs []reading
	at   time.Time // the store's time when it began: it has seen every commit before that
}

// run runs the query, strongly. Each reading has its own time, which never decreases. Once the
// query's bytes have arrived, the rest of the answer is cancelled, except from the emulator, where
// cancelling would often close the connection, with all calls on it.
func (s *Store) run(ctx context.Context, q query) (findings, error) {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	stream, err := s.client.RunQuery(ctx, &firestorepb.RunQueryRequest{
		Parent:    q.parent,
		QueryType: &firestorepb.RunQueryRequest_StructuredQuery{StructuredQuery: q.structured()},
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
			continue // the reply only reports progress, or is part of the rest
		}
		size += len(reply.Document.Fields[dataField].GetStringValue())
		switch full = q.bytes > 0 && size > q.bytes && len(found.docs) > 0; {
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
		Where:   q.where.all(),
		OrderBy: []*firestorepb.StructuredQuery_Order{ascending(nameField)},
		Limit:   wrapperspb.Int32(int32(min(q.limit, maxPage))),
	}
	if q.only != "" {
		sq.Select = &firestorepb.StructuredQuery_Projection{Fields: []*firestorepb.StructuredQuery_FieldReference{field(q.only)}}
	}
	if q.by != "" {
		sq.OrderBy = []*firestorepb.StructuredQuery_Order{ascending(q.by), ascending(nameField)}
	}
	switch {
	case q.after != "" && q.by != "":
		sq.StartAt = &firestorepb.Cursor{Values: []*firestorepb.Value{q.afterBy, reference(q.after)}}
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

type filters []*firestorepb.StructuredQuery_Filter

const (
	equal      = firestorepb.StructuredQuery_FieldFilter_EQUAL
	less       = firestorepb.StructuredQuery_FieldFilter_LESS_THAN
	notGreater = firestorepb.StructuredQuery_FieldFilter_LESS_THAN_OR_EQUAL
	greater    = firestorepb.StructuredQuery_FieldFilter_GREATER_THAN
)

// where returns a filter that compares a field with a value.
func where(path string, op firestorepb.StructuredQuery_FieldFilter_Operator, v *firestorepb.Value) filters {
	return filters{{FilterType: &firestorepb.StructuredQuery_Filter_FieldFilter{
		FieldFilter: &firestorepb.StructuredQuery_FieldFilter{Field: field(path), Op: op, Value: v},
	}}}
}

// all returns the conjunction of the filters; nil for none.
func (f filters) all() *firestorepb.StructuredQuery_Filter {
	switch len(f) {
	case 0:
		return nil
	case 1:
		return f[0]
	}
	return &firestorepb.StructuredQuery_Filter{FilterType: &firestorepb.StructuredQuery_Filter_CompositeFilter{
		CompositeFilter: &firestorepb.StructuredQuery_CompositeFilter{Op: firestorepb.StructuredQuery_CompositeFilter_AND, Filters: f},
	}}
}
