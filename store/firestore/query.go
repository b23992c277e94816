package firestore

import (
	"context"
	"errors"
	"io"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// maxPage bounds what is asked for in one query, whatever the caller's limit.
const maxPage = 10_000

// query asks for documents in the order of their names.
type query struct {
	parent     string // the document above the collection or, with everywhere, above all of them
	collection string
	everywhere bool   // in every collection of that name below parent
	onlyWith   string // only documents in which this field is true; "" for all
	from       string // no names before this one,
	after      string // or, if it is set, only names after this one,
	before     string // and only names before this one; "" for no bound
	limit      int
}

// run returns what the query finds, strongly. Each reading has its own time; of later ones it is no earlier.
func (s *Store) run(ctx context.Context, q query) ([]reading, error) {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	stream, err := s.client.RunQuery(ctx, &firestorepb.RunQueryRequest{
		Parent:    q.parent,
		QueryType: &firestorepb.RunQueryRequest_StructuredQuery{StructuredQuery: q.structured()},
	})
	if err != nil {
		return nil, err
	}
	var found []reading
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if reply.Document != nil { // else the reply is only of progress
			found = append(found, reading{doc: reply.Document, at: timeOf(reply.ReadTime)})
		}
	}
}

func (q query) structured() *firestorepb.StructuredQuery {
	sq := &firestorepb.StructuredQuery{
		From:    []*firestorepb.StructuredQuery_CollectionSelector{{CollectionId: q.collection, AllDescendants: q.everywhere}},
		OrderBy: []*firestorepb.StructuredQuery_Order{{Field: field(nameField), Direction: firestorepb.StructuredQuery_ASCENDING}},
		Limit:   wrapperspb.Int32(int32(min(q.limit, maxPage))),
	}
	if q.onlyWith != "" {
		sq.Where = isTrue(q.onlyWith)
	}
	switch {
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

func field(path string) *firestorepb.StructuredQuery_FieldReference {
	return &firestorepb.StructuredQuery_FieldReference{FieldPath: path}
}

func isTrue(path string) *firestorepb.StructuredQuery_Filter {
	return &firestorepb.StructuredQuery_Filter{FilterType: &firestorepb.StructuredQuery_Filter_FieldFilter{
		FieldFilter: &firestorepb.StructuredQuery_FieldFilter{
			Field: field(path),
			Op:    firestorepb.StructuredQuery_FieldFilter_EQUAL,
			Value: boolean(true),
		},
	}}
}
