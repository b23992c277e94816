package rule

import (
	"errors"
	"time"

	"regent/leadership"
)

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
	Untrusted []leadership.Election
	// TooNew are the names, in their order, of records that only a newer program may decide on.
	TooNew []leadership.Election
	// Next is the name to go on after; "" if no more follow. It may be set although none follow.
	Next leadership.Election
}

// Add adds what reading the election's record gave: a snapshot, or an error.
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

// Recent is what happened lately in all elections.
type Recent struct {
	Events []leadership.Event
	// Now is the store's time of the read: every event that was committed before it, but for the
	// store's guard, is among Events.
	Now time.Time
}

// How long a store keeps events.
const (
	DefaultHistory = 30 * 24 * time.Hour
	MinHistory     = time.Hour
	MaxHistory     = 876_000 * time.Hour // 100 years: an instant so much later can be computed
)

// ErrNotRenewed is the answer to a renewal whose lease is no longer the one named, or not known to
// be: nothing was written. An Update with the rule Renew finds out why, or renews.
var ErrNotRenewed = errors.New("not renewed")

// ErrCallerLeft marks, beside StoreUnavailable, the error of a call that waited in line until its
// caller gave it up: no fault of the store, nor of the server.
var ErrCallerLeft = errors.New("caller cancelled")

// Renewed is the answer to one Renewal. It is small: a batch has a hundred.
type Renewed struct {
	// Record is the election's, but for HeartbeatAt. Others may have it, so it must not be changed.
	Record      *Record
	HeartbeatAt time.Time // the record's now
	Now         time.Time // of the commit; this and the next two are those of Snapshot
	Guard       time.Duration
	Ticket      leadership.Ticket
	// Before is the end the lease had; see Change.Before.
	Before time.Time
	// Err is nil if the heartbeat was written; else ErrNotRenewed or an error as the other calls
	// have it.
	Err error
}

// Renewed is the answer to a renewal of a lease with the end before. s is the election after it.
func (s Snapshot) Renewed(before time.Time) Renewed {
	return Renewed{Record: &s.Record, HeartbeatAt: s.Record.HeartbeatAt, Now: s.Now, Guard: s.Guard, Ticket: s.Ticket, Before: before}
}

// Snapshot is the election after the heartbeat. There must be no Err.
func (a *Renewed) Snapshot() Snapshot {
	s := Snapshot{Record: *a.Record, Now: a.Now, Guard: a.Guard, Ticket: a.Ticket}
	s.Record.HeartbeatAt = a.HeartbeatAt
	return s
}
