package leadership

import (
	"fmt"
	"time"
)

// State reports whether an election has a leader.
type State string

// The states that a reader sees. A deleted election is not read; it is NotFound.
const (
	Held   State = "held"
	Vacant State = "vacant"
)

// Lease is what callers may know of an election at one moment. It never holds a key.
type Lease struct {
	Election      Election
	State         State
	LeaderID      CandidateID // empty if vacant
	Token         Token       // of the leader or, if vacant, of the last one
	Revision      Revision
	LeaseDuration time.Duration // of the lease or, if vacant, what the next one gets unless it asks for another
	Metadata      Metadata      // of the leader
	Note          string        // of the leader's acquire

	// ExpiresIn is what is left of the lease, counted from ReadAt; zero if vacant.
	ExpiresIn time.Duration
	// RenewIn is when the leader should renew next, counted from ReadAt: a third of the lease after
	// its last heartbeat.
	RenewIn time.Duration
	// LockedFor is how long it takes until a lease can be granted, counted from ReadAt, though the
	// election is vacant.
	LockedFor time.Duration
	// Lapsed says that the lease has run out and that its end is not recorded yet: there is no
	// event of it, and no new revision.
	Lapsed bool

	// Instants of the store's clock, for people. They must not be compared with any other clock.
	AcquiredAt, LastHeartbeat, LeaseExpiration, ReadAt time.Time
	// CreatedAt is so, too, in seconds since 1970; 0 if that is not known. It is not on the wire.
	CreatedAt int64
	// VacantSince is when the last lease ended or, if that was later, the vacant election was
	// configured. It is not on the wire.
	VacantSince time.Time

	// EndsBy is the instant that no renewal passes, zero if there is none, and EndsBecause why.
	// LeaseExpiration and ExpiresIn obey it already. EndsIn is what is left until then.
	EndsBy      time.Time
	EndsBecause EndReason
	EndsIn      time.Duration

	// Report is what the leader said last of its work, at ReportedAt, which was ReportAge before
	// ReadAt.
	Report     ReportText
	ReportedAt time.Time
	ReportAge  time.Duration

	Config  Config
	Deleted bool
	// Seat is the number of the seat that the election is; 0 if it is none. See Config.Seats.
	Seat int
	// Configured, in the answer to CheckToken, says that an operator has configured the election.
	// Others are made by candidates: by the first acquire, or as a part of a task.
	Configured bool

	// DrawSecret and LastLeader are of the Draw of the next term. They are for instances, which
	// rank the candidates in their lines: no caller may be shown the secret.
	DrawSecret string
	LastLeader CandidateID
	// Challenger is the better candidate for which the present term ends.
	Challenger CandidateID
	// Succession is the hand-over that is under way.
	Succession Succession
	// NotServing says that the leader has not said that it serves, and the policy wants it to.
	NotServing bool
	// Parent is the lease that this one stands on.
	Parent Parent
	// Parked is why no candidate is granted until operators approve; see SeriesPolicy. "" if that
	// is not so.
	Parked string
	// PreviousEnd is why the last term ended; for what a leader inherits.
	PreviousEnd EndReason

	// Overrides are the standing orders, in the answer to an order and to who asks for them, and
	// always of HaltsElection.
	Overrides Overrides

	// Ticket is in the answer to the leader's own acquire and renewal, if the store needs one: the
	// leader sends it with its next renewal.
	Ticket Ticket
	// Statement is in an answer to the leader that asked for it, and that the server could sign: a
	// compact JWS, which others verify without a server. See package statement. StatementError is
	// why there is none.
	Statement, StatementError string
}

// Ticket is what a store gives a leader to bring along to its next renewal, so that any instance
// can renew without a read: an opaque text of at most MaxTicketBytes. It proves nothing; the key
// and the token are checked as they are without it. It is of use for one renewal, and only if the
// record has not changed meanwhile. A renewal with any other, or without one, costs the store a
// read and nothing else.
type Ticket string

// MaxTicketBytes is the most that a ticket may have.
const MaxTicketBytes = 1 << 10

// Validate returns an error unless each part is within its bounds.
func (t Ticket) Validate() error {
	if len(t) > MaxTicketBytes {
		return fmt.Errorf("a ticket has at most %d bytes, and this one has %d; send the one of the last reply as it is, or none", MaxTicketBytes, len(t))
	}
	return nil
}

// Limits and defaults of durations.
const (
	MinLeaseDuration     = time.Second
	MaxLeaseDuration     = 24 * time.Hour
	DefaultLeaseDuration = 30 * time.Second
	MaxLockDelay         = 24 * time.Hour
	MinRetireAfter       = time.Hour
	MaxRetireAfter       = 10 * 365 * 24 * time.Hour
)

// EndReason says why a lease ends at Record.EndsBy. Programs accept reasons that they do not know.
type EndReason string

// The reasons for an EndsBy.
const (
	EndsMaxTerm  EndReason = "maxTerm"  // the policy limits the term
	EndsApproval EndReason = "approval" // the leader needs a new approval by an operator
	EndsStuck    EndReason = "stuck"    // the leader has reported no progress
	EndsEvicted  EndReason = "evicted"  // an operator has evicted the leader
	EndsDrained  EndReason = "drained"  // an operator has paused the election
	EndsHandOver EndReason = "handOver" // the lease passes to a named successor
	EndsParent   EndReason = "parent"   // the lease that this one stands on ends
	EndsSeats    EndReason = "seats"    // the election has fewer seats now, and this one is none of them
)

// How a term has ended that did not end at its EndsBy, beside the reasons above.
const (
	EndsReleased EndReason = "released"
	EndsExpired  EndReason = "expired" // it was not renewed in time
	EndsDeposed  EndReason = "deposed"
	EndsDeleted  EndReason = "deleted"
	EndsUnlocked EndReason = "unlocked"
	EndsEpoch    EndReason = "epoch" // the same leader goes on under the next token
)
