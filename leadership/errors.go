package leadership

import (
	"fmt"
	"time"
)

// Code is the stable code of an error. It is an error itself, so that
//
//	errors.Is(err, leadership.LeaseLost)
//
// holds for every error that has the code, on the server and, across the wire, in a client.
type Code string

// The codes of the protocol. The REST API adds those that only a transport can have.
const (
	InvalidArgument  Code = "INVALID_ARGUMENT"  // the request itself is wrong; asking again will not help
	NotFound         Code = "NOT_FOUND"         // the election was never seen, or is deleted
	LeaseHeld        Code = "LEASE_HELD"        // another candidate leads, or no grant is possible yet
	LeaseLost        Code = "LEASE_LOST"        // the caller does not lead, or no longer: stop now
	TokenStale       Code = "TOKEN_STALE"       // the token is not that of the present leader
	ElectionDeleted  Code = "ELECTION_DELETED"  // the election has no leader until an operator configures it anew
	HistoryCompacted Code = "HISTORY_COMPACTED" // the events asked for are no longer kept
	RevisionMismatch Code = "REVISION_MISMATCH" // the election has changed since the caller looked
	RecordCorrupt    Code = "RECORD_CORRUPT"    // the store's record cannot be trusted; nothing is granted on it
	LimitExceeded    Code = "LIMIT_EXCEEDED"    // there is no room for more; end something first
	RecordTooNew     Code = "RECORD_TOO_NEW"    // the record needs a newer program; nothing was done; try again until your own deadline
	StoreUnavailable Code = "STORE_UNAVAILABLE" // nothing was done; try again until your own deadline
	NotEligible      Code = "NOT_ELIGIBLE"      // the candidate lacks what the policy requires; waiting helps only if there is a RetryAfter
	NotReady         Code = "NOT_READY"         // the leader has not said that it serves, or its successor that it is ready
	DepthExceeded    Code = "DEPTH_EXCEEDED"    // the election is as deep in the tree as its limits allow
	IndexMismatch    Code = "INDEX_MISMATCH"    // the journal has entries that the caller does not know of
	PayloadTooLarge  Code = "PAYLOAD_TOO_LARGE" // the data is larger than may be kept; put it elsewhere, and send its uri
	ReadOnly         Code = "READ_ONLY"         // too few members of the electorate are present: do not write
	OutcomeUnknown   Code = "OUTCOME_UNKNOWN"   // the call may have been done; repeat it to find out
)

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Reason says why a lease was not granted or was lost. It accompanies LeaseHeld and LeaseLost.
type Reason string

// The reasons of LeaseHeld.
const (
	ReasonHeld        Reason = "HELD"              // another candidate leads
	ReasonIncarnation Reason = "OTHER_INCARNATION" // the same candidate leads, with another key
	ReasonLockDelay   Reason = "LOCK_DELAY"        // the last lease ended without a release, and its lock delay, or the store's guard, runs
	ReasonPaused      Reason = "PAUSED"            // an operator has paused the election
	ReasonHalted      Reason = "HALTED"            // an operator has halted all elections of a pattern
	ReasonBanned      Reason = "BANNED"            // an operator, or the policy after a trip, has banned the candidate
	ReasonAssigned    Reason = "ASSIGNED"          // an operator has assigned the election to another candidate
	ReasonApproval    Reason = "APPROVAL"          // the last term ended for want of an approval, and there is none yet
	ReasonSeats       Reason = "SEATS"             // the election now has fewer seats, and this is none of them
	ReasonParked      Reason = "PARKED"            // the last terms have exceeded SeriesPolicy, and there is no approval yet
	ReasonBallot      Reason = "BALLOT"            // bids are being collected, and the candidate's is the best so far
	ReasonOutranked   Reason = "OUTRANKED"         // better candidates have bid
	ReasonQuorum      Reason = "QUORUM"            // too few members of the electorate are present
	ReasonParent      Reason = "PARENT"            // the election's parent has no leader, or one whose lease is about to end
	ReasonWitness     Reason = "WITNESS"           // the candidate is a witness, which never leads
)

// The reasons of LeaseLost, which mostly has none.
const (
	ReasonEpoch   Reason = "EPOCH"   // the caller still leads, with a later token: acquire again with the same key
	ReasonDeposed Reason = "DEPOSED" // the policy has ended the caller's term
)

// Further reasons of an Explanation.
const (
	ReasonProbation Reason = "PROBATION"  // the candidate has tripped before, so its leases are short
	ReasonInLine    Reason = "IN_LINE"    // the candidate waits behind others
	ReasonNotAsking Reason = "NOT_ASKING" // the candidate does not wait for the lease at this instance
	ReasonRights    Reason = "RIGHTS"     // the server's access file does not let the candidate lead
)

// Error is a refusal with the facts that the caller needs to act on it.
type Error struct {
	Code       Code
	Detail     string        // a sentence for a person: the problem, and what to do
	Field      string        // with InvalidArgument: the field that is wrong, as the API spells it
	Reason     Reason        // with LeaseHeld; with LeaseLost if there is one
	Cause      *Cause        // the order or policy behind the Reason, if there is one
	RetryAfter time.Duration // after which asking again may help; zero if unknown
	Lease      *Lease        // the election as it was found, where that helps
	Oldest     Revision      // with HistoryCompacted of one election: the oldest revision that can still be read
	Index      Index         // with IndexMismatch: of the journal's last entry; with HistoryCompacted of a journal: of its snapshot
	Generation Token         // with HistoryCompacted of a journal: see JournalHead
}

// Error returns the code and the sentence.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Detail) }

// Unwrap lets errors.Is find the code.
func (e *Error) Unwrap() error { return e.Code }

// Compacted returns the error for reading history that is no longer kept. oldest is the first
// revision that is.
func Compacted(e Election, oldest Revision) error {
	return &Error{Code: HistoryCompacted, Oldest: oldest, Detail: fmt.Sprintf(
		"the history of election %q is kept from revision %d; read the election as it is now, and go on from its revision, or ask for what comes after %d", e, oldest, oldest-1)}
}

// Invalid returns an InvalidArgument error for a field of a request.
func Invalid(field string, err error) error {
	return &Error{Code: InvalidArgument, Field: field, Detail: err.Error()}
}
