package leadership

import (
	"context"
	"errors"
	"time"
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
// A store carries Record.Policy and Record.Standing as the text that Codec makes of them. It
// decides by Codec.Decide, and writes the whole record whatever kind the Change is of.
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
	Update(ctx context.Context, e Election, x Expect, decide func(Snapshot) (Change, error)) (Snapshot, error)

	// Get reads one election, strongly: it sees every change that was reported as done before the
	// call.
	Get(ctx context.Context, e Election) (Snapshot, error)

	// List reads up to limit elections whose names begin with prefix and come after the given name,
	// in the order of their names, each as it was at some moment during the call. Tombstones are
	// among them. Of a record that cannot be trusted, or that needs a newer program, there is only
	// the name. Not every store holds records against their history here, as Get does, or finds a
	// history without a record.
	List(ctx context.Context, prefix string, after Election, limit int) (Listing, error)

	// Held reads up to limit elections that have a leader, whether or not its lease has ended, each
	// as it was at some moment during the call, in an order of the store's own. after is "", or
	// Next of the page before, which is no name here. An election that has the same leader while
	// all pages are read is on one of them. Of a record that cannot be trusted, or that needs a
	// newer program, there is at most the name. It costs what it finds, however many elections
	// there are.
	Held(ctx context.Context, after Election, limit int) (Listing, error)

	// Retirable returns up to limit names of elections whose Record.RetireAt has come by the given
	// instant, those first that are due longest. The caller decides by the rule Retire. It costs
	// what it finds, however many elections there are.
	Retirable(ctx context.Context, at time.Time, limit int) ([]Election, error)

	// Renew sends a heartbeat for each of the leases, at most MaxBatch, no election twice, without
	// a decision of its own: it renews a lease if and only if it is still exactly the one named,
	// its end has not come, and this program may decide on it. It returns an answer for each, in
	// order; one fails without the others.
	//
	// A store that would have to read first, unless this handle remembers the lease, may answer
	// ErrNotRenewed instead, and give a Ticket with every heartbeat, of Update and of Renew: with
	// the ticket of the last heartbeat every handle renews. A ticket never decides: with any other
	// text the answer is that of a renewal without one.
	Renew(ctx context.Context, leases []Renewal) []Renewed

	// Events reads up to limit events of the election with a revision greater than after, in the
	// order of their revisions. An election never seen has none. A store keeps an event for as long
	// as it was told to keep history; older ones may be missing. The newest event of an election
	// counts for as long as it is the newest: no record is ever without its witness (see Verify).
	Events(ctx context.Context, e Election, after Revision, limit int) ([]Event, error)

	// Since reads the events of all elections that were committed after the instant, in the order
	// of At, then election, then revision. It gives all of them or none: if there are more than
	// limit, or if some may no longer be kept, it returns an error with the code HistoryCompacted.
	Since(ctx context.Context, after time.Time, limit int) (Recent, error)

	// Unannounced reads up to limit events that are not yet marked as announced; those of one
	// election in the order of their revisions and without a gap between them. e selects one
	// election; "" is for all.
	Unannounced(ctx context.Context, e Election, limit int) ([]Event, error)

	// MarkAnnounced marks events as announced, at most MaxBatch. To mark one again, or one that
	// never was, does nothing.
	MarkAnnounced(ctx context.Context, ids []EventID) error

	// Close releases what the handle holds. Calls under way are finished first or fail with
	// StoreUnavailable, as do later ones.
	Close() error
}

// Expect is what a caller of Update knows of the decision beforehand. It is about cost alone. The
// zero value: nothing.
type Expect struct {
	// Change says that the Update will most likely write. A store whose transactions lock what they
	// read answers what needs no write by a read without a lock, and runs a transaction only if
	// there is something to write; with Change it runs the transaction at once.
	Change bool
	// Held is the lease for which the Update runs the rule Renew; nil for any other rule. A store
	// whose renewals need no read may let the rule decide on what the renewal's ticket, or its own
	// memory, has of the record, under the guard of a renewal. Then Snapshot.Now is no later than
	// the commit. The store must take only a heartbeat without events so, and read and decide again
	// otherwise, or if the guard fails.
	Held *Renewal
}

// Listing is a part of the list of elections.
type Listing struct {
	Snapshots []Snapshot
	// Untrusted are the names, in their order, of records that cannot be trusted, as they are
	// stored: also those that no election can have.
	Untrusted []Election
	// TooNew are the names, in their order, of records that only a newer program may decide on.
	TooNew []Election
	// Next is the name to go on after; "" if no more follow. It may be set although none follow.
	Next Election
}

// Add adds what reading the election's record gave: a snapshot, or an error.
func (l *Listing) Add(e Election, s Snapshot, err error) {
	switch {
	case err == nil:
		l.Snapshots = append(l.Snapshots, s)
	case errors.Is(err, RecordTooNew):
		l.TooNew = append(l.TooNew, e)
	default:
		l.Untrusted = append(l.Untrusted, e)
	}
}

// Recent is what happened lately in all elections.
type Recent struct {
	Events []Event
	// Now is the store's time of the read: every event that was committed before it, but for the
	// store's guard, is among Events.
	Now time.Time
}

// How long a store keeps events.
const (
	DefaultHistory = 30 * 24 * time.Hour
	MinHistory     = time.Hour
)

// MaxBatch is how many elections one batch may have. Firestore takes 500 writes in one request.
const MaxBatch = 500

// ErrNotRenewed is the answer to a renewal whose lease is no longer the one named, or not known to
// be: nothing was written. An Update with the rule Renew finds out why, or renews.
var ErrNotRenewed = errors.New("not renewed")

// ErrCallerLeft marks, beside StoreUnavailable, the error of a call that waited in line until its
// caller gave it up: no fault of the store, nor of the server.
var ErrCallerLeft = errors.New("caller cancelled")

// Renewed is the answer to one Renewal.
type Renewed struct {
	// Snapshot is the election after the heartbeat, Now the time of its commit.
	Snapshot Snapshot
	// Before is the end the lease had; see Change.Before.
	Before time.Time
	// Err is nil if the heartbeat was written; else ErrNotRenewed or an error as the other calls
	// have it.
	Err error
}
