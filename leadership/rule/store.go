package rule

import (
	"errors"
	"time"

	"regent/leadership"
)

// Expect is a hint to Update about the decision. It affects cost only, never the result. The zero
// value gives no hint.
type Expect struct {
	// Change says that the Update will most likely write. Without it a store whose transactions
	// lock what they read first decides on a read without a lock, and runs a transaction only if
	// there is something to write; with Change it runs the transaction at once.
	Change bool
	// Held is the lease for which the Update runs the rule Renew; nil for any other rule. A store
	// whose renewals need no read may run the rule on the record that the renewal's ticket or its
	// own memory holds, if it guards the write as a renewal is guarded. Then Snapshot.Now is no
	// later than the commit. It must write only a heartbeat without events in this way; for any
	// other change, and if the guard fails, it must read and decide again.
	Held *Renewal
}

// Listing is a part of the list of elections.
type Listing struct {
	Snapshots []Snapshot
	// Untrusted are the names, sorted, of records that cannot be trusted, as they are stored: even
	// names that no election can have.
	Untrusted []leadership.Election
	// TooNew are the names, sorted, of records that only a newer program may decide on.
	TooNew []leadership.Election
	// Next is the name to continue after; "" if no more follow. It may be set although none follow.
	Next leadership.Election
}

// Add adds the result of reading the election's record: a snapshot, or an error.
func (l *Listing) Add(e leadership.Election, s Snapshot, err error) {
	switch {
	case err == nil:
		l.Snapshots = append(l.Snapshots, s)
	case errors.Is(err, leadership.RecordTooNew):
		l.TooNew = append(l.TooNew, e)
	default:
		l.Untrusted = append(l.Untrusted, e)
	}
}

// Recent are the latest events of all elections.
type Recent struct {
	Events []leadership.Event
	// Now is the store's time of the read: Events has every event that was committed before Now
	// less the store's guard.
	Now time.Time
}

// How long a store keeps events.
const (
	DefaultHistory = 30 * 24 * time.Hour
	MinHistory     = time.Hour
	MaxHistory     = 876_000 * time.Hour // 100 years: adding it to an instant does not overflow
)

// ErrNotRenewed is the answer to a renewal if the store did not find the lease that it names:
// nothing was written. An Update with the rule Renew then renews the lease or says why not.
var ErrNotRenewed = errors.New("not renewed")

// ErrCallerLeft is wrapped, with StoreUnavailable, in the error of a call whose caller cancelled it
// while it waited in line. It is no failure of the store or the server.
var ErrCallerLeft = errors.New("caller cancelled")

// Renewed is the answer to one Renewal. It is kept small, because a batch has a hundred.
type Renewed struct {
	// Record is the election's record, except for HeartbeatAt. It may be shared, so it must not be
	// changed.
	Record      *Record
	HeartbeatAt time.Time // the record's HeartbeatAt after the renewal
	Now         time.Time // of the commit; Now, Guard and Ticket are as in Snapshot
	Guard       time.Duration
	Ticket      leadership.Ticket
	// Before is the end that the lease had; see Change.Before.
	Before time.Time
	// Err is nil if the heartbeat was written; otherwise ErrNotRenewed or an error as of the other
	// calls.
	Err error
}

// Renewed returns the answer to a renewal of a lease whose end was before. s is the election after
// the renewal.
func (s Snapshot) Renewed(before time.Time) Renewed {
	return Renewed{Record: &s.Record, HeartbeatAt: s.Record.HeartbeatAt, Now: s.Now, Guard: s.Guard, Ticket: s.Ticket, Before: before}
}

// Snapshot returns the election after the heartbeat. Err must be nil.
func (a *Renewed) Snapshot() Snapshot {
	s := Snapshot{Record: *a.Record, Now: a.Now, Guard: a.Guard, Ticket: a.Ticket}
	s.Record.HeartbeatAt = a.HeartbeatAt
	return s
}
