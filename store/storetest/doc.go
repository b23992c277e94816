// Package storetest is the one suite that every store has to pass.
//
// RunStore tests each sentence of a Store's contract, and RunJournal those of its Journal.
// RunProtocol tests, with a Service on a store, the parts of the protocol that a store can break,
// and RunProtocolOverHTTP the same through HTTP. The decisions of rules are tested in package rule.
// A new backend needs a Harness of a few lines. A failing case quotes the rule that was broken.
package storetest

import (
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// History is for how long the stores of a Backing keep events: longer than any case lets pass that
// is not about that.
const History = 24 * time.Hour

// Backing is fresh backing data of a store: a file, a database, a project. Nothing else uses it.
type Backing struct {
	// Open returns one more handle on the data, independent of the others as far as the store
	// allows, that keeps events for History. The backing closes it when the test ends.
	Open func(t testing.TB) service.Store

	// OpenAs is Open for another version of the program.
	OpenAs func(t testing.TB, c rule.Codec) service.Store

	// Exclusive says that the data can be open to one version only at a time.
	Exclusive bool

	// Far says that a call crosses the network, so that the short form runs only a part of the long
	// tables.
	Far bool

	// Advance lets the given time pass for every lease, every lock and every event in the data:
	// afterwards they are that much older by the store's clock, but for the times that events tell.
	// A store whose clock cannot be moved makes what it keeps older instead. No call may be under
	// way.
	Advance func(t testing.TB, d time.Duration)

	// Compact deletes the events that the store's deletion policy would have deleted by now, by the
	// same column or field: no emulator does it. nil if the store itself deletes old events as it
	// writes.
	Compact func(t testing.TB)

	// Damage damages the record of an election, as another program or a bad restore would.
	Damage func(t testing.TB, e leadership.Election, d Damage)
}

// Harness makes a fresh backing for each case.
type Harness func(t testing.TB) Backing

// Damage is a way in which a record can be damaged.
type Damage string

// The damages that every store must notice.
const (
	MissingField  Damage = "a field is missing"
	WrongType     Damage = "a field has the wrong type"
	UnknownSchema Damage = "the schema version is unknown"
	TokenBehind   Damage = "the token is below the history's"
	RecordGone    Damage = "the record is gone and its history is not"
	LeaderNoLease Damage = "there is a leader and no lease"
	FutureBeat    Damage = "the last heartbeat lies in the future"
)

// Damages returns all kinds of Damage.
var Damages = []Damage{MissingField, WrongType, UnknownSchema, TokenBehind, RecordGone, LeaderNoLease, FutureBeat}
