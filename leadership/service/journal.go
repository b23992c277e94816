package service

import (
	"context"

	"regent/leadership"
	"regent/leadership/rule"
)

// Journal stores the logs that leaders leave to their successors, next to the Store and in the same
// place: for each log a head, which guards it, and segments. It never touches the record of an
// election. Several processes may each have a Journal on the same data. Its errors are those of a
// Store: StoreUnavailable if nothing was done, OutcomeUnknown, RecordCorrupt.
//
// A log is never deleted, not even with its election. Texts are valid UTF-8 without NUL, and are
// stored unchanged.
type Journal interface {
	// Amend is the transaction that decides. It reads the head of the log, runs decide, and writes
	// the change, all or nothing, in isolation from every other Amend of that log. A log never
	// written has an empty head. decide may run more than once; it must be pure.
	//
	// It returns an error of decide unchanged, and otherwise the log as it now is. A handle may run
	// decide on the head that it wrote last, if the change is then written only while the log still
	// has that head. If the log has another, or if decide returns an error or no change, the handle
	// must read and decide again.
	Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error)

	// Look reads the head of a log, strongly: it sees every change that was reported as done before
	// the call.
	Look(ctx context.Context, id rule.LogID) (rule.Log, error)

	// Segments reads up to limit segments that have an entry after the index, in order: the first
	// has the next entry, if that was written and not trimmed. If there are any, it returns at
	// least one, but fewer than limit if together they exceed MaxReadBytes, or if some between them
	// were trimmed. If the next entry was trimmed, the first may be one that follows the snapshot.
	// It sees every change that was reported as done before the call.
	Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error)

	// Snapshot reads the snapshot of a log; a zero Segment if it has none.
	Snapshot(ctx context.Context, id rule.LogID) (rule.Segment, error)

	// Trim deletes segments that have no entry after the index, except for the snapshot. It is for
	// entries that a snapshot has replaced, which nothing reads any more; it may leave some.
	Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error

	// Logs reads up to limit names of logs that come after the given one, in the order of elections
	// and then kinds. LogID{} comes before all.
	Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error)
}
