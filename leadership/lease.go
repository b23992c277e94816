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

// Lease is an election at one moment, as callers may see it. It never holds a key.
type Lease struct {
	Election      Election
	State         State
	LeaderID      CandidateID // empty if vacant
	Token         Token       // of the leader or, if vacant, of the last one
	Revision      Revision
	LeaseDuration time.Duration // of the lease or, if vacant, of the next one unless the candidate asks for another
	Metadata      Metadata      // of the leader
	Note          string        // of the leader's acquire

	// ExpiresIn is the time from ReadAt until the lease ends; zero if vacant.
	ExpiresIn time.Duration
	// RenewIn is the time from ReadAt until the leader should renew: a third of the lease after its
	// last heartbeat.
	RenewIn time.Duration
	// LockedFor is the time from ReadAt until the vacant election can be granted again.
	LockedFor time.Duration
	// Lapsed reports that the lease has run out, but its end is not recorded yet: there is no event
	// and no new revision for it.
	Lapsed bool

	// Instants of the store's clock, for people. They must not be compared with any other clock.
	AcquiredAt, LastHeartbeat, LeaseExpiration, ReadAt time.Time
	// CreatedAt is when the election was created, by the same clock, in seconds since 1970; 0 if
	// unknown. It is not on the wire.
	CreatedAt int64
	// VacantSince is when the last lease ended or when the vacant election was configured,
	// whichever is later. It is not on the wire.
	VacantSince time.Time

	// EndsBy is the instant past which no renewal extends the lease, zero if there is none, and
	// EndsBecause the reason. LeaseExpiration and ExpiresIn obey it already. EndsIn is the time
	// from ReadAt until EndsBy.
	EndsBy      time.Time
	EndsBecause EndReason
	EndsIn      time.Duration

	// Report is the leader's last report on its work, made at ReportedAt, which was ReportAge
	// before ReadAt.
	Report     ReportText
	ReportedAt time.Time
	ReportAge  time.Duration

	Config  Config
	Deleted bool
	// Seat is the seat's number if the election is a seat of another one, else 0. See Config.Seats.
	Seat int
	// Configured, in the answer to CheckToken, reports whether an operator configured the election.
	// The others were made by candidates: by the first acquire, or as a part of a task.
	Configured bool

	// DrawSecret and LastLeader are the inputs of Draw for the next term. Instances use them to
	// rank the candidates in their lines; the secret must not be shown to a caller.
	DrawSecret string
	LastLeader CandidateID
	// Challenger is the better candidate for which the present term ends.
	Challenger CandidateID
	// Succession is the hand-over that is under way.
	Succession Succession
	// NotServing reports that the policy requires the leader to say that it serves, and that it has
	// not said so yet.
	NotServing bool
	// Parent is the lease that this one stands on.
	Parent Parent
	// Parked is why no candidate is granted until operators approve; "" if the election is not
	// parked. See SeriesPolicy.
	Parked string
	// PreviousEnd is why the last term ended. It is for Inheritance.
	PreviousEnd EndReason

	// Overrides are the standing orders. They are set in the answer to an order, in the answer to a
	// read that asks for them, and always for HaltsElection.
	Overrides Overrides
	// AssignedTo is the only candidate that is granted the seat until AssignedUntil, if an operator
	// has said so. It is for instances, and not shown to a caller.
	AssignedTo    CandidateID
	AssignedUntil time.Time

	// Ticket, if the store needs one, is set in the answer to the leader's acquire or renewal. The
	// leader sends it with its next renewal.
	Ticket Ticket
	// Statement, if the leader asked for one, is a compact JWS that others verify without a server;
	// see package statement. StatementError is why the server could not sign it.
	Statement, StatementError string
}

// Ticket is an opaque text of at most MaxTicketBytes that a store gives a leader for its next
// renewal, so that any instance can renew without a read. It proves nothing: the key and the token
// are checked all the same. It serves for one renewal, and only if the record has not changed
// meanwhile. A renewal with another ticket, or with none, costs the store one read more.
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

// The ways in which a term ends other than at its EndsBy.
const (
	EndsReleased EndReason = "released"
	EndsExpired  EndReason = "expired" // it was not renewed in time
	EndsDeposed  EndReason = "deposed"
	EndsDeleted  EndReason = "deleted"
	EndsUnlocked EndReason = "unlocked"
	EndsEpoch    EndReason = "epoch" // the same leader goes on under the next token
)
