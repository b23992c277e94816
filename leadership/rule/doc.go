// Package rule has the rules of the protocol that package leadership specifies, and the record on
// which they decide. They are pure: a Snapshot and a request go in, a Change or an error comes out.
// They use no clock, no context and no lock, and a store may run them again.
//
// Acquire, Renew, Check, Expire, Retire, Lapse, Delegate, MakeChild, Carry and Raise are rules, and
// Apply runs the rule of any Command. OpenJournal and the other functions of a Log are the rules of
// the ledger.
//
// # How a record evolves
//
// In addition to the fields that stores need for their conditions, a record has two parts that
// stores only carry:
//
//   - Policy: what an operator configures for the election.
//   - Standing: the state of the election beside the lease.
//
// Only Codec encodes and decodes them, strictly. A program keeps members that it does not know and
// writes them back unchanged. Record.Needs is the version that a program must have to decide on the
// record; it is higher only while the record uses a feature that an older program must not ignore.
// An older program then refuses that election by name (RecordTooNew), lists only its name, and
// writes nothing to it. So a fleet of two versions works until a new feature is used. The other
// fields change with the store's schema version: a store refuses a record of a version that it does
// not know.
//
// A Change says what it writes: events, a heartbeat, both, or a quiet change of policy or standing.
package rule
