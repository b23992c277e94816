package firestore

import (
	"context"
	"fmt"

	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"regent/leadership"
)

// snapshotPlace is where the snapshot of a log is kept, among its segments; each of the others is
// at its last index.
const snapshotPlace leadership.Index = 0

// placeOf is where a segment is kept: segments sort by their last entries, so that those with an
// entry after an index are all that follow that place.
func placeOf(s leadership.Segment) leadership.Index {
	if s.First == 0 {
		return snapshotPlace
	}
	return s.Last
}

// Segments is one RunQuery, of which no more is received than it may return.
func (s *Store) Segments(ctx context.Context, id leadership.LogID, after leadership.Index, limit int) ([]leadership.Segment, error) {
	operation := fmt.Sprintf("read the entries of the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if limit < 1 {
		return nil, nil
	}
	found, err := s.run(ctx, query{
		parent:     s.database.log(id),
		collection: segmentsCollection,
		after:      s.database.segment(id, max(after, snapshotPlace)),
		limit:      limit,
		bytes:      leadership.MaxReadBytes,
	})
	if err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	segments := make([]leadership.Segment, len(found.docs))
	for i, r := range found.docs {
		if segments[i], err = s.decodeSegment(id, r); err != nil {
			return nil, corruptLog(operation, id, err)
		}
	}
	return segments, nil
}

// Snapshot is one BatchGetDocuments.
func (s *Store) Snapshot(ctx context.Context, id leadership.LogID) (leadership.Segment, error) {
	operation := fmt.Sprintf("read the snapshot of the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return leadership.Segment{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	name := s.database.segment(id, snapshotPlace)
	found, err := s.batchGet(ctx, name)
	switch {
	case err != nil:
		return leadership.Segment{}, unavailable(ctx, operation, err)
	case found[name].doc == nil:
		return leadership.Segment{}, nil
	}
	snapshot, err := s.decodeSegment(id, found[name])
	if err != nil {
		return leadership.Segment{}, corruptLog(operation, id, err)
	}
	return snapshot, nil
}

// decodeSegment is the inverse of encodeSegment. The error has no code.
func (s *Store) decodeSegment(id leadership.LogID, r reading) (leadership.Segment, error) {
	f := readFields(r.doc.Fields)
	f.schema(logSchema)
	segment := leadership.Segment{
		First: leadership.Index(f.integer(firstField)),
		Last:  leadership.Index(f.integer(lastField)),
		Data:  f.text(dataField),
		At:    f.sparse(atField),
	}
	if segment.At.IsZero() {
		segment.At = r.updated()
	}
	if s.database.segment(id, placeOf(segment)) != r.doc.Name {
		f.fail(fmt.Errorf("its indices, %d and %d, are not those of its name", segment.First, segment.Last))
	}
	if err := f.done(); err != nil {
		return leadership.Segment{}, fmt.Errorf("segment %.64q: %w", r.doc.Name, err)
	}
	return segment, nil
}

// trimPage is how many segments are deleted at once.
const trimPage = 500

// Trim is one RunQuery of their names for each trimPage of segments, and one BatchWrite.
func (s *Store) Trim(ctx context.Context, id leadership.LogID, upTo leadership.Index) error {
	operation := fmt.Sprintf("trim the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if upTo <= snapshotPlace {
		return nil
	}
	for {
		found, err := s.run(ctx, query{
			parent:     s.database.log(id),
			collection: segmentsCollection,
			after:      s.database.segment(id, snapshotPlace),
			before:     s.database.segment(id, upTo+1),
			limit:      trimPage,
			namesOnly:  true,
		})
		if err != nil {
			return unavailable(ctx, operation, err)
		}
		deletions := make([]*firestorepb.Write, len(found.docs))
		for i, r := range found.docs {
			deletions[i] = &firestorepb.Write{Operation: &firestorepb.Write_Delete{Delete: r.doc.Name}}
		}
		results, err := s.batchWrite(ctx, deletions)
		if err != nil {
			return unwritten(ctx, operation, err)
		}
		for _, one := range results {
			if one.err != nil {
				return unwritten(ctx, operation, one.err)
			}
		}
		if len(found.docs) < trimPage {
			return nil
		}
	}
}

// Logs is one RunQuery, or more if there are documents that are no logs.
func (s *Store) Logs(ctx context.Context, after leadership.LogID, limit int) ([]leadership.LogID, error) {
	const operation = "list logs"
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	q := query{parent: s.database.documents(), collection: logsCollection, namesOnly: true}
	if after != (leadership.LogID{}) {
		q.after = s.database.log(after)
	}
	var logs []leadership.LogID
	for len(logs) < limit {
		q.limit = min(limit-len(logs), maxPage)
		found, err := s.run(ctx, q)
		if err != nil {
			return nil, unavailable(ctx, operation, err)
		}
		for _, r := range found.docs {
			if id, ok := parseLog(r.doc.Name); ok {
				logs = append(logs, id)
			}
			q.after = r.doc.Name
		}
		if len(found.docs) < q.limit {
			break
		}
	}
	return logs, nil
}
