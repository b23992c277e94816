package telemetry

import (
	"context"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

const (
	journalAmend    storeOp = "amend"
	journalLook     storeOp = "look"
	journalSegments storeOp = "segments"
	journalSnapshot storeOp = "snapshot"
	journalTrim     storeOp = "trim"
	journalLogs     storeOp = "logs"
)

// Journal returns the journal with its calls timed, as Store does.
func (m *Metrics) Journal(inner service.Journal) service.Journal {
	if m.idle {
		return inner
	}
	return &journal{inner, m}
}

type journal struct {
	service.Journal
	m *Metrics
}

func (j *journal) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	return timed(ctx, j.m, journalAmend, func(ctx context.Context) (rule.Log, error) { return j.Journal.Amend(ctx, id, decide) })
}

func (j *journal) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	return timed(ctx, j.m, journalLook, func(ctx context.Context) (rule.Log, error) { return j.Journal.Look(ctx, id) })
}

func (j *journal) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error) {
	return timed(ctx, j.m, journalSegments, func(ctx context.Context) ([]rule.Segment, error) { return j.Journal.Segments(ctx, id, after, limit) })
}

func (j *journal) Snapshot(ctx context.Context, id rule.LogID) (rule.Segment, error) {
	return timed(ctx, j.m, journalSnapshot, func(ctx context.Context) (rule.Segment, error) { return j.Journal.Snapshot(ctx, id) })
}

func (j *journal) Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error {
	ctx, ended := j.m.time(ctx, journalTrim)
	err := j.Journal.Trim(ctx, id, upTo)
	ended(err)
	return err
}

func (j *journal) Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error) {
	return timed(ctx, j.m, journalLogs, func(ctx context.Context) ([]rule.LogID, error) { return j.Journal.Logs(ctx, after, limit) })
}
