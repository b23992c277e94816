package spanner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// logSchema is the version of the rows of LeadershipLogs, and of their segments.
const logSchema = 1

// The tables of logs.
const (
	logsTable     = "LeadershipLogs"
	segmentsTable = "LeadershipLogSegments"
)

// snapshotPlace is where the snapshot of a log is kept, among its segments; each of the others is
// at its last index.
const snapshotPlace leadership.Index = 0

var _ service.Journal = (*Store)(nil)

// amendment is one run of an Amend's transaction.
type amendment struct {
	read   rule.Log
	change rule.LogChange
	answer error // returned to the caller unchanged: decide's error, or that the log is corrupt
}

// Amend is a read-write transaction: it reads the head by its key, and commits. If nothing is to be
// written the Commit is a Rollback.
func (s *Store) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return rule.Log{}, err
	}
	defer done()
	const op = "amend"
	var a amendment
	at, err := s.transact(ctx, op, nameOf(id), 0, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		a = amendment{} // the client may have run this before
		row, found, err := readHead(ctx, tx, op, id)
		if err != nil {
			return err
		}
		if a.read, a.answer = row.log(id, found); a.answer == nil {
			a.change, a.answer = decide(a.read)
		}
		return a.write(ctx, tx)
	})
	switch {
	case errors.Is(err, errRefused):
		return rule.Log{}, a.answer
	case errors.Is(err, errNothingToWrite):
		return a.read, nil
	case err != nil:
		return rule.Log{}, err
	}
	return rule.Log{ID: id, Text: a.change.Text, Body: a.change.Body, WrittenAt: at}, nil
}

// write adds the decided change to the Commit. Its errors are those of attempt.write.
func (a *amendment) write(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
	switch {
	case a.answer != nil:
		return errRefused
	case a.change.Text == "":
		return errNothingToWrite
	case ctx.Err() != nil:
		return ctx.Err()
	}
	id := a.read.ID
	mutations := []*spanner.Mutation{spanner.InsertOrUpdateMap(logsTable, map[string]any{
		"cluster_id": string(id.Election), "kind": string(id.Kind), "schema_version": logSchema,
		"text": a.change.Text, "body": a.change.Body, "written_at": spanner.CommitTimestamp,
	})}
	for _, segment := range a.change.Add {
		place := segment.Last
		if segment.First == 0 {
			place = snapshotPlace
		}
		at := spanner.CommitTimestamp
		if !segment.At.IsZero() {
			at = segment.At.Truncate(time.Microsecond)
		}
		mutations = append(mutations, spanner.InsertOrUpdateMap(segmentsTable, map[string]any{
			"cluster_id": string(id.Election), "kind": string(id.Kind), "place": int64(place),
			"first_index": int64(segment.First), "last_index": int64(segment.Last), "data": segment.Data, "committed_at": at,
		}))
	}
	return tx.BufferWrite(mutations)
}

// Look is one strong read by the log's key.
func (s *Store) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return rule.Log{}, err
	}
	defer done()
	const op = "log"
	row, found, err := readHead(ctx, s.client.Single(), op, id)
	if err != nil {
		return rule.Log{}, failure(ctx, op, nameOf(id), leadership.StoreUnavailable, err)
	}
	return row.log(id, found)
}

type headRow struct {
	SchemaVersion int64     `spanner:"schema_version"`
	Text          string    `spanner:"text"`
	Body          string    `spanner:"body"`
	WrittenAt     time.Time `spanner:"written_at"`
}

// log returns the head of the log; an empty one if no row was found. The error is RecordCorrupt.
func (r headRow) log(id rule.LogID, found bool) (rule.Log, error) {
	switch {
	case !found:
		return rule.Log{ID: id}, nil
	case r.SchemaVersion != logSchema:
		return rule.Log{}, corruptLog(id, fmt.Errorf("its schema_version is %d, and this program reads %d: use the version of regent that wrote it, or a newer one", r.SchemaVersion, logSchema))
	}
	return rule.Log{ID: id, Text: r.Text, Body: r.Body, WrittenAt: r.WrittenAt.UTC()}, nil
}

// keyReader is a transaction of either kind.
type keyReader interface {
	ReadRowWithOptions(ctx context.Context, table string, key spanner.Key, columns []string, opts *spanner.ReadOptions) (*spanner.Row, error)
}

// readHead reads the row of a log. Its errors are the client's own.
func readHead(ctx context.Context, tx keyReader, op string, id rule.LogID) (row headRow, found bool, err error) {
	columns := []string{"schema_version", "text", "body", "written_at"}
	r, err := tx.ReadRowWithOptions(ctx, logsTable, keyOf(id), columns, &spanner.ReadOptions{RequestTag: tag(op)})
	switch {
	case errors.Is(err, spanner.ErrRowNotFound):
		return headRow{}, false, nil
	case err != nil:
		return headRow{}, false, err
	}
	return row, true, r.ToStruct(&row)
}

func keyOf(id rule.LogID) spanner.Key { return spanner.Key{string(id.Election), string(id.Kind)} }

func placeKey(id rule.LogID, place leadership.Index) spanner.Key {
	return append(keyOf(id), int64(place))
}

func nameOf(id rule.LogID) string { return fmt.Sprintf("the %s of %q", id.Kind, id.Election) }

// corruptLog returns the error of a log of which a part cannot be decoded.
func corruptLog(id rule.LogID, why error) error {
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the %s of election %q cannot be read: %v", id.Kind, id.Election, why)}
}

// Segments is one strong read of a range of keys, cancelled once it has returned enough.
func (s *Store) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error) {
	if limit < 1 {
		return nil, nil
	}
	rest := spanner.KeyRange{Start: placeKey(id, max(after, snapshotPlace)), End: keyOf(id), Kind: spanner.OpenClosed}
	return s.segments(ctx, "segments", id, rest, limit)
}

// Snapshot is one strong read by key.
func (s *Store) Snapshot(ctx context.Context, id rule.LogID) (rule.Segment, error) {
	found, err := s.segments(ctx, "snapshot", id, placeKey(id, snapshotPlace), 1)
	if err != nil || len(found) == 0 {
		return rule.Segment{}, err
	}
	return found[0], nil
}

// segments reads up to limit segments of a log, strongly, and no more than MaxReadBytes of them,
// but at least one.
func (s *Store) segments(ctx context.Context, op string, id rule.LogID, keys spanner.KeySet, limit int) ([]rule.Segment, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	columns := []string{"place", "first_index", "last_index", "data", "committed_at"}
	rows := s.client.Single().ReadWithOptions(ctx, segmentsTable, keys, columns, &spanner.ReadOptions{Limit: limit, RequestTag: tag(op)})
	defer rows.Stop()
	var found []rule.Segment
	for size := 0; ; {
		var row segmentRow
		r, err := rows.Next()
		if err == nil {
			err = r.ToStruct(&row)
		}
		switch {
		case errors.Is(err, iterator.Done):
			return found, nil
		case err != nil:
			return nil, failure(ctx, op, nameOf(id), leadership.StoreUnavailable, err)
		}
		if size += len(row.Data); size > leadership.MaxReadBytes && len(found) > 0 {
			return found, nil
		}
		segment, err := row.segment(id)
		if err != nil {
			return nil, err
		}
		found = append(found, segment)
	}
}

type segmentRow struct {
	Place       int64     `spanner:"place"`
	FirstIndex  int64     `spanner:"first_index"`
	LastIndex   int64     `spanner:"last_index"`
	Data        string    `spanner:"data"`
	CommittedAt time.Time `spanner:"committed_at"`
}

// segment returns the row's segment. The error is RecordCorrupt.
func (r segmentRow) segment(id rule.LogID) (rule.Segment, error) {
	if r.Place != int64(snapshotPlace) && r.Place != r.LastIndex || (r.Place == int64(snapshotPlace)) != (r.FirstIndex == 0) {
		return rule.Segment{}, corruptLog(id, fmt.Errorf("the segment at place %d has the indices %d and %d", r.Place, r.FirstIndex, r.LastIndex))
	}
	return rule.Segment{
		First: leadership.Index(r.FirstIndex), Last: leadership.Index(r.LastIndex), Data: r.Data, At: r.CommittedAt.UTC(),
	}, nil
}

// Trim deletes a range of keys, by one mutation however many segments there are.
func (s *Store) Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if upTo <= snapshotPlace {
		return nil
	}
	old := spanner.KeyRange{Start: placeKey(id, snapshotPlace), End: placeKey(id, upTo), Kind: spanner.OpenClosed}
	_, err = s.transact(ctx, "trim", nameOf(id), 0, func(_ context.Context, tx *spanner.ReadWriteTransaction) error {
		return tx.BufferWrite([]*spanner.Mutation{spanner.Delete(segmentsTable, old)})
	})
	return err
}

const logsSQL = `SELECT l.cluster_id, l.kind FROM LeadershipLogs AS l
WHERE l.cluster_id > @election OR l.cluster_id = @election AND l.kind > @kind
ORDER BY l.cluster_id, l.kind LIMIT @limit`

// Logs is one strong query.
func (s *Store) Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error) {
	statement := spanner.Statement{SQL: logsSQL, Params: map[string]any{
		"election": string(after.Election), "kind": string(after.Kind), "limit": int64(max(limit, 0)),
	}}
	rows, err := collect[struct {
		ClusterID string `spanner:"cluster_id"`
		Kind      string `spanner:"kind"`
	}](ctx, s, "logs", "all", statement)
	if err != nil {
		return nil, err
	}
	logs := make([]rule.LogID, len(rows))
	for i, r := range rows {
		logs[i] = rule.LogID{Election: leadership.Election(r.ClusterID), Kind: rule.LogKind(r.Kind)}
	}
	return logs, nil
}
