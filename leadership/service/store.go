package service

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Store keeps the records and the history of elections. Several processes may have a Store each on
// the same data; what this contract says holds across all of them.
//
// Consistency. A change that was reported as done is seen by every call that starts later, through
// any handle, and is never lost. The store's time, Snapshot.Now, comes from the store's own clock.
// Of two calls, one begun after the other had returned, the later never sees an earlier time, but
// for Snapshot.Guard.
//
// Errors. A call that did nothing returns an error with the code StoreUnavailable, also when ctx
// ended before anything could be changed. A call that may or may not have changed something returns
// OutcomeUnknown. A record that is unreadable, of an unknown schema, inconsistent or behind its own
// history (see Verify) gives RecordCorrupt, one that needs a newer program RecordTooNew; neither is
// changed. Where ctx was the cause, errors.Is also finds ctx's error. All methods may be called at
// the same time.
//
// A store keeps Record.Policy and Record.Standing in the text form of Codec. It decides by
// Codec.Decide, and writes the whole record whatever the kind of the Change; in Renew it decides by
// Record.Heartbeat, and writes only the heartbeat.
type Store interface {
	// Update is the transaction that decides. It reads the election's record, runs decide, and
	// writes the Change and its events, all or nothing, in isolation from every other Update and
	// Renew of that election. An election never seen has a zero Record but for its name. Update
	// sets Event.At and, as Change.Committed does, Record.HeartbeatAt and Record.AcquiredAt to the
	// time of the commit.
	//
	// It returns the record as it now is, with Now the time of the commit (of the read, if nothing
	// was written). It returns an error of decide as it is, and writes nothing then, nor if the
	// Change is not one that Change allows. decide may run more than once; it must be pure.
	Update(ctx context.Context, e leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error)

	// Get reads one election, strongly: it sees every change that was reported as done before the
	// call.
	Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error)

	// List reads up to limit elections whose names begin with prefix and come after the given name,
	// in the order of their names, each as it was at some moment during the call. Tombstones are
	// among them. Of a record that cannot be trusted, or that needs a newer program, there is only
	// the name. Not every store holds records against their history here, as Get does, or finds a
	// history without a record.
	List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error)

	// Held reads up to limit elections that have a leader, whether or not its lease has ended, each
	// as it was at some moment during the call, in an order of the store's own. after is "", or
	// Next of the page before, which is no name here. An election that has the same leader while
	// all pages are read is on one of them. Of a record that cannot be trusted, or that needs a
	// newer program, there is at most the name. It costs what it finds, however many elections
	// there are.
	Held(ctx context.Context, after leadership.Election, limit int) (rule.Listing, error)

	// Retirable returns up to limit names of elections whose Record.DueAt has come by the given
	// instant, those first that are due longest. The caller decides by the rule Retire, or tells
	// the seats. It costs what it finds, however many elections there are.
	Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error)

	// Renew sends a heartbeat for each of the leases, at most MaxBatch, no election twice, without
	// a decision of its own: it renews a lease if and only if it is still exactly the one named,
	// its end has not come, and this program may decide on it. It returns an answer for each, in
	// order; one fails without the others.
	//
	// A store that would have to read first, unless this handle remembers the lease, may answer
	// ErrNotRenewed instead, and give a Ticket with every heartbeat, of Update and of Renew: with
	// the ticket of the last heartbeat every handle renews. A ticket never decides: with any other
	// text the answer is that of a renewal without one.
	Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed

	// Events reads up to limit events of the election with a revision greater than after, in the
	// order of their revisions. An election never seen has none. A store keeps an event for as long
	// as it was told to keep history; older ones may be missing. The newest event of an election
	// counts for as long as it is the newest: no record is ever without its witness (see Verify).
	Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error)

	// Since reads the events of all elections that were committed after the instant, in the order
	// of At, then election, then revision. It gives all of them or none: if there are more than
	// limit, or if some may no longer be kept, it returns an error with the code HistoryCompacted.
	Since(ctx context.Context, after time.Time, limit int) (rule.Recent, error)

	// Unannounced reads up to limit events that are not yet marked as announced; those of one
	// election in the order of their revisions and without a gap between them. e selects one
	// election; "" is for all.
	Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error)

	// MarkAnnounced marks events as announced, at most MaxBatch. To mark one again, or one that
	// never was, does nothing.
	MarkAnnounced(ctx context.Context, ids []leadership.EventID) error

	// Close releases what the handle holds. Calls under way are finished first or fail with
	// StoreUnavailable, as do later ones.
	Close() error
}
