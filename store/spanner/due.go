package spanner

import (
	"context"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
)

// heldSQL finds the elections with a leader by an index, and then reads their rows. The emulator
// needs the second hint; see pendingSQL.
const heldSQL = `SELECT CURRENT_TIMESTAMP() AS now, l.renewed_at, ` + rowColumns + `
FROM Leadership@{FORCE_INDEX=LeadershipHeld, spanner_emulator.disable_query_null_filtered_index_check=true} AS l
WHERE l.leader_id IS NOT NULL AND l.cluster_id > @after
ORDER BY l.cluster_id LIMIT @limit`

// Held is one strong query. Records are checked as List does.
func (s *Store) Held(ctx context.Context, after leadership.Election, limit int) (rule.Listing, error) {
	statement := spanner.Statement{SQL: heldSQL, Params: map[string]any{
		"after": string(after), "limit": int64(limit) + 1, // one more tells whether there is more
	}}
	rows, err := collect[found](ctx, s, "held", "elections", statement)
	if err != nil {
		return rule.Listing{}, err
	}
	return s.listing(rows, limit), nil
}

const retirableSQL = `SELECT l.cluster_id
FROM Leadership@{FORCE_INDEX=LeadershipRetirable, spanner_emulator.disable_query_null_filtered_index_check=true} AS l
WHERE l.retire_at IS NOT NULL AND l.retire_at <= @at
ORDER BY l.retire_at, l.cluster_id LIMIT @limit`

// Retirable is one strong query.
func (s *Store) Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error) {
	statement := spanner.Statement{SQL: retirableSQL, Params: map[string]any{"at": at, "limit": int64(limit)}}
	rows, err := collect[struct {
		ClusterID string `spanner:"cluster_id"`
	}](ctx, s, "retirable", "elections", statement)
	if err != nil {
		return nil, err
	}
	var names []leadership.Election
	for _, r := range rows {
		names = append(names, leadership.Election(r.ClusterID))
	}
	return names, nil
}
