package service

import (
	"context"

	"regent/leadership"
	"regent/leadership/rule"
)

// Journal keeps what leaders leave behind for their successors, beside the Store, in the same
// place: for each log a head, which guards it, and segments. It never touches the record of an
// election. Several processes may have a Journal each on the same data. Its errors are those of a
// Store: StoreUnavailable if nothing was done, OutcomeUnknown, RecordCorrupt.
//
// A log is never deleted, not with its election either. Texts are valid UTF-8 without NUL, and are
// kept as they are.
type Journal interface {
	// Amend is the transaction that decides. It reads the head of the log, runs decide, and writes
	// the change, all or nothing, in isolation from every other Amend of that log. A log never
	// written has an empty head. decide may run more than once; it must be pure.
	//
	// It returns an error of decide as it is, and else the log as it now is. A handle may remember
	// the head that it wrote last and run decide on that, if the change is then written only while
	// the log still has that head. If it has another, or if decide has returned an error or no
	// change, the handle reads and decides anew.
	Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error)

	// Look reads the head of a log, strongly: it sees every change that was reported as done before
	// the call.
	Look(ctx context.Context, id rule.LogID) (rule.Log, error)

	// Segments reads up to limit segments that have an entry after the index, in their order: the
	// first has the next entry, if that was written and not trimmed. They are fewer, but at least
	// one if there is one, if they have more than MaxReadBytes together, or if some between them
	// were trimmed. If the next entry was trimmed, the first may be one that follows the snapshot.
	// All that was reported as done before the call is seen.
	Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error)

	// Snapshot reads the snapshot of a log; a zero Segment if it has none.
	Snapshot(ctx context.Context, id rule.LogID) (rule.Segment, error)

	// Trim deletes segments that have no entry after the index, the snapshot not among them: none
	// of them is read any more. It is for what a snapshot stands for; it may leave some.
	Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error

	// Logs reads up to limit names of logs that come after the given one, in the order of elections
	// and then kinds. LogID{} comes before all.
	Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error)
}

// ErrNoJournal answers calls about what a Ledger keeps, where there is none. It is lasting: as
// for a peer that the operator has not named, the request is wrong at this service.
var ErrNoJournal = &leadership.Error{
	Code:   leadership.InvalidArgument,
	Detail: "this service keeps nothing that leaders leave behind or are asked (checkpoints, journals, effects, proposals), and asking again does not help; its operator has to give it a store that does, as all stores of regent serve do (in Go: set instance.Config.Journal)",
}

// noJournal is the journal of a Ledger that has none.
type noJournal struct{ Journal }

func (noJournal) Amend(context.Context, rule.LogID, func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	return rule.Log{}, ErrNoJournal
}

func (noJournal) Look(context.Context, rule.LogID) (rule.Log, error) { return rule.Log{}, ErrNoJournal }

func (noJournal) Segments(context.Context, rule.LogID, leadership.Index, int) ([]rule.Segment, error) {
	return nil, ErrNoJournal
}

func (noJournal) Snapshot(context.Context, rule.LogID) (rule.Segment, error) {
	return rule.Segment{}, ErrNoJournal
}
