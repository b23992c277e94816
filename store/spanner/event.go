package spanner

import (
	"context"
	"hash/fnv"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
)

// eventRow is a row of LeadershipEvents as a query returns it.
type eventRow struct {
	ClusterID        spanner.NullString `spanner:"cluster_id"`
	Revision         spanner.NullInt64  `spanner:"revision"`
	Type             spanner.NullString `spanner:"type"`
	FencingToken     spanner.NullInt64  `spanner:"fencing_token"`
	LeaderID         spanner.NullString `spanner:"leader_id"`
	PreviousLeaderID spanner.NullString `spanner:"previous_leader_id"`
	RequestID        spanner.NullString `spanner:"request_id"`
	Actor            spanner.NullString `spanner:"actor"`
	Reason           spanner.NullString `spanner:"reason"`
	Detail           spanner.NullString `spanner:"detail"`
	CommittedAt      spanner.NullTime   `spanner:"committed_at"`
}

const eventColumnList = `v.cluster_id, v.revision, v.type, v.fencing_token, v.leader_id, v.previous_leader_id, v.request_id,
	v.actor, v.reason, v.detail, v.committed_at`

// event returns the row's event. The type is not checked, because a newer program may have written
// a type that this one does not know. The error is RecordCorrupt.
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
		Actor:            r.Actor.StringVal,
		Reason:           r.Reason.StringVal,
		Detail:           r.Detail.StringVal,
	}
	s.require(ev.Revision > 0 && ev.Type != "" && ev.Token >= 0 && ev.Token <= leadership.MaxToken,
		"it has an event with revision %d, type %q and fencing token %d", ev.Revision, ev.Type, ev.Token)
	if s.err != nil {
		return leadership.Event{}, rule.Corrupt(ev.Election, s.err)
	}
	return ev, nil
}

// eventColumns returns the values of a new row: not announced, with the commit timestamp.
func eventColumns(ev leadership.Event) map[string]any {
	return map[string]any{
		"cluster_id":         string(ev.Election),
		"revision":           int64(ev.Revision),
		"type":               string(ev.Type),
		"fencing_token":      int64(ev.Token),
		"leader_id":          nullText(string(ev.LeaderID)),
		"previous_leader_id": nullText(string(ev.PreviousLeaderID)),
		"request_id":         nullText(ev.RequestID),
		"actor":              nullText(ev.Actor),
		"reason":             nullText(ev.Reason),
		"detail":             nullText(ev.Detail),
		"committed_at":       spanner.CommitTimestamp,
		"shard":              shard(ev.Election),
		"pending":            true,
	}
}

// shards is the number of parts of the index by time. It may grow, and must never shrink: rows keep
// the shard they were written with.
const shards = 16

func shard(e leadership.Election) int64 {
	h := fnv.New32a()
	h.Write([]byte(e))
	return int64(h.Sum32() % shards)
}

const eventsSQL = `SELECT ` + eventColumnList + `
FROM LeadershipEvents AS v
WHERE v.cluster_id = @election AND v.revision > @after
ORDER BY v.revision LIMIT @limit`

// Events is one strong query.
func (s *Store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	statement := spanner.Statement{SQL: eventsSQL, Params: map[string]any{
		"election": string(e), "after": int64(after), "limit": int64(limit),
	}}
	rows, err := collect[eventRow](ctx, s, "events", quoted(e), statement)
	if err != nil {
		return nil, err
	}
	return decoded(rows)
}

// decoded are the events of the rows. The error has the code RecordCorrupt.
func decoded(rows []eventRow) ([]leadership.Event, error) {
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
