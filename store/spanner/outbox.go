package spanner

import (
	"cmp"
	"context"
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

// announcedSQL finds the rows by both parts of their key, and then keeps those where the parts
// belong together.
const announcedSQL = `UPDATE LeadershipEvents AS v SET v.pending = NULL
WHERE v.cluster_id IN UNNEST(@elections) AND v.revision IN UNNEST(@revisions) AND v.pending IS NOT NULL
	AND EXISTS (SELECT 1 FROM UNNEST(@events) AS i WHERE i.cluster_id = v.cluster_id AND i.revision = v.revision)`

// eventKey is the primary key of LeadershipEvents.
type eventKey struct {
	ClusterID string `spanner:"cluster_id"`
	Revision  int64  `spanner:"revision"`
}

// MarkAnnounced is one DML statement and one Commit, however many events there are.
func (s *Store) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if len(ids) == 0 {
		return nil
	}
	statement := announcement(ids)
	_, err = s.transact(ctx, "announced", fmt.Sprintf("%d events", len(ids)), 0, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.UpdateWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: tag("announced")})
		return err
	})
	return err
}

func announcement(ids []leadership.EventID) spanner.Statement {
	var elections []string
	var revisions []int64
	var events []eventKey
	for _, id := range ids {
		elections = append(elections, string(id.Election))
		revisions = append(revisions, int64(id.Revision))
		events = append(events, eventKey{string(id.Election), int64(id.Revision)})
	}
	return spanner.Statement{SQL: announcedSQL, Params: map[string]any{"elections": elections, "revisions": revisions, "events": events}}
}
