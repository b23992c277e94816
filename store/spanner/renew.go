package spanner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
)

// renewSQL sends all heartbeats in one statement. A second statement could not follow in the same
// transaction: renewed_at then has a pending timestamp, and cannot be read.
//
// It renews a lease if token and key hash are the given ones, it is not over by Spanner's clock at
// that moment, and its record agrees with its history: the only event from the record's revision on
// is the one of that revision, with its token. IF keeps the emulator, which reads a whole table for
// each such subquery, from evaluating it for every row; Cloud Spanner seeks both by their keys.
//
// Whether it comes in time, the commit decides: prior_end keeps when that had to be. SET sees the
// row as it was, THEN RETURN as it will be; to return renewed_at is not allowed.
const renewSQL = `UPDATE Leadership AS l
SET l.renewed_at = PENDING_COMMIT_TIMESTAMP(),
	l.prior_end = ` + leaseEnd + `,
	l.acquired_at = IF(l.prior_end IS NULL AND l.acquired_at IS NOT NULL, l.renewed_at, l.acquired_at)
WHERE l.cluster_id IN UNNEST(@elections)
	AND (l.schema_version = @schema AND l.needs <= @version OR l.schema_version = @before) AND NOT l.deleted AND l.ended_at IS NULL
	AND ` + leaseEnd + ` > CURRENT_TIMESTAMP()
	AND IF(
		EXISTS (SELECT 1 FROM UNNEST(@leases) AS r WHERE r.cluster_id = l.cluster_id
			AND r.leader_id = l.leader_id AND r.fencing_token = l.fencing_token AND r.key_hash = l.key_hash),
		l.fencing_token = (SELECT MAX(v.fencing_token) FROM LeadershipEvents AS v
			WHERE v.cluster_id = l.cluster_id AND v.revision >= l.revision HAVING MAX(v.revision) = l.revision),
		FALSE)
THEN RETURN ` + rowColumns

// leaseEnd is Record.LeaseEnd in SQL, with leadership.StartOf: the end of a lease whose last
// heartbeat came too late is the one it had before, and none lies behind ends_by.
const leaseEnd = `LEAST(
	IF(l.renewed_at >= l.prior_end, l.prior_end, TIMESTAMP_ADD(l.renewed_at, INTERVAL l.lease_ms MILLISECOND)),
	IFNULL(l.ends_by, TIMESTAMP '9999-12-31 23:59:59Z'))`

// leaseKey names a lease in renewSQL.
type leaseKey struct {
	ClusterID    string `spanner:"cluster_id"`
	LeaderID     string `spanner:"leader_id"`
	FencingToken int64  `spanner:"fencing_token"`
	KeyHash      []byte `spanner:"key_hash"`
}

// Renew is one DML statement and one Commit, however many leases there are.
func (s *Store) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	answers := make(map[leadership.Election]leadership.Renewed, len(leases))
	ctx, done, err := s.begin(ctx)
	if err == nil {
		defer done()
		err = s.renew(ctx, leases, answers)
	}
	inOrder := make([]leadership.Renewed, len(leases))
	for i, c := range leases {
		switch a, ok := answers[c.Election]; {
		case ok:
			inOrder[i] = a
		case err != nil:
			inOrder[i].Err = err
		default:
			inOrder[i].Err = leadership.ErrNotRenewed
		}
	}
	return inOrder
}

// renew adds the answers to the leases that were renewed, and to those whose record is corrupt. Its
// error is that of all others.
func (s *Store) renew(ctx context.Context, leases []leadership.Renewal, answers map[leadership.Election]leadership.Renewed) error {
	if leases = unanswered(leases, answers); len(leases) == 0 {
		return nil
	}
	var b beats
	statement := s.renewal(leases)
	at, err := s.transact(ctx, "renew", fmt.Sprintf("%d leases", len(leases)), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		b = beats{codec: s.codec} // the client may have run this before
		err := tx.QueryWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: tag("renew")}).Do(b.add)
		if err == nil && len(b.corrupt) > 0 {
			err = errRefused
		}
		return err
	})
	switch {
	case errors.Is(err, errRefused): // a corrupt record stays as it is, so once more without it
		for e, err := range b.corrupt {
			answers[e] = leadership.Renewed{Err: err}
		}
		return s.renew(ctx, leases, answers)
	case err != nil:
		return err
	}
	for _, a := range b.sound {
		r := &a.Snapshot.Record
		r.HeartbeatAt, a.Snapshot.Now = leadership.StartOf(at, a.Before, r.LeaseDuration), at
		answers[r.Election] = a
	}
	return nil
}

func unanswered(leases []leadership.Renewal, answers map[leadership.Election]leadership.Renewed) []leadership.Renewal {
	var rest []leadership.Renewal
	for _, c := range leases {
		if _, ok := answers[c.Election]; !ok {
			rest = append(rest, c)
		}
	}
	return rest
}

func (s *Store) renewal(leases []leadership.Renewal) spanner.Statement {
	var elections []string
	var keys []leaseKey
	for _, c := range leases {
		elections = append(elections, string(c.Election))
		keys = append(keys, leaseKey{string(c.Election), string(c.CandidateID), int64(c.Token), c.KeyHash[:]})
	}
	return spanner.Statement{SQL: renewSQL, Params: map[string]any{
		"elections": elections, "leases": keys,
		"schema": int64(SchemaVersion), "before": int64(schemaBefore), "version": int64(s.codec.Program()),
	}}
}

// beats are the rows that one run of renewSQL has changed.
type beats struct {
	codec   leadership.Codec
	sound   []leadership.Renewed // but for the time of the commit
	corrupt map[leadership.Election]error
}

func (b *beats) add(r *spanner.Row) error {
	var changed row
	if err := r.ToStruct(&changed); err != nil {
		return err
	}
	snap, err := changed.before(b.codec)
	if err != nil {
		if b.corrupt == nil {
			b.corrupt = make(map[leadership.Election]error)
		}
		b.corrupt[leadership.Election(changed.ClusterID.StringVal)] = err
		return nil
	}
	b.sound = append(b.sound, leadership.Renewed{Snapshot: snap, Before: snap.Record.LeaseEnd()})
	return nil
}

// before is the record as it was before renewSQL changed the row, at the moment of the heartbeat
// before. The error has the code RecordCorrupt.
func (r row) before(codec leadership.Codec) (leadership.Snapshot, error) {
	lease := time.Duration(r.LeaseMS.Int64) * time.Millisecond
	r.RenewedAt = spanner.NullTime{Time: r.PriorEnd.Time.Add(-lease), Valid: r.PriorEnd.Valid}
	r.PriorEnd = spanner.NullTime{}
	rec, err := r.record(codec)
	if err != nil {
		return leadership.Snapshot{}, err
	}
	rec.AcquiredAt = r.AcquiredAt.Time.UTC() // as the statement has set it
	snap := leadership.Snapshot{Record: rec, Now: rec.HeartbeatAt, Guard: Guard}
	return snap, leadership.VerifyAlone(snap)
}
