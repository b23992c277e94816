package spanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
)

// pendingSQL reads the outbox in the order of its index. The emulator does not see that an index
// without NULLs is enough here, and needs the second hint; Cloud Spanner ignores it.
const pendingSQL = `SELECT ` + eventColumnList + `
FROM LeadershipEvents@{FORCE_INDEX=LeadershipEventsPending, spanner_emulator.disable_query_null_filtered_index_check=true} AS v
WHERE v.pending IS NOT NULL AND v.cluster_id >= @first AND v.cluster_id <= @last
ORDER BY v.cluster_id, v.revision LIMIT @limit`

// latelySQL is pendingSQL for events that were committed at an instant or later: in each shard it
// reads the end of the index by time, and each event there by its key.
const latelySQL = `SELECT ` + eventColumnList + `
FROM LeadershipEvents@{FORCE_INDEX=LeadershipEventsByTime} AS v
WHERE v.shard IN UNNEST(@shards) AND v.committed_at >= @since AND v.pending IS NOT NULL AND v.cluster_id >= @first AND v.cluster_id <= @last
ORDER BY v.cluster_id, v.revision LIMIT @limit`

// lastRune sorts after every character of an election's name.
const lastRune = "~"

// When the whole outbox is looked at, after a look at all of it and after one that has failed.
const (
	wholeEvery = time.Hour
	wholeAgain = 5 * time.Minute
)

// looks is the progress of a handle's looks into the outbox of all elections. The index of events
// to be announced keeps entries of announced events until Spanner compacts it, for up to a week,
// and a look at the whole index scans all of them. So a handle mostly looks at the end of the index
// by time, from which Spanner removes nothing: at the events committed since its last look, or
// since the oldest event that waited then. (The timestamp of a look is later than every commit that
// it has seen, and earlier than every other.)
type looks struct {
	mu    sync.Mutex // guards all below
	since time.Time  // all events committed before are announced, according to the last whole look
	whole time.Time  // when to look at the whole index again
}

// due reports whether to look at the whole index at that time. If so, it plans the next such look
// as after a failure.
func (l *looks) due(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.Before(l.whole) {
		return false
	}
	l.whole = at.Add(wholeAgain)
	return true
}

func (l *looks) from() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// found notes the result of a look.
func (l *looks) found(o outbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case o.since.IsZero() && o.all:
		l.since, l.whole = o.oldest, o.at.Add(wholeEvery)
	case o.since.IsZero():
		l.whole = time.Time{}
	case o.all && o.since.Equal(l.since): // otherwise a look at the whole index has moved it meanwhile
		l.since = o.oldest
	}
}

// Unannounced is one strong query, and another after a page with an event that cannot be decoded;
// of all elections, once an hour and while more wait than the limit, it is one more. Such an event
// holds up the later ones of its election, which must not overtake it, but not other elections. It
// is reported as RecordCorrupt once there is nothing else to announce.
func (s *Store) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	left := outbox{first: string(e), last: string(e)}
	if e == "" {
		left = outbox{since: s.looks.from(), last: lastRune}
	}
	err = s.gather(ctx, &left, limit)
	if err == nil && e == "" {
		if s.looks.due(left.at) {
			left = outbox{last: lastRune}
			err = s.gather(ctx, &left, limit)
		}
		if err == nil {
			s.looks.found(left)
		}
	}
	if err != nil {
		return nil, failure(ctx, "unannounced", "events", leadership.StoreUnavailable, err)
	}
	if len(left.events) == 0 {
		return nil, left.corrupt
	}
	return left.events, nil
}

// gather reads up to limit events. Its errors are the client's own.
func (s *Store) gather(ctx context.Context, o *outbox, limit int) error {
	for len(o.events) < limit && !o.all {
		page, tx := limit-len(o.events), s.client.Single()
		rows, err := query[eventRow](ctx, tx, "unannounced", o.next(page))
		if err == nil && o.at.IsZero() {
			o.at, err = tx.Timestamp()
			o.oldest = o.at
		}
		if err != nil {
			return err
		}
		o.add(rows)
		o.all = len(rows) < page
	}
	return nil
}

// outbox gathers events that are to be announced, in the order of their keys. It takes no
// election's events from two pages: another instance may announce between the queries and leave a
// gap.
type outbox struct {
	since       time.Time // only events committed then or later; zero: all
	events      []leadership.Event
	first, last string    // the range of elections still to be read
	at          time.Time // the timestamp of the first page
	oldest      time.Time // when the oldest waiting event was committed, or at if that is earlier
	all         bool      // there are no more events
	blocked     string    // the last election with an event that cannot be decoded
	corrupt     error     // the first such event
}

// next returns the query of the next page.
func (o *outbox) next(limit int) spanner.Statement {
	params := map[string]any{"first": o.first, "last": o.last, "limit": int64(limit)}
	if o.since.IsZero() {
		return spanner.Statement{SQL: pendingSQL, Params: params}
	}
	params["since"], params["shards"] = o.since, allShards()
	return spanner.Statement{SQL: latelySQL, Params: params}
}

func (o *outbox) add(rows []eventRow) {
	for _, r := range rows {
		election := r.ClusterID.StringVal
		o.first = election + "\x00" // the next possible name
		if r.CommittedAt.Time.Before(o.oldest) {
			o.oldest = r.CommittedAt.Time
		}
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
	keys := make([]spanner.KeySet, len(ids))
	for i, id := range ids {
		keys[i] = spanner.Key{string(id.Election), int64(id.Revision)}
	}
	_, err = s.transact(ctx, "announced", fmt.Sprintf("%d events", len(ids)), 0, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		var marks []*spanner.Mutation
		options := &spanner.ReadOptions{RequestTag: tag("announced")}
		rows := tx.ReadWithOptions(ctx, "LeadershipEvents", spanner.KeySets(keys...), []string{"cluster_id", "revision", "pending"}, options)
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
