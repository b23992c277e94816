package firestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"regent/leadership"
	"regent/leadership/rule"
)

// Get reads one election, strongly: one BatchGetDocuments.
func (s *Store) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	operation := fmt.Sprintf("get %q", e)
	if err := s.begin(ctx); err != nil {
		return rule.Snapshot{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	seen, err := s.look(ctx, operation, e)
	if err != nil {
		return rule.Snapshot{}, err
	}
	return seen.snapshot(), nil
}

// sight is the result of one read of an election: its record and, from another document, its newest
// event.
type sight struct {
	doc           document
	newest        rule.Newest
	newestUpdated time.Time // update_time of the newest event's document; zero if there is none
	at            time.Time // the store's time
	apart         bool      // the record is sound but does not fit its newest event
}

func (s sight) snapshot() rule.Snapshot {
	return rule.Snapshot{Record: s.doc.record, Now: s.at, Guard: guard}
}

// same reports whether both found the very same documents.
func (s sight) same(other sight) bool {
	return s.doc.updated.Equal(other.doc.updated) && s.newestUpdated.Equal(other.newestUpdated)
}

// settled is the number of equal reads after which a record and a history that disagree count as
// corrupt; with the pauses between, that takes a sixth of a second. Firestore reads all documents
// as of one moment, but its emulator shows a commit document by document: for some milliseconds a
// record may be ahead of its newest event, or behind it.
const settled = 5

// look reads an election and returns it if its record agrees with its history.
func (s *Store) look(ctx context.Context, operation string, e leadership.Election) (sight, error) {
	var before sight
	unchanged := 0
	for attempt := range attempts {
		if err := pause(ctx, attempt); err != nil {
			return sight{}, unavailable(ctx, operation, err)
		}
		seen, corrupt, err := s.lookOnce(ctx, e)
		if err != nil {
			return sight{}, unavailable(ctx, operation, err)
		}
		if corrupt == nil {
			s.memory.remember(seen.doc, seen.at)
			return seen, nil
		}
		if unchanged++; !seen.same(before) {
			before, unchanged = seen, 0
		}
		if !seen.apart || unchanged == settled {
			return sight{}, fmt.Errorf("firestore: %s: %w", operation, corrupt)
		}
	}
	return sight{}, unavailable(ctx, operation, errContention)
}

// lookOnce sends one BatchGetDocuments. corrupt says why the election cannot be trusted; err is for
// a read that failed.
func (s *Store) lookOnce(ctx context.Context, e leadership.Election) (seen sight, corrupt, err error) {
	lease, newest := s.database.lease(e), s.database.newest(e)
	found, err := s.batchGet(ctx, lease, newest)
	if err != nil {
		return sight{}, nil, err
	}
	seen, corrupt = s.see(e, found[lease], found[newest])
	return seen, corrupt, nil
}

// see decodes and verifies the two documents. Even a corrupt or too new sight has the versions of
// the documents.
func (s *Store) see(e leadership.Election, lease, newest reading) (sight, error) {
	seen := sight{newestUpdated: newest.updated(), at: lease.at}
	seen.doc.record.Election = e
	var badRecord, badNewest error
	if lease.doc != nil {
		seen.doc, badRecord = decodeRecord(string(e), lease.doc.Fields, lease.updated(), s.codec)
	}
	if newest.doc != nil {
		seen.newest, badNewest = decodeNewest(newest.doc.Fields)
	}
	seen.doc.updated = lease.updated()
	switch {
	case badRecord != nil:
		return seen, badRecord
	case badNewest != nil:
		return seen, rule.Corrupt(e, badNewest)
	}
	if err := rule.VerifyAlone(seen.snapshot()); err != nil {
		return seen, err
	}
	err := rule.Verify(seen.snapshot(), seen.newest)
	seen.apart = err != nil
	return seen, err
}

// reading is one document as a read found it: nil if it is not there.
type reading struct {
	doc *firestorepb.Document
	at  time.Time // the store's time
}

func (r reading) updated() time.Time { return timeOf(r.doc.GetUpdateTime()) }

// timeOf returns the zero time for a nil timestamp.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// batchGet reads documents, strongly and as of one moment.
func (s *Store) batchGet(ctx context.Context, names ...string) (map[string]reading, error) {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	stream, err := s.client.BatchGetDocuments(ctx, &firestorepb.BatchGetDocumentsRequest{Database: string(s.database), Documents: names})
	if err != nil {
		return nil, err
	}
	found := make(map[string]reading, len(names))
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if name := cmp.Or(reply.GetFound().GetName(), reply.GetMissing()); name != "" {
			found[name] = reading{doc: reply.GetFound(), at: timeOf(reply.GetReadTime())}
		}
	}
	for _, name := range names {
		if found[name].at.IsZero() {
			return nil, errIncomplete
		}
	}
	return found, nil
}
