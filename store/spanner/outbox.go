package spanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/spanner"

	"regent/leadership"
)

// pendingSQL reads the outbox in the order of its index. The emulator does not see that an index
// without NULLs is enough here, and needs the second hint; Cloud Spanner ignores it.
const pendingSQL = `SELECT ` + eventColumnList + `
FROM LeadershipEvents@{FORCE_INDEX=LeadershipEventsPending, spanner_emulator.disable_query_null_filtered_index_check=true} AS v
WHERE v.pending IS NOT NULL AND v.cluster_id >= @first AND v.cluster_id <= @last
ORDER BY v.cluster_id, v.revision LIMIT @limit`

// lastRune sorts after every character of an election's name.
const lastRune = "~"

// Unannounced is one strong query, and another after a page with an event that cannot be decoded.
// Such an event holds up the later ones of its election, which must not overtake it, but not other
// elections. It is reported as RecordCorrupt once there is nothing else to announce.
func (s *Store) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	left := outbox{first: string(e), last: cmp.Or(string(e), lastRune)}
	for len(left.events) < limit {
		page := limit - len(left.events)
		rows, err := collect[eventRow](ctx, s, "unannounced", "events", left.next(page))
		if err != nil {
			return nil, err
		}
		left.add(rows)
		if len(rows) < page {
			break
		}
	}
	if len(left.events) == 0 {
		return nil, left.corrupt
	}
	return left.events, nil
}

// outbox gathers events that are to be announced, in the order of their keys. It takes no
// election's events from two pages: another instance may announce between the queries and leave a
// gap.
type outbox struct {
	events      []leadership.Event
	first, last string // the elections that are still to be read
	blocked     string // the last election with an event that cannot be read
	corrupt     error  // the first such event
}

// next returns the query of the next page.
func (o *outbox) next(limit int) spanner.Statement {
	return spanner.Statement{SQL: pendingSQL, Params: map[string]any{"first": o.first, "last": o.last, "limit": int64(limit)}}
}

func (o *outbox) add(rows []eventRow) {
	for _, r := range rows {
		election := r.ClusterID.StringVal
		o.first = election + "\x00" // the next name there can be
		if election == o.blocked {
			continue
		}
		ev, err := r.event()
		if err != nil {
			o.blocked, o.corrupt = election, cmp.Or(o.corrupt, err)
			continue
		}
		o.events = append(o.events, ev)
	}
}

// MarkAnnounced is one read of the events by their keys and one Commit, however many events there
// are. (With a DML statement it would be up to an optimizer whether it seeks those keys, or every
// combination of their elections and revisions.) Events that are gone, or marked already, are left
// out; if all are, the Commit is a Rollback.
func (s *Store) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if len(ids) == 0 {
		return nil
	}
	_, err = s.transact(ctx, "announced", fmt.Sprintf("%d events", len(ids)), 0, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		var marks []*spanner.Mutation
		options := &spanner.ReadOptions{RequestTag: tag("announced")}
		rows := tx.ReadWithOptions(ctx, "LeadershipEvents", keysOf(ids), []string{"cluster_id", "revision", "pending"}, options)
		err := rows.Do(func(r *spanner.Row) error {
			var e struct {
				ClusterID string           `spanner:"cluster_id"`
				Revision  int64            `spanner:"revision"`
				Pending   spanner.NullBool `spanner:"pending"`
			}
			if err := r.ToStruct(&e); err != nil {
				return err
			}
			if e.Pending.Valid {
				marks = append(marks, spanner.UpdateMap("LeadershipEvents", map[string]any{
					"cluster_id": e.ClusterID, "revision": e.Revision, "pending": nil,
				}))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(marks) == 0 {
			return errNothingToWrite
		}
		return tx.BufferWrite(marks)
	})
	if errors.Is(err, errNothingToWrite) {
		return nil
	}
	return err
}

// keysOf are the keys of the events in LeadershipEvents.
func keysOf(ids []leadership.EventID) spanner.KeySet {
	keys := make([]spanner.KeySet, len(ids))
	for i, id := range ids {
		keys[i] = spanner.Key{string(id.Election), int64(id.Revision)}
	}
	return spanner.KeySets(keys...)
}
