package spanner

import (
	"context"
	"fmt"
	"hash/fnv"

	"cloud.google.com/go/spanner"

	"regent/leadership"
)

// shards is over how many parts the outbox is spread. It may change: rows keep the shard they were written with.
const shards = 16

// shard keeps the events of one election together, so that they are read in order.
func shard(e leadership.Election) int64 {
	h := fnv.New32a()
	h.Write([]byte(e))
	return int64(h.Sum32() % shards)
}

// eventRow is a row of LeadershipEvents as a query returns it.
type eventRow struct {
	ClusterID        spanner.NullString `spanner:"cluster_id"`
	Revision         spanner.NullInt64  `spanner:"revision"`
	Type             spanner.NullString `spanner:"type"`
	FencingToken     spanner.NullInt64  `spanner:"fencing_token"`
	LeaderID         spanner.NullString `spanner:"leader_id"`
	PreviousLeaderID spanner.NullString `spanner:"previous_leader_id"`
	RequestID        spanner.NullString `spanner:"request_id"`
	CommittedAt      spanner.NullTime   `spanner:"committed_at"`
}

const eventColumnList = `v.cluster_id, v.revision, v.type, v.fencing_token, v.leader_id, v.previous_leader_id, v.request_id, v.committed_at`

// event is the event that the row keeps. The type is not checked: a newer regent may have written one that this one does not know. The
// error has the code RecordCorrupt.
func (r eventRow) event() (leadership.Event, error) {
	var s strict
	ev := leadership.Event{
		Election:         leadership.Election(s.text("cluster_id", r.ClusterID)),
		Revision:         leadership.Revision(s.int("revision", r.Revision)),
		Type:             leadership.EventType(s.text("type", r.Type)),
		At:               s.time("committed_at", r.CommittedAt),
		LeaderID:         leadership.CandidateID(r.LeaderID.StringVal),
		PreviousLeaderID: leadership.CandidateID(r.PreviousLeaderID.StringVal),
		Token:            leadership.Token(s.int("fencing_token", r.FencingToken)),
		RequestID:        r.RequestID.StringVal,
	}
	s.require(ev.Revision > 0 && ev.Type != "" && ev.Token >= 0 && ev.Token <= leadership.MaxToken,
		"it has an event with revision %d, type %q and fencing token %d", ev.Revision, ev.Type, ev.Token)
	if s.err != nil {
		return leadership.Event{}, leadership.Corrupt(ev.Election, s.err)
	}
	return ev, nil
}

// eventColumns are the values of a new row: not announced, and committed when the transaction is.
func eventColumns(ev leadership.Event) map[string]any {
	return map[string]any{
		"cluster_id":         string(ev.Election),
		"revision":           int64(ev.Revision),
		"type":               string(ev.Type),
		"fencing_token":      int64(ev.Token),
		"leader_id":          nullText(string(ev.LeaderID)),
		"previous_leader_id": nullText(string(ev.PreviousLeaderID)),
		"request_id":         nullText(ev.RequestID),
		"committed_at":       spanner.CommitTimestamp,
		"pending_shard":      shard(ev.Election),
	}
}

const eventsSQL = `SELECT ` + eventColumnList + `
FROM LeadershipEvents AS v
WHERE v.cluster_id = @election AND v.revision > @after
ORDER BY v.revision LIMIT @limit`

// Events is one strong query.
func (s *Store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	return s.events(ctx, "events", quoted(e), spanner.Statement{SQL: eventsSQL, Params: map[string]any{
		"election": string(e), "after": int64(after), "limit": int64(limit),
	}})
}

// unannouncedSQL reads the outbox in the order of its index. The emulator cannot see that an index without NULLs is enough here, and wants
// to be told; Cloud Spanner ignores the second hint.
const unannouncedSQL = `SELECT ` + eventColumnList + `
FROM LeadershipEvents@{FORCE_INDEX=LeadershipEventsPending, spanner_emulator.disable_query_null_filtered_index_check=true} AS v
WHERE v.pending_shard IS NOT NULL
ORDER BY v.pending_shard, v.cluster_id, v.revision LIMIT @limit`

// Unannounced is one strong query.
func (s *Store) Unannounced(ctx context.Context, limit int) ([]leadership.Event, error) {
	return s.events(ctx, "unannounced", "events", spanner.Statement{SQL: unannouncedSQL, Params: map[string]any{"limit": int64(limit)}})
}

func (s *Store) events(ctx context.Context, op, subject string, statement spanner.Statement) ([]leadership.Event, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var rows []eventRow
	err = s.query(ctx, op, statement, func(r *spanner.Row) error {
		rows = append(rows, eventRow{})
		return r.ToStruct(&rows[len(rows)-1])
	})
	if err != nil {
		return nil, failure(ctx, op, subject, leadership.StoreUnavailable, err)
	}
	var events []leadership.Event
	for _, r := range rows {
		ev, err := r.event()
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	return events, nil
}

// announcedSQL finds the rows by both parts of their key, and then keeps those where the parts belong together.
const announcedSQL = `UPDATE LeadershipEvents AS v SET v.pending_shard = NULL
WHERE v.cluster_id IN UNNEST(@elections) AND v.revision IN UNNEST(@revisions) AND v.pending_shard IS NOT NULL
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
	_, err = s.transact(ctx, "announced", fmt.Sprintf("%d events", len(ids)), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
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
