package spanner

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
)

// Get is one strong query.
func (s *Store) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return rule.Snapshot{}, err
	}
	defer done()
	f, _, err := s.look(ctx, "get", e)
	if err != nil {
		return rule.Snapshot{}, err
	}
	return f.snapshot(e, s.codec)
}

// look is one strong query without a lock. f is the state at f.Now. clock is CURRENT_TIMESTAMP(),
// which may be later, when another candidate already leads. The error carries StoreUnavailable.
func (s *Store) look(ctx context.Context, op string, e leadership.Election) (f found, clock time.Time, err error) {
	tx := s.client.Single()
	f, err = read(ctx, tx, op, e)
	clock = f.Now
	if err == nil {
		f.Now, err = tx.Timestamp()
	}
	if err != nil {
		return found{}, time.Time{}, failure(ctx, op, quoted(e), leadership.StoreUnavailable, err)
	}
	// An idle Spanner may answer as of its last commit. But it has seen all commits before the
	// query was sent, which was timeout ago at most.
	if sent := clock.Add(-s.timeout); f.Now.Before(sent) {
		f.Now = sent
	}
	return f, clock, nil
}

// querier is a transaction of either kind.
type querier interface {
	QueryWithOptions(ctx context.Context, statement spanner.Statement, opts spanner.QueryOptions) *spanner.RowIterator
}

// found is one election as one query sees it, with the newest event of its history.
type found struct {
	Now    time.Time `spanner:"now"`
	Newest []*newest `spanner:"newest"` // one or none
	row
}

type newest struct {
	Revision     int64 `spanner:"revision"`
	FencingToken int64 `spanner:"fencing_token"`
}

// readSQL finds the newest event by reading on from the record's revision: usually that is one row,
// however long the history is. An election without a record is found too, with a history if it has
// one.
const readSQL = `SELECT CURRENT_TIMESTAMP() AS now, l.renewed_at, ` + rowColumns + `,
	ARRAY(SELECT AS STRUCT v.revision, v.fencing_token FROM LeadershipEvents AS v
		WHERE v.cluster_id = @election AND v.revision >= IFNULL(l.revision, 0)
		ORDER BY v.revision DESC LIMIT 1) AS newest
FROM (SELECT @election AS cluster_id) AS q
LEFT JOIN Leadership AS l ON l.cluster_id = q.cluster_id`

// read runs the one query that every decision is based on. Its errors are the client's own.
func read(ctx context.Context, q querier, op string, e leadership.Election) (found, error) {
	var f found
	statement := spanner.Statement{SQL: readSQL, Params: map[string]any{"election": string(e)}}
	err := q.QueryWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: tag(op)}).Do(func(r *spanner.Row) error {
		return r.ToStruct(&f)
	})
	return f, err
}

// snapshot returns the election, if its record agrees with its history. The error has the code
// RecordCorrupt.
func (f found) snapshot(e leadership.Election, codec rule.Codec) (rule.Snapshot, error) {
	snap := rule.Snapshot{Record: rule.Record{Election: e}, Now: f.Now.UTC(), Guard: Guard}
	if f.ClusterID.Valid {
		var err error
		if snap.Record, err = f.record(codec); err != nil {
			return rule.Snapshot{}, err
		}
	}
	var history rule.Newest
	if len(f.Newest) > 0 {
		history.Revision = leadership.Revision(f.Newest[0].Revision)
		history.Token = leadership.Token(f.Newest[0].FencingToken)
	}
	if err := rule.Verify(snap, history); err != nil {
		return rule.Snapshot{}, err
	}
	return snap, nil
}

const listSQL = `SELECT CURRENT_TIMESTAMP() AS now, l.renewed_at, ` + rowColumns + `
FROM Leadership AS l
WHERE STARTS_WITH(l.cluster_id, @prefix) AND l.cluster_id > @after
ORDER BY l.cluster_id LIMIT @limit`

// List is one strong query. It does not compare records with their histories; Get and Update do.
func (s *Store) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	statement := spanner.Statement{SQL: listSQL, Params: map[string]any{
		"prefix": prefix, "after": string(after), "limit": int64(limit) + 1, // one more tells whether there is more
	}}
	rows, err := collect[found](ctx, s, "list", fmt.Sprintf("%q", prefix), statement)
	if err != nil {
		return rule.Listing{}, err
	}
	return s.listing(rows, limit), nil
}

func (s *Store) listing(rows []found, limit int) rule.Listing {
	var l rule.Listing
	if len(rows) > limit {
		rows = rows[:limit]
		l.Next = leadership.Election(rows[limit-1].ClusterID.StringVal)
	}
	for _, f := range rows {
		r, err := f.record(s.codec)
		snap := rule.Snapshot{Record: r, Now: f.Now.UTC(), Guard: Guard}
		if err == nil {
			err = rule.VerifyAlone(snap)
		}
		l.Add(leadership.Election(f.ClusterID.StringVal), snap, err)
	}
	return l
}

// collect is a call that runs one strong query, and returns its rows. The error carries
// StoreUnavailable.
func collect[R any](ctx context.Context, s *Store, op, subject string, statement spanner.Statement) ([]R, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	rows, err := query[R](ctx, s.client.Single(), op, statement)
	if err != nil {
		return nil, failure(ctx, op, subject, leadership.StoreUnavailable, err)
	}
	return rows, nil
}

// query returns the rows of a query. Its errors are the client's own.
func query[R any](ctx context.Context, q querier, op string, statement spanner.Statement) ([]R, error) {
	var rows []R
	err := q.QueryWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: tag(op)}).Do(func(r *spanner.Row) error {
		rows = append(rows, *new(R))
		return r.ToStruct(&rows[len(rows)-1])
	})
	return rows, err
}

func quoted(e leadership.Election) string { return fmt.Sprintf("%q", string(e)) }
