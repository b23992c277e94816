package firestore

import (
	"errors"
	"strings"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"regent/leadership"
)

// The fields of an event's document in addition to those that it shares with a lease document:
// schema, revision, fencingToken, leaderId. It evolves as a lease document does; see recordSchema.
// Its At is the document's create_time.
const (
	typeField     = "type"
	previousField = "previousLeaderId"
	requestField  = "requestId"
	actorField    = "actor"
	reasonField   = "reason"
	detailField   = "detail" // JSON text
	// requestedAt is when Firestore received the commit, somewhat before it was made. It stands in
	// for the create_time, which cannot be queried.
	requestedField = "requestedAt"
	// deleteAfter is for the database's TTL policies: after that time the document may be deleted.
	deleteField = "deleteAfter"
	// unannounced is true until the event is marked as announced, and then removed, so that its
	// index holds only events that are still to be announced.
	unannouncedField = "unannounced"
)

// creation writes an event that must not exist yet, and was not announced; due is when it may be
// deleted.
func (d database) creation(ev leadership.Event, due time.Time) *firestorepb.Write {
	w := put(d.event(ev.ID()), encodeEvent(ev, due), exists(false))
	w.UpdateTransforms = []*firestorepb.DocumentTransform_FieldTransform{{
		FieldPath: requestedField,
		TransformType: &firestorepb.DocumentTransform_FieldTransform_SetToServerValue{
			SetToServerValue: firestorepb.DocumentTransform_FieldTransform_REQUEST_TIME,
		},
	}}
	return w
}

// encodeEvent returns the document of an event, without requestedAt. Firestore refuses text that is
// not UTF-8.
func encodeEvent(ev leadership.Event, due time.Time) values {
	return values{
		schemaField:      integer(recordSchema),
		revisionField:    integer(int64(ev.Revision)),
		typeField:        text(string(ev.Type)),
		tokenField:       integer(int64(ev.Token)),
		leaderField:      text(string(ev.LeaderID)),
		previousField:    text(string(ev.PreviousLeaderID)),
		requestField:     text(strings.ToValidUTF8(ev.RequestID, "\uFFFD")),
		actorField:       text(strings.ToValidUTF8(ev.Actor, "\uFFFD")),
		reasonField:      text(ev.Reason),
		detailField:      text(ev.Detail),
		deleteField:      instant(due),
		unannouncedField: boolean(true),
	}
}

// decodeEvent reads an event's document: its parsed name, its fields and its create_time.
func decodeEvent(id leadership.EventID, v values, created time.Time) (leadership.Event, error) {
	f := readFields(v)
	f.schema(recordSchema)
	ev := leadership.Event{
		Election:         id.Election,
		Revision:         leadership.Revision(f.integer(revisionField)),
		Type:             leadership.EventType(f.text(typeField)),
		At:               created,
		LeaderID:         leadership.CandidateID(f.text(leaderField)),
		PreviousLeaderID: leadership.CandidateID(f.text(previousField)),
		Token:            leadership.Token(f.integer(tokenField)),
		RequestID:        f.text(requestField),
		Actor:            f.text(actorField),
		Reason:           f.text(reasonField),
		Detail:           f.text(detailField),
	}
	f.moment(requestedField)
	f.moment(deleteField)
	if _, ok := f.left[unannouncedField]; ok && !f.boolean(unannouncedField) {
		f.fail(errors.New("field unannounced is false"))
	}
	switch {
	case ev.Revision != id.Revision:
		f.fail(errors.New("its revision is not that of its name"))
	case ev.Type == "":
		f.fail(errors.New("its type is empty"))
	case ev.Token < 0 || ev.Token > leadership.MaxToken:
		f.fail(errors.New("its fencing token is out of range"))
	}
	if err := f.done(); err != nil {
		return leadership.Event{}, err
	}
	return ev, nil
}
