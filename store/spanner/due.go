package spanner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"regent/leadership"
)

// heldSQL finds the elections with a leader by an index, and then reads their rows. The emulator
// needs the second hint; see pendingSQL.
const heldSQL = `SELECT CURRENT_TIMESTAMP() AS now, l.renewed_at, ` + rowColumns + `
FROM Leadership@{FORCE_INDEX=LeadershipHeld, spanner_emulator.disable_query_null_filtered_index_check=true} AS l
WHERE l.leader_id IS NOT NULL AND l.cluster_id > @after
ORDER BY l.cluster_id LIMIT @limit`

// Held is one strong query. Records are checked as List does.
func (s *Store) Held(ctx context.Context, after leadership.Election, limit int) (leadership.Listing, error) {
	statement := spanner.Statement{SQL: heldSQL, Params: map[string]any{
		"after": string(after), "limit": int64(limit) + 1, // one more tells whether there is more
	}}
	rows, err := due[found](ctx, s, "held", statement)
	if err != nil {
		return leadership.Listing{}, err
	}
	return s.listing(rows, limit), nil
}

const retirableSQL = `SELECT l.cluster_id
FROM Leadership@{FORCE_INDEX=LeadershipRetirable, spanner_emulator.disable_query_null_filtered_index_check=true} AS l
WHERE l.retire_at <= @at
ORDER BY l.retire_at, l.cluster_id LIMIT @limit`

// Retirable is one strong query. Tables without retire_at have no election with a RetireAfter.
func (s *Store) Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error) {
	statement := spanner.Statement{SQL: retirableSQL, Params: map[string]any{"at": at, "limit": int64(limit)}}
	rows, err := due[struct {
		ClusterID string `spanner:"cluster_id"`
	}](ctx, s, "retirable", statement)
	if err != nil {
		return nil, err
	}
	var names []leadership.Election
	for _, r := range rows {
		names = append(names, leadership.Election(r.ClusterID))
	}
	return names, nil
}

// due runs a strong query with an index that tables of an earlier program may not have. Without the
// index the query does without; without the column it finds nothing.
func due[R any](ctx context.Context, s *Store, op string, statement spanner.Statement) ([]R, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	rows, err := query[R](ctx, s.client.Single(), op, statement)
	if unindexed(err) {
		statement.SQL = withoutHints(statement.SQL)
		rows, err = query[R](ctx, s.client.Single(), op, statement)
	}
	switch {
	case lacks(err, retireColumn):
		return nil, nil
	case err != nil:
		return nil, failure(ctx, op, "elections", leadership.StoreUnavailable, err)
	}
	return rows, nil
}

// unindexed reports whether a query was refused because the index that it names does not exist.
func unindexed(err error) bool {
	return spanner.ErrCode(err) == codes.InvalidArgument && strings.Contains(err.Error(), "index")
}

// withoutHints is the query without the hints after its table.
func withoutHints(sql string) string {
	before, rest, _ := strings.Cut(sql, "@{")
	_, after, _ := strings.Cut(rest, "}")
	return before + after
}

// retireColumn came to the tables without a new schema version: a program that does not know it
// refuses the elections that have a value there, by Record.Needs.
const retireColumn = "retire_at"

// retirement adds the value of retireColumn to a row, if the election's policy has or had any use
// for it: then tables that lack the column refuse the policy, and serve all other elections.
func retirement(row map[string]any, before, after leadership.Record) {
	if before.Policy.RetireAfter == 0 && after.Policy.RetireAfter == 0 {
		return
	}
	at := after.RetireAt()
	row[retireColumn] = spanner.NullTime{Time: at, Valid: !at.IsZero()}
}

// lacks reports whether a call was refused because a table does not have the column.
func lacks(err error, column string) bool {
	code := spanner.ErrCode(err)
	return (code == codes.NotFound || code == codes.InvalidArgument) && strings.Contains(err.Error(), column)
}

// outdated returns the error for a change that was refused because tables lack retireColumn.
func outdated(err error) error {
	if !lacks(err, retireColumn) {
		return err
	}
	return fmt.Errorf("the tables cannot keep retireAfter yet; change them with: regent migrate, and then try again: %w", err)
}
