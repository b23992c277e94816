package spanner

import (
	"context"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
)

// sinceSQL does not sort: it can then stop as soon as there is one row too many.
const sinceSQL = `SELECT ` + eventColumnList + `
FROM LeadershipEvents@{FORCE_INDEX=LeadershipEventsByTime} AS v
WHERE v.shard IN UNNEST(@shards) AND v.committed_at > @after
LIMIT @limit`

// Since is one strong query, one seek for each shard. Now is the timestamp that it read at.
func (s *Store) Since(ctx context.Context, after time.Time, limit int) (rule.Recent, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return rule.Recent{}, err
	}
	defer done()
	statement := spanner.Statement{SQL: sinceSQL, Params: map[string]any{"shards": allShards(), "after": after, "limit": int64(limit) + 1}}
	tx := s.client.Single()
	rows, err := query[eventRow](ctx, tx, "since", statement)
	var now time.Time
	if err == nil {
		now, err = tx.Timestamp()
	}
	if err != nil {
		return rule.Recent{}, failure(ctx, "since", after.UTC().Format(time.RFC3339), leadership.StoreUnavailable, err)
	}
	events, err := decoded(rows)
	if err != nil {
		return rule.Recent{}, err
	}
	return s.history.Since(after, now.UTC(), events, limit)
}

func allShards() []int64 {
	all := make([]int64, shards)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}
