package telemetry

import (
	"context"

	"regent/leadership"
)

// The calls of a journal.
const (
	journalAmend    storeOp = "amend"
	journalLook     storeOp = "look"
	journalSegments storeOp = "segments"
	journalSnapshot storeOp = "snapshot"
	journalTrim     storeOp = "trim"
	journalLogs     storeOp = "logs"
)

// Journal returns the journal with its calls timed, as Store does. nil stays nil.
func (m *Metrics) Journal(inner leadership.Journal) leadership.Journal {
	if m.idle || inner == nil {
		return inner
	}
	return &journal{inner, m}
}

type journal struct {
	leadership.Journal
	m *Metrics
}

// Amend implements leadership.Journal.
func (j *journal) Amend(ctx context.Context, id leadership.LogID, decide func(leadership.Log) (leadership.LogChange, error)) (leadership.Log, error) {
	ctx, ended := j.m.time(ctx, journalAmend)
	log, err := j.Journal.Amend(ctx, id, decide)
	ended(err)
	return log, err
}

// Look implements leadership.Journal.
func (j *journal) Look(ctx context.Context, id leadership.LogID) (leadership.Log, error) {
	ctx, ended := j.m.time(ctx, journalLook)
	log, err := j.Journal.Look(ctx, id)
	ended(err)
	return log, err
}

// Segments implements leadership.Journal.
func (j *journal) Segments(ctx context.Context, id leadership.LogID, after leadership.Index, limit int) ([]leadership.Segment, error) {
	ctx, ended := j.m.time(ctx, journalSegments)
	segments, err := j.Journal.Segments(ctx, id, after, limit)
	ended(err)
	return segments, err
}

// Snapshot implements leadership.Journal.
func (j *journal) Snapshot(ctx context.Context, id leadership.LogID) (leadership.Segment, error) {
	ctx, ended := j.m.time(ctx, journalSnapshot)
	segment, err := j.Journal.Snapshot(ctx, id)
	ended(err)
	return segment, err
}

// Trim implements leadership.Journal.
func (j *journal) Trim(ctx context.Context, id leadership.LogID, upTo leadership.Index) error {
	ctx, ended := j.m.time(ctx, journalTrim)
	err := j.Journal.Trim(ctx, id, upTo)
	ended(err)
	return err
}

// Logs implements leadership.Journal.
func (j *journal) Logs(ctx context.Context, after leadership.LogID, limit int) ([]leadership.LogID, error) {
	ctx, ended := j.m.time(ctx, journalLogs)
	logs, err := j.Journal.Logs(ctx, after, limit)
	ended(err)
	return logs, err
}
