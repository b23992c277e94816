package spanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// renewSQL sends all heartbeats in one statement. A second statement could not follow in the same
// transaction: renewed_at then has a pending timestamp, and cannot be read.
//
// It renews a lease if token and key hash are the given ones, it is not over by Spanner's clock at
// that moment, and its record agrees with its history: the only event from the record's revision on
// is the one of that revision, with its token. IF keeps the emulator, which reads a whole table for
// each such subquery, from evaluating it for every row; Cloud Spanner seeks both by their keys.
//
// Whether the heartbeat is in time depends on the commit: prior_end is the end before which it has
// to be committed. SET sees the old row, THEN RETURN the new one; renewed_at must not be returned.
const renewSQL = `UPDATE Leadership AS l
SET l.renewed_at = PENDING_COMMIT_TIMESTAMP(),
	l.prior_end = ` + leaseEnd + `,
	l.acquired_at = IF(l.prior_end IS NULL AND l.acquired_at IS NOT NULL, l.renewed_at, l.acquired_at)
WHERE l.cluster_id IN UNNEST(@elections)
	AND l.schema_version = @schema AND l.needs <= @version AND NOT l.deleted AND l.ended_at IS NULL
	AND ` + leaseEnd + ` > CURRENT_TIMESTAMP()
	AND IF(
		EXISTS (SELECT 1 FROM UNNEST(@leases) AS r WHERE r.cluster_id = l.cluster_id
			AND r.leader_id = l.leader_id AND r.fencing_token = l.fencing_token AND r.key_hash = l.key_hash),
		l.fencing_token = (SELECT MAX(v.fencing_token) FROM LeadershipEvents AS v
			WHERE v.cluster_id = l.cluster_id AND v.revision >= l.revision HAVING MAX(v.revision) = l.revision),
		FALSE)
THEN RETURN ` + rowColumns

// leaseEnd is Record.LeaseEnd in SQL, with rule.StartOf: a lease whose last heartbeat came too late
// has the end that it had before, and no lease ends after ends_by.
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

// Renew is one DML statement and one Commit, however many leases there are. If that takes too long,
// because another transaction has locked one of the rows, it sends the leases again in pieces, so
// that only the renewals of locked rows fail. To send a renewal again is harmless, even if the
// first one is committed after all: of two heartbeats of a lease the later one counts, if it came
// before the end that the earlier one left.
func (s *Store) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	whole := piece{leases, make([]rule.Renewed, len(leases))}
	ctx, done, err := s.begin(ctx)
	if err != nil {
		whole.fill(nil, err)
		return whole.answers
	}
	defer done()
	patience := s.patience
	if len(leases) == 1 {
		patience = 0 // a single lease cannot be divided
	}
	if slow := s.tryEach(ctx, []piece{whole}, patience); len(slow) > 0 {
		s.renewPieces(ctx, slow)
	}
	return whole.answers
}

// renewPieces sends the slow pieces again in smaller ones, until those that are too slow have one
// lease each. If in the first round all are too slow, the cause is not a locked row: they get all
// the remaining time.
func (s *Store) renewPieces(ctx context.Context, slow []piece) {
	for round := 0; len(slow) > 0; round++ {
		smaller := divide(slow)
		slow = s.tryEach(ctx, smaller, s.patience/2)
		if round == 0 && len(slow) == len(smaller) {
			s.tryEach(ctx, slow, 0)
			return
		}
	}
}

// parts is the number of pieces into which a slow renewal is divided, and how many are sent
// concurrently. With eight, 500 leases are single ones after three rounds, a few seconds in all.
// Halves would take nine rounds, longer than an abandoned transaction keeps its locks.
const parts = 8

// piece is some of the leases of one call, with their answers.
type piece struct {
	leases  []rule.Renewal
	answers []rule.Renewed
}

// divide returns the parts of all pieces that have more than one lease.
func divide(pieces []piece) []piece {
	var smaller []piece
	for _, p := range pieces {
		n := len(p.leases)
		if n == 1 {
			continue
		}
		size := (n + parts - 1) / parts
		for from := 0; from < n; from += size {
			to := min(from+size, n)
			smaller = append(smaller, piece{p.leases[from:to], p.answers[from:to]})
		}
	}
	return smaller
}

// tryEach tries all pieces, a few at a time, and returns those that took longer than patience (0:
// no limit) while ctx has time left. It panics if one of them does.
func (s *Store) tryEach(ctx context.Context, pieces []piece, patience time.Duration) (slow []piece) {
	if len(pieces) == 1 {
		if s.try(ctx, pieces[0], patience) {
			return pieces
		}
		return nil
	}
	isSlow := make([]bool, len(pieces))
	service.Each(len(pieces), parts, func(i int) { isSlow[i] = s.try(ctx, pieces[i], patience) })
	for i, p := range pieces {
		if isSlow[i] {
			slow = append(slow, p)
		}
	}
	return slow
}

// try sends the heartbeats of one piece together, and reports whether that took too long.
func (s *Store) try(ctx context.Context, p piece, patience time.Duration) (slow bool) {
	answers := make(map[leadership.Election]rule.Renewed, len(p.leases))
	err := s.renew(ctx, p.leases, answers, patience)
	p.fill(answers, err)
	return patience > 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// fill puts the answers in the order of the leases. err is the error of leases without an answer;
// nil: they do not match. If this try failed, an outcome that is unknown from an earlier try stays
// unknown.
func (p piece) fill(answers map[leadership.Election]rule.Renewed, err error) {
	for i, c := range p.leases {
		switch a, ok := answers[c.Election]; {
		case ok:
			p.answers[i] = a
		case err == nil:
			p.answers[i] = rule.Renewed{Err: rule.ErrNotRenewed}
		case !errors.Is(p.answers[i].Err, leadership.OutcomeUnknown):
			p.answers[i] = rule.Renewed{Err: err}
		}
	}
}

// renew adds answers for the leases that were renewed, and for those whose record is corrupt. The
// error is for all others.
func (s *Store) renew(
	ctx context.Context, leases []rule.Renewal, answers map[leadership.Election]rule.Renewed, patience time.Duration,
) error {
	leases = slices.DeleteFunc(slices.Clone(leases), func(c rule.Renewal) bool {
		_, answered := answers[c.Election]
		return answered
	})
	if len(leases) == 0 {
		return nil
	}
	var b beats
	statement := s.renewal(leases)
	at, err := s.transact(ctx, "renew", fmt.Sprintf("%d leases", len(leases)), patience, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		b = beats{codec: s.codec} // the client may have run this before
		err := tx.QueryWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: tag("renew")}).Do(b.add)
		if err == nil && len(b.corrupt) > 0 {
			err = errRefused
		}
		return err
	})
	switch {
	case errors.Is(err, errRefused): // a record is corrupt: try once more without it
		for e, err := range b.corrupt {
			answers[e] = rule.Renewed{Err: err}
		}
		return s.renew(ctx, leases, answers, patience)
	case err != nil:
		return err
	}
	for _, a := range b.sound {
		a.HeartbeatAt, a.Now = rule.StartOf(at, a.Before, a.Record.LeaseDuration), at
		answers[a.Record.Election] = a
	}
	return nil
}

func (s *Store) renewal(leases []rule.Renewal) spanner.Statement {
	var elections []string
	var keys []leaseKey
	for _, c := range leases {
		elections = append(elections, string(c.Election))
		keys = append(keys, leaseKey{string(c.Election), string(c.CandidateID), int64(c.Token), c.KeyHash[:]})
	}
	return spanner.Statement{SQL: renewSQL, Params: map[string]any{
		"elections": elections, "leases": keys,
		"schema": int64(SchemaVersion), "version": int64(s.codec.Program()),
	}}
}

// beats are the rows that one run of renewSQL has changed.
type beats struct {
	codec   rule.Codec
	sound   []rule.Renewed // without the time of the commit
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
	b.sound = append(b.sound, snap.Renewed(snap.Record.LeaseEnd()))
	return nil
}

// before returns the record as it was before renewSQL changed the row, as of its previous
// heartbeat. The error is RecordCorrupt.
func (r row) before(codec rule.Codec) (rule.Snapshot, error) {
	lease := time.Duration(r.LeaseMS.Int64) * time.Millisecond
	r.RenewedAt = spanner.NullTime{Time: r.PriorEnd.Time.Add(-lease), Valid: r.PriorEnd.Valid}
	r.PriorEnd = spanner.NullTime{}
	rec, err := r.record(codec)
	if err != nil {
		return rule.Snapshot{}, err
	}
	rec.AcquiredAt = r.AcquiredAt.Time.UTC() // as the statement has set it
	snap := rule.Snapshot{Record: rec, Now: rec.HeartbeatAt, Guard: Guard}
	return snap, rule.VerifyAlone(snap)
}
