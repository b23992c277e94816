package spanner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
)

// renewSQL sends all heartbeats in one statement. A second statement could not follow in the same transaction: renewed_at then has a
// pending timestamp, and cannot be read.
//
// It renews what is exactly the lease named, is not over by the time that Spanner has when it looks, and is held by a record that agrees with
// its history: from the record's revision on there is that one event, with its token. IF keeps an emulator, which reads a whole table
// for each such question, from asking it of every row; Cloud Spanner seeks both by their keys.
//
// Returning renewed_at is not allowed; prior_end is set for the sake of being returned. SET sees the row as it was.
const renewSQL = `UPDATE Leadership AS l
SET l.renewed_at = PENDING_COMMIT_TIMESTAMP(),
	l.prior_end = TIMESTAMP_ADD(l.renewed_at, INTERVAL l.lease_ms MILLISECOND)
WHERE l.cluster_id IN UNNEST(@elections)
	AND l.schema_version = @schema AND NOT l.deleted AND l.ended_at IS NULL
	AND TIMESTAMP_ADD(l.renewed_at, INTERVAL l.lease_ms MILLISECOND) > CURRENT_TIMESTAMP()
	AND IF(
		EXISTS (SELECT 1 FROM UNNEST(@leases) AS r WHERE r.cluster_id = l.cluster_id
			AND r.leader_id = l.leader_id AND r.fencing_token = l.fencing_token AND r.key_hash = l.key_hash),
		l.fencing_token = (SELECT MAX(v.fencing_token) FROM LeadershipEvents AS v
			WHERE v.cluster_id = l.cluster_id AND v.revision >= l.revision HAVING MAX(v.revision) = l.revision),
		FALSE)
THEN RETURN l.prior_end, ` + rowColumns

// leaseKey names a lease in renewSQL.
type leaseKey struct {
	ClusterID    string `spanner:"cluster_id"`
	LeaderID     string `spanner:"leader_id"`
	FencingToken int64  `spanner:"fencing_token"`
	KeyHash      []byte `spanner:"key_hash"`
}

// renewedRow is a row that renewSQL returns.
type renewedRow struct {
	PriorEnd spanner.NullTime `spanner:"prior_end"`
	row
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

// renew adds the answers to the leases that were renewed, and to those whose record is corrupt. Its error is that of all others.
func (s *Store) renew(ctx context.Context, leases []leadership.Renewal, answers map[leadership.Election]leadership.Renewed) error {
	if leases = unanswered(leases, answers); len(leases) == 0 {
		return nil
	}
	var b beats
	statement := renewal(leases)
	at, err := s.transact(ctx, "renew", fmt.Sprintf("%d leases", len(leases)), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		b = beats{} // the client may have run this before
		err := tx.QueryWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: tag("renew")}).Do(b.add)
		if err == nil && len(b.corrupt) > 0 {
			err = errNothingToWrite
		}
		return err
	})
	switch {
	case errors.Is(err, errNothingToWrite): // a corrupt record stays as it is, so once more without it
		for e, err := range b.corrupt {
			answers[e] = leadership.Renewed{Err: err}
		}
		return s.renew(ctx, leases, answers)
	case err != nil:
		return err
	}
	for _, a := range b.sound {
		a.Snapshot.Now, a.Snapshot.Record.HeartbeatAt = at, at
		answers[a.Snapshot.Record.Election] = a
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

func renewal(leases []leadership.Renewal) spanner.Statement {
	var elections []string
	var keys []leaseKey
	for _, c := range leases {
		elections = append(elections, string(c.Election))
		keys = append(keys, leaseKey{string(c.Election), string(c.CandidateID), int64(c.Token), c.KeyHash[:]})
	}
	return spanner.Statement{SQL: renewSQL, Params: map[string]any{"elections": elections, "leases": keys, "schema": int64(SchemaVersion)}}
}

// beats are the rows that one run of renewSQL has changed.
type beats struct {
	sound   []leadership.Renewed // but for the time of the commit
	corrupt map[leadership.Election]error
}

func (b *beats) add(r *spanner.Row) error {
	var f renewedRow
	if err := r.ToStruct(&f); err != nil {
		return err
	}
	snap, err := f.before()
	if err != nil {
		if b.corrupt == nil {
			b.corrupt = make(map[leadership.Election]error)
		}
		b.corrupt[leadership.Election(f.ClusterID.StringVal)] = err
		return nil
	}
	b.sound = append(b.sound, leadership.Renewed{Snapshot: snap, Before: snap.Record.LeaseEnd()})
	return nil
}

// before is the record as it was before the heartbeat, at the moment of the heartbeat before that. The error has the code RecordCorrupt.
func (f renewedRow) before() (leadership.Snapshot, error) {
	lease := time.Duration(f.LeaseMS.Int64) * time.Millisecond
	f.RenewedAt = spanner.NullTime{Time: f.PriorEnd.Time.Add(-lease), Valid: f.PriorEnd.Valid}
	r, err := f.record()
	if err != nil {
		return leadership.Snapshot{}, err
	}
	snap := leadership.Snapshot{Record: r, Now: r.HeartbeatAt, Guard: Guard}
	return snap, sound(snap)
}
