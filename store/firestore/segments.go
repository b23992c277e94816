package firestore

import (
	"context"
	"fmt"

	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"regent/leadership"
	"regent/leadership/rule"
)

// snapshotPlace is where the snapshot of a log is kept, among its segments; each of the others is
// at its last index.
const snapshotPlace leadership.Index = 0

// placeOf returns the place of a segment: segments sort by their last entries, so that those with
// an entry after an index are all those after that place.
func placeOf(s rule.Segment) leadership.Index {
	if s.First == 0 {
		return snapshotPlace
	}
	return s.Last
}

// Segments is one RunQuery, of which no more is received than may be returned. If all found
// segments were trimmed, there are two more: one for the end of the snapshot, and one from there
// on.
func (s *Store) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error) {
	operation := fmt.Sprintf("read the entries of the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if limit < 1 {
		return nil, nil
	}
	q := query{
		parent:     s.database.log(id),
		collection: segmentsCollection,
		after:      s.database.segment(id, max(after, snapshotPlace)),
		limit:      min(limit, maxPage),
		bytes:      leadership.MaxReadBytes,
	}
	for {
		found, err := s.run(ctx, q)
		if err != nil {
			return nil, unavailable(ctx, operation, err)
		}
		var segments []rule.Segment
		for _, r := range found.docs {
			q.after = r.doc.Name
			if emptied(r.doc.Fields) {
				continue
			}
			segment, err := s.decodeSegment(id, r)
			if err != nil {
				return nil, corruptLog(operation, id, err)
			}
			segments = append(segments, segment)
		}
		if len(segments) > 0 || len(found.docs) < q.limit {
			return segments, nil
		}
		end, err := s.snapshotEnd(ctx, operation, id)
		if err != nil {
			return nil, err
		}
		q.after = max(q.after, s.database.segment(id, end))
	}
}

// snapshotEnd returns the index of the last entry that the snapshot of a log replaces, 0 if there
// is none, by one RunQuery that does not fetch the snapshot's data. The error has a code.
func (s *Store) snapshotEnd(ctx context.Context, operation string, id rule.LogID) (leadership.Index, error) {
	found, err := s.run(ctx, query{
		parent:     s.database.log(id),
		collection: segmentsCollection,
		before:     s.database.segment(id, snapshotPlace+1),
		limit:      1,
		only:       lastField,
	})
	if err != nil {
		return 0, unavailable(ctx, operation, err)
	}
	if len(found.docs) == 0 {
		return 0, nil
	}
	f := readFields(found.docs[0].doc.Fields)
	end := f.integer(lastField)
	if err := f.done(); err != nil {
		return 0, corruptLog(operation, id, fmt.Errorf("its snapshot: %w", err))
	}
	return leadership.Index(end), nil
}

// Snapshot is one BatchGetDocuments.
func (s *Store) Snapshot(ctx context.Context, id rule.LogID) (rule.Segment, error) {
	operation := fmt.Sprintf("read the snapshot of the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return rule.Segment{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	name := s.database.segment(id, snapshotPlace)
	found, err := s.batchGet(ctx, name)
	switch {
	case err != nil:
		return rule.Segment{}, unavailable(ctx, operation, err)
	case found[name].doc == nil:
		return rule.Segment{}, nil
	}
	snapshot, err := s.decodeSegment(id, found[name])
	if err != nil {
		return rule.Segment{}, corruptLog(operation, id, err)
	}
	return snapshot, nil
}

// decodeSegment is the inverse of encodeSegment. The error has no code.
func (s *Store) decodeSegment(id rule.LogID, r reading) (rule.Segment, error) {
	f := readFields(r.doc.Fields)
	f.schema(logSchema)
	segment := rule.Segment{
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
		return rule.Segment{}, fmt.Errorf("segment %.64q: %w", r.doc.Name, err)
	}
	return segment, nil
}

// trimPage is how many segments are emptied at once.
const trimPage = 500

// Trim is one RunQuery for each trimPage of documents, of one field, and one BatchWrite if there is
// a segment among them. It begins after the segments that this handle has trimmed before.
//
// It deletes nothing, because a service with the right to delete segments could also delete leases:
// it replaces each segment with an empty document, which the database deletes by its TTL policy.
func (s *Store) Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error {
	operation := fmt.Sprintf("trim the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	trimmed, _ := s.trimmed.Get(id)
	if upTo <= max(trimmed, snapshotPlace) {
		return nil
	}
	q := query{
		parent:     s.database.log(id),
		collection: segmentsCollection,
		after:      s.database.segment(id, max(trimmed, snapshotPlace)),
		before:     s.database.segment(id, upTo+1),
		limit:      trimPage,
		only:       deleteField,
	}
	for {
		found, err := s.run(ctx, q)
		if err != nil {
			return unavailable(ctx, operation, err)
		}
		var writes []*firestorepb.Write
		for _, r := range found.docs {
			q.after = r.doc.Name
			if !emptied(r.doc.Fields) {
				left := values{schemaField: integer(logSchema), deleteField: instant(found.at)}
				writes = append(writes, put(r.doc.Name, left, nil))
			}
		}
		results, err := s.batchWrite(ctx, writes)
		if err != nil {
			return unwritten(ctx, operation, err)
		}
		for _, one := range results {
			if one.err != nil {
				return unwritten(ctx, operation, one.err)
			}
		}
		if len(found.docs) < trimPage {
			s.trimmed.Add(id, upTo)
			return nil
		}
	}
}

// emptied reports whether a document is a segment that Trim has emptied.
func emptied(v values) bool { return v[deleteField] != nil && v[dataField] == nil }

// Logs is one RunQuery, or more if there are documents that are no logs.
func (s *Store) Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error) {
	const operation = "list logs"
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	q := query{parent: s.database.documents(), collection: logsCollection, only: nameField}
	if after != (rule.LogID{}) {
		q.after = s.database.log(after)
	}
	var logs []rule.LogID
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
