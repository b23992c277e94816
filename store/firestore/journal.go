package firestore

import (
	"context"
	"fmt"

	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// logSchema is the version of the documents of logs, which evolve as lease documents do; see
// recordSchema.
const logSchema = 1

// The fields of the head of a log, and of a segment, beside the schema.
const (
	textField   = "text"
	bodyField   = "body"
	writesField = "writes" // counts writes, because one that changes nothing would leave update_time as it is

	firstField = "firstIndex"
	lastField  = "lastIndex"
	dataField  = "data"
	atField    = "at" // of a copy: when it was committed where it comes from; else missing, and that is the update_time
)

var _ service.Journal = (*Store)(nil)

// head is the head of a log as Firestore holds it. The guard of the next write is the document's
// update_time, log.WrittenAt; zero if there is no document yet.
type head struct {
	log    rule.Log
	writes int64
}

func (h head) size() int { return len(h.log.Text) + len(h.log.Body) }

// Amend is one Commit if this handle remembers the log's head, and the store still has that head;
// otherwise one BatchGetDocuments and, if there is something to write, one Commit.
func (s *Store) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	operation := fmt.Sprintf("change the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return rule.Log{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if after, ok, err := s.amendUnread(ctx, operation, id, decide); ok {
		return after, err
	}
	var refused error
	for attempt := range attempts {
		if err := pause(ctx, attempt); err != nil {
			return rule.Log{}, unavailable(ctx, operation, err)
		}
		seen, err := s.readHead(ctx, operation, id)
		if err != nil {
			return rule.Log{}, err
		}
		s.heads.remember(seen)
		ch, err := decide(seen.log)
		if err != nil {
			return rule.Log{}, err
		}
		if ch.Text == "" {
			return seen.log, nil
		}
		after, err := s.commitLog(ctx, seen, ch)
		switch {
		case err == nil:
			return after, nil
		case !contended(err):
			return rule.Log{}, unwritten(ctx, operation, err)
		}
		refused = err
	}
	return rule.Log{}, unavailable(ctx, operation, fmt.Errorf("%w: %w", errContention, refused))
}

// amendUnread decides on the remembered head, and commits under its guard. ok is false, and nothing
// was done, if none is remembered, if it is no longer the store's, or if the rule makes no change:
// then the caller must read.
func (s *Store) amendUnread(
	ctx context.Context, operation string, id rule.LogID, decide func(rule.Log) (rule.LogChange, error),
) (after rule.Log, ok bool, err error) {
	known, ok := s.heads.get(id)
	if !ok {
		return rule.Log{}, false, nil
	}
	ch, err := decide(known.log)
	if err != nil || ch.Text == "" {
		return rule.Log{}, false, nil
	}
	after, err = s.commitLog(ctx, known, ch)
	switch {
	case contended(err):
		s.heads.forget(known)
		return rule.Log{}, false, nil
	case err != nil:
		return rule.Log{}, true, unwritten(ctx, operation, err)
	}
	return after, true, nil
}

// commitLog writes the change that a rule decided on a head, if the store still has that head. The
// head comes last, so that also on the emulator a reader that sees it sees its segments.
func (s *Store) commitLog(ctx context.Context, seen head, ch rule.LogChange) (rule.Log, error) {
	id := seen.log.ID
	var writes []*firestorepb.Write
	for _, segment := range ch.Add {
		writes = append(writes, put(s.database.segment(id, placeOf(segment)), encodeSegment(segment), nil))
	}
	after := head{log: rule.Log{ID: id, Text: ch.Text, Body: ch.Body}, writes: seen.writes + 1}
	writes = append(writes, put(s.database.log(id), encodeHead(after), unchangedSince(seen.log.WrittenAt)))
	done, err := s.commit(ctx, writes...)
	if err != nil {
		return rule.Log{}, err
	}
	after.log.WrittenAt = done.last
	s.heads.remember(after)
	return after.log, nil
}

// Look is one BatchGetDocuments.
func (s *Store) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	operation := fmt.Sprintf("read the %s of %q", id.Kind, id.Election)
	if err := s.begin(ctx); err != nil {
		return rule.Log{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	seen, err := s.readHead(ctx, operation, id)
	return seen.log, err
}

// readHead reads the head of a log. The error has a code.
func (s *Store) readHead(ctx context.Context, operation string, id rule.LogID) (head, error) {
	name := s.database.log(id)
	found, err := s.batchGet(ctx, name)
	if err != nil {
		return head{}, unavailable(ctx, operation, err)
	}
	h := head{log: rule.Log{ID: id, WrittenAt: found[name].updated()}}
	if found[name].doc == nil {
		return h, nil
	}
	f := readFields(found[name].doc.Fields)
	f.schema(logSchema)
	h.log.Text, h.log.Body, h.writes = f.text(textField), f.text(bodyField), f.integer(writesField)
	if err := f.done(); err != nil {
		return head{}, corruptLog(operation, id, fmt.Errorf("its head: %w", err))
	}
	return h, nil
}

func encodeHead(h head) values {
	return values{
		schemaField: integer(logSchema),
		textField:   text(h.log.Text),
		bodyField:   text(h.log.Body),
		writesField: integer(h.writes),
	}
}

func encodeSegment(s rule.Segment) values {
	v := values{
		schemaField: integer(logSchema),
		firstField:  integer(int64(s.First)),
		lastField:   integer(int64(s.Last)),
		dataField:   text(s.Data),
	}
	if !s.At.IsZero() {
		v[atField] = instant(s.At)
	}
	return v
}

// corruptLog returns the error of a log of which a part cannot be decoded.
func corruptLog(operation string, id rule.LogID, why error) error {
	return fmt.Errorf("firestore: %s: %w", operation, &leadership.Error{
		Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the %s of election %q cannot be read: %v", id.Kind, id.Election, why),
	})
}
