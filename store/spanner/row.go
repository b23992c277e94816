package spanner

import (
	"encoding/json"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
)

// row is a row of Leadership as a query returns it. Everything may be NULL: there may be no row, or
// another program may have written to it.
type row struct {
	ClusterID     spanner.NullString `spanner:"cluster_id"`
	SchemaVersion spanner.NullInt64  `spanner:"schema_version"`
	FencingToken  spanner.NullInt64  `spanner:"fencing_token"`
	Revision      spanner.NullInt64  `spanner:"revision"`
	Needs         spanner.NullInt64  `spanner:"needs"`
	Deleted       spanner.NullBool   `spanner:"deleted"`
	Policy        spanner.NullString `spanner:"policy"`
	Standing      spanner.NullString `spanner:"standing"`
	LeaderID      spanner.NullString `spanner:"leader_id"`
	KeyHash       []byte             `spanner:"key_hash"`
	LeaseMS       spanner.NullInt64  `spanner:"lease_ms"`
	Metadata      spanner.NullString `spanner:"metadata"` // the JSON's text; "null" stands for NULL
	AcquiredAt    spanner.NullTime   `spanner:"acquired_at"`
	RenewedAt     spanner.NullTime   `spanner:"renewed_at"`
	PriorEnd      spanner.NullTime   `spanner:"prior_end"`
	EndsBy        spanner.NullTime   `spanner:"ends_by"`
	EndsBecause   spanner.NullString `spanner:"ends_because"`
	EndedAt       spanner.NullTime   `spanner:"ended_at"`
	LockedUntil   spanner.NullTime   `spanner:"locked_until"`
}

// rowColumns are the columns of a row, except renewed_at: a statement that writes a commit
// timestamp must not return it. The JSON comes as text, because the client's own decoder would
// round large integers.
const rowColumns = `l.cluster_id, l.schema_version, l.fencing_token, l.revision, l.needs, l.deleted, l.policy, l.standing,
	l.leader_id, l.key_hash, l.lease_ms, TO_JSON_STRING(l.metadata) AS metadata, l.acquired_at, l.prior_end,
	l.ends_by, l.ends_because, l.ended_at, l.locked_until`

// record returns the row's record. It refuses a row of an unknown schema version, and one that this
// package would not have written. It does not check that the values are consistent, which
// rule.Verify does. The error is RecordCorrupt or RecordTooNew.
func (r row) record(codec rule.Codec) (rule.Record, error) {
	var s strict
	rec := rule.Record{
		Election: leadership.Election(r.ClusterID.StringVal),
		Token:    leadership.Token(s.int("fencing_token", r.FencingToken)),
		Revision: leadership.Revision(s.int("revision", r.Revision)),
		Deleted:  s.bool("deleted", r.Deleted),
	}
	if r.LeaderID.Valid {
		r.lease(&s, &rec)
	} else {
		r.vacancy(&s, &rec)
	}
	carried := rule.Carried{
		Policy: r.Policy.StringVal, Standing: r.Standing.StringVal, Needs: rule.Version(s.int("needs", r.Needs)),
	}
	s.require(rec.Revision > 0, "revision is %d", rec.Revision)
	if v := r.SchemaVersion; !v.Valid || v.Int64 != SchemaVersion {
		s.err = fmt.Errorf("schema_version is %v, and this program reads %d: use the version of regent that wrote it, or a newer one", v, SchemaVersion)
	}
	if s.err != nil {
		return rule.Record{}, rule.Corrupt(rec.Election, s.err)
	}
	if err := codec.Decode(&rec, carried); err != nil {
		return rule.Record{}, err
	}
	return rec, nil
}

func (r row) lease(s *strict, rec *rule.Record) {
	s.require(r.LeaderID.StringVal != "", "leader_id is empty")
	s.require(len(r.KeyHash) == len(rec.KeyHash), "key_hash has %d bytes, not %d", len(r.KeyHash), len(rec.KeyHash))
	s.require(!r.EndedAt.Valid && !r.LockedUntil.Valid, "there is a leader, and ended_at or locked_until is not NULL")
	rec.LeaderID = leadership.CandidateID(r.LeaderID.StringVal)
	copy(rec.KeyHash[:], r.KeyHash)
	rec.LeaseDuration = s.millis("lease_ms", r.LeaseMS)
	rec.Metadata = s.metadata(r.Metadata)
	rec.AcquiredAt = s.time("acquired_at", r.AcquiredAt)
	rec.EndsBy, rec.EndsBecause = s.sparse("ends_by", r.EndsBy), leadership.EndReason(r.EndsBecause.StringVal)
	rec.HeartbeatAt = rule.StartOf(s.time("renewed_at", r.RenewedAt), s.sparse("prior_end", r.PriorEnd), rec.LeaseDuration)
	if !r.PriorEnd.Valid {
		rec.AcquiredAt = rec.HeartbeatAt // the grant was the last heartbeat
	}
}

func (r row) vacancy(s *strict, rec *rule.Record) {
	s.require(r.KeyHash == nil && !r.LeaseMS.Valid && s.metadata(r.Metadata) == "" && !r.AcquiredAt.Valid && !r.RenewedAt.Valid && !r.PriorEnd.Valid && !r.EndsBy.Valid && !r.EndsBecause.Valid,
		"there is no leader, and a part of a lease is not NULL")
	if !r.EndedAt.Valid && !r.LockedUntil.Valid {
		return
	}
	rec.EndedAt = s.time("ended_at", r.EndedAt)
	rec.LockFor = s.time("locked_until", r.LockedUntil).Sub(rec.EndedAt)
	s.require(rec.LockFor >= 0, "locked_until is before ended_at")
}

// strict reads columns and keeps the first error in them.
type strict struct{ err error }

func (s *strict) require(ok bool, format string, args ...any) {
	if !ok && s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *strict) int(column string, v spanner.NullInt64) int64 {
	s.require(v.Valid, "%s is NULL", column)
	return v.Int64
}

func (s *strict) bool(column string, v spanner.NullBool) bool {
	s.require(v.Valid, "%s is NULL", column)
	return v.Bool
}

func (s *strict) text(column string, v spanner.NullString) string {
	s.require(v.Valid, "%s is NULL", column)
	return v.StringVal
}

func (s *strict) time(column string, v spanner.NullTime) time.Time {
	s.require(v.Valid && !v.Time.IsZero(), "%s is NULL, or the year 1", column)
	return v.Time.UTC()
}

// sparse returns the zero time if the column is NULL.
func (s *strict) sparse(column string, v spanner.NullTime) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return s.time(column, v)
}

func (s *strict) millis(column string, v spanner.NullInt64) time.Duration {
	const most = int64(max(leadership.MaxLeaseDuration, leadership.MaxLockDelay) / time.Millisecond)
	ms := s.int(column, v)
	if ms < 0 || ms > most {
		s.require(false, "%s is %d", column, ms)
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// metadata returns the text in its canonical form: Spanner stores JSON in a form of its own.
func (s *strict) metadata(v spanner.NullString) leadership.Metadata {
	m, err := leadership.ParseMetadata([]byte(v.StringVal))
	if err != nil {
		s.require(false, "metadata: %w", err)
	}
	return m
}

// columns returns the values of the row for the changed record. It includes renewed_at and
// prior_end only if they change: with a heartbeat, they are the time of the commit and the end
// before which that has to be; without a leader, NULL.
func columns(ch rule.Change, carried rule.Carried) map[string]any {
	r := ch.Record
	held := r.LeaderID != ""
	dueAt := r.DueAt()
	c := map[string]any{
		"cluster_id":     string(r.Election),
		"schema_version": int64(SchemaVersion),
		"fencing_token":  int64(r.Token),
		"revision":       int64(r.Revision),
		"deleted":        r.Deleted,
		"needs":          int64(carried.Needs),
		"policy":         nullText(carried.Policy),
		"standing":       nullText(carried.Standing),
		"leader_id":      nullText(string(r.LeaderID)),
		"key_hash":       []byte(nil),
		"lease_ms":       spanner.NullInt64{Int64: r.LeaseDuration.Milliseconds(), Valid: held},
		"metadata":       spanner.NullJSON{Value: json.RawMessage(r.Metadata), Valid: r.Metadata != ""},
		"acquired_at":    spanner.NullTime{Time: r.AcquiredAt, Valid: held},
		"ends_by":        spanner.NullTime{Time: r.EndsBy, Valid: !r.EndsBy.IsZero()},
		"ends_because":   nullText(string(r.EndsBecause)),
		"ended_at":       spanner.NullTime{Time: r.EndedAt, Valid: !r.EndedAt.IsZero()},
		"locked_until":   spanner.NullTime{Time: r.EndedAt.Add(r.LockFor), Valid: !r.EndedAt.IsZero()},
		"retire_at":      spanner.NullTime{Time: dueAt, Valid: !dueAt.IsZero()},
	}
	switch {
	case ch.Heartbeat:
		c["renewed_at"], c["prior_end"] = spanner.CommitTimestamp, spanner.NullTime{Time: ch.Before, Valid: !ch.Before.IsZero()}
	case !held:
		c["renewed_at"], c["prior_end"] = spanner.NullTime{}, spanner.NullTime{}
	}
	if held {
		c["key_hash"] = r.KeyHash[:]
	}
	return c
}

func nullText(s string) spanner.NullString { return spanner.NullString{StringVal: s, Valid: s != ""} }
