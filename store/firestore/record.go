package firestore

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// recordSchema is the version of a lease document and of its events.
//
// A program refuses a document with a version or a field that it does not know, because it would
// lose the field at the next write. So a field is never renamed, retyped or given another meaning,
// and a new field needs a new version. Policy and standing evolve separately: see rule.Codec.
const recordSchema = 1

// The fields of a lease document, all always present except renewedAt, renewalDue and retireAt. A
// date that does not apply is null, a text is "", a number 0.
const (
	schemaField   = "schema"
	needsField    = "needs"
	tokenField    = "fencingToken"
	revisionField = "revision"
	deletedField  = "deleted"

	leaderField      = "leaderId"
	keyHashField     = "keyHash" // empty without a leader
	leaseField       = "leaseDurationMs"
	acquiredField    = "acquiredAt"
	endsByField      = "endsBy"
	endsBecauseField = "endsBecause"
	metadataField    = "metadata"   // JSON text, so that numbers keep their digits
	heartbeatsField  = "heartbeats" // counts heartbeats, because a write that changes nothing would leave update_time as it is

	endedField   = "endedAt"
	lockForField = "lockForMicros" // the rest of a lease that was ended by force is no whole number of milliseconds

	policyField   = "policy"   // text of rule.Codec
	standingField = "standing" // text of rule.Codec

	// acquiredAt is the time of the grant's commit from the next write on; until then it is when
	// the grant was decided, and the document's update_time is that of the commit.

	// renewedAt is the start of the lease if the last write was not a heartbeat. Otherwise the
	// document's update_time is the start.
	renewedField = "renewedAt"
	// renewalDue, if the last write was a renewal, is the end that the lease had before it. A
	// renewal that was not committed before that is too late: the lease has ended at renewalDue, as
	// if nothing had been written.
	dueField = "renewalDue"

	// retireAt is Record.DueAt, for Retirable to find; missing if that is zero. Nothing is
	// decided by it.
	retireField = "retireAt"
)

// document is an election as Firestore holds it.
type document struct {
	record     rule.Record
	heartbeats int64
	updated    time.Time // its update_time: the guard of the next write; zero if there is no document yet
}

// writeOf says whether the last write of a document was a heartbeat, and when that was due.
type writeOf struct {
	heartbeat bool      // the lease starts when it is committed
	due       time.Time // with heartbeat: when it had to be committed; zero for a grant
}

// encodeRecord is the inverse of decodeRecord. If w is a heartbeat it does not store HeartbeatAt.
func encodeRecord(r rule.Record, carried rule.Carried, heartbeats int64, w writeOf) values {
	v := values{
		schemaField:      integer(recordSchema),
		needsField:       integer(int64(carried.Needs)),
		tokenField:       integer(int64(r.Token)),
		revisionField:    integer(int64(r.Revision)),
		deletedField:     boolean(r.Deleted),
		leaderField:      text(string(r.LeaderID)),
		keyHashField:     bytesValue(encodeKeyHash(r.KeyHash)),
		leaseField:       span(r.LeaseDuration, time.Millisecond),
		acquiredField:    instant(r.AcquiredAt),
		endsByField:      instant(r.EndsBy),
		endsBecauseField: text(string(r.EndsBecause)),
		metadataField:    text(string(r.Metadata)),
		heartbeatsField:  integer(heartbeats),
		endedField:       instant(r.EndedAt),
		lockForField:     span(r.LockFor, time.Microsecond),
		policyField:      text(carried.Policy),
		standingField:    text(carried.Standing),
	}
	if at := r.DueAt(); !at.IsZero() {
		v[retireField] = instant(at)
	}
	switch {
	case w.heartbeat && !w.due.IsZero():
		v[dueField] = instant(w.due)
	case !w.heartbeat && !r.HeartbeatAt.IsZero():
		v[renewedField] = instant(r.HeartbeatAt)
	}
	return v
}

// decodeRecord decodes a lease document: its id, fields and update_time. It does not check that the
// record is consistent, which rule.Verify does. The error is RecordCorrupt or RecordTooNew.
func decodeRecord(id string, v values, updated time.Time, codec rule.Codec) (document, error) {
	doc, carried, err := decodeFields(id, v, updated)
	if err != nil {
		return document{}, rule.Corrupt(leadership.Election(id), err)
	}
	if err := codec.Decode(&doc.record, carried); err != nil {
		return document{}, err
	}
	return doc, nil
}

// decodeFields is decodeRecord without policy and standing. The error has no code.
func decodeFields(id string, v values, updated time.Time) (document, rule.Carried, error) {
	r := rule.Record{Election: leadership.Election(id)}
	if err := r.Election.Validate(); err != nil {
		return document{}, rule.Carried{}, err
	}
	f := readFields(v)
	f.schema(recordSchema)
	f.sparse(retireField)
	r.Token = leadership.Token(f.integer(tokenField))
	r.Revision = leadership.Revision(f.integer(revisionField))
	r.Deleted = f.boolean(deletedField)
	r.LeaderID = leadership.CandidateID(f.text(leaderField))
	r.KeyHash = f.keyHash(keyHashField)
	r.LeaseDuration = f.span(leaseField, time.Millisecond)
	r.AcquiredAt = f.instant(acquiredField)
	r.EndsBy = f.instant(endsByField)
	r.EndsBecause = leadership.EndReason(f.text(endsBecauseField))
	r.Metadata = f.metadata(metadataField)
	r.EndedAt = f.instant(endedField)
	r.LockFor = f.span(lockForField, time.Microsecond)
	carried := rule.Carried{
		Policy: f.text(policyField), Standing: f.text(standingField), Needs: rule.Version(f.integer(needsField)),
	}
	doc := document{record: r, heartbeats: f.integer(heartbeatsField), updated: updated}
	doc.record.HeartbeatAt = f.start(r, updated)
	if r.LeaderID != "" && v[renewedField] == nil && v[dueField] == nil {
		doc.record.AcquiredAt = doc.record.HeartbeatAt // the grant was the last write
	}
	if r.Revision < 1 {
		f.fail(errors.New("its revision is below 1")) // the first write of a document has an event
	}
	return doc, carried, f.done()
}

func (f *fields) start(r rule.Record, updated time.Time) time.Time {
	renewed, due := f.sparse(renewedField), f.sparse(dueField)
	switch {
	case !renewed.IsZero() && !due.IsZero():
		f.fail(errors.New("fields renewedAt and renewalDue exclude each other"))
	case !renewed.IsZero():
		return renewed // without a leader too: Verify then refuses the record
	case r.LeaderID == "" && !due.IsZero():
		f.fail(errors.New("field renewalDue stands without a leader"))
	case r.LeaderID == "":
		return time.Time{}
	}
	return rule.StartOf(updated, due, r.LeaseDuration)
}

func encodeKeyHash(h leadership.KeyHash) []byte {
	if h == (leadership.KeyHash{}) {
		return nil
	}
	return h[:]
}

func (f *fields) keyHash(name string) leadership.KeyHash {
	var h leadership.KeyHash
	switch b := f.bytes(name); len(b) {
	case 0:
	case len(h):
		copy(h[:], b)
	default:
		f.fail(fmt.Errorf("field %s has %d bytes", name, len(b)))
	}
	return h
}

// metadata reads metadata in canonical form, in whatever form it was written.
func (f *fields) metadata(name string) leadership.Metadata {
	m, err := leadership.ParseMetadata([]byte(f.text(name)))
	if err != nil {
		f.fail(fmt.Errorf("field %s: %w", name, err))
	}
	return m
}

// encodeNewest returns the document history/newest, which names the newest event.
func encodeNewest(r rule.Record) values {
	return values{tokenField: integer(int64(r.Token)), revisionField: integer(int64(r.Revision))}
}

func decodeNewest(v values) (rule.Newest, error) {
	f := readFields(v)
	n := rule.Newest{
		Revision: leadership.Revision(f.integer(revisionField)),
		Token:    leadership.Token(f.integer(tokenField)),
	}
	if err := f.done(); err != nil {
		return rule.Newest{}, fmt.Errorf("its newest event: %w", err)
	}
	return n, nil
}
