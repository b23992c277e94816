package leadership

import (
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Limits of members. An instance keeps members in memory only, and no rule but the quorum uses
// them.
const (
	MinMemberTTL = 10 * time.Second
	MaxMemberTTL = 5 * time.Minute
	MaxMembers   = 10_000 // of all elections at one instance; one principal, and one election, may have half
)

// JoinRequest makes the caller a member of an election for a while.
type JoinRequest struct {
	Election    Election
	CandidateID CandidateID
	Role        Role          // RoleFollower, RoleWorker or RoleWitness
	TTL         time.Duration // MinMemberTTL to MaxMemberTTL: how long the member counts unless it joins again
	SeenToken   Token         // the newest token that the member follows; 0: none yet
	Note        string        // for people: one line of at most 256 bytes
}

// Validate returns an InvalidArgument error unless the request is valid.
func (r JoinRequest) Validate() error {
	if err := validateNames(r.Election, r.CandidateID); err != nil {
		return err
	}
	ttl := MemberBounds.Check("ttl", r.TTL)
	switch {
	case r.Role != RoleFollower && r.Role != RoleWorker && r.Role != RoleWitness:
		return Invalid("role", fmt.Errorf("role is %q, %q or %q, not %s; a candidate is a member while it waits, and a leader while it leads", RoleFollower, RoleWorker, RoleWitness, form.Shown(string(r.Role))))
	case ttl != nil:
		return Invalid("ttl", ttl)
	case r.SeenToken < 0 || r.SeenToken > MaxToken:
		return Invalid("seenToken", fmt.Errorf("seenToken is a fencing token, or left out, and not %d", r.SeenToken))
	}
	return fields("note", form.Line("note", r.Note))
}

// LeaveRequest ends a membership that a JoinRequest began.
type LeaveRequest struct {
	Election    Election
	CandidateID CandidateID
}

// Validate returns an InvalidArgument error unless the request is valid.
func (r LeaveRequest) Validate() error { return validateNames(r.Election, r.CandidateID) }

// Member is one member of an election as an instance knows it.
type Member struct {
	ID        CandidateID
	Seat      int // the seat of which it is a member, if the election has seats; 0: of the whole election
	Role      Role
	SeenToken Token         // the newest token that it said it follows; 0: unknown
	HeardAgo  time.Duration // since it was last heard of
	Position  int           // in line at its instance, from 1; 0 if it is not in line
	Note      string
	Applied   Index // the last journal entry that it said it has applied; 0: unknown
	Lag       Index // journal entries known here that it has not applied; 0 unless it follows the journal
}

// MembersStatus summarizes the state of an election's members.
type MembersStatus string

// The states, the first that applies.
const (
	MembersNoQuorum MembersStatus = "noQuorum" // too few members of the electorate are present
	MembersNoLeader MembersStatus = "noLeader"
	MembersDiverged MembersStatus = "diverged" // a member follows another token than the leader's
	MembersHealthy  MembersStatus = "healthy"
)

// Members is an election with its members.
type Members struct {
	Election Election
	LeaderID CandidateID // "" if there is none
	Token    Token
	Status   MembersStatus
	// Participation is the fraction of the electorate that is present; without an electorate, the
	// fraction of the members that follow the leader's token. 0 to 1; 1 if there are none to count.
	Participation float64
	// Complete reports that Members includes those of all instances that are known.
	Complete bool
	Quorum   *QuorumStatus // nil if there is no quorum policy
	ReadOnly bool          // the quorum has been lost for longer than the grace time
	Journal  Index         // the index of the journal's last entry; 0 if the instance does not know it
	Seats    int           // how many seats the election has; Members then includes those of all seats
	Members  []Member      // in the order of their ids
}

// QuorumStatus is the present state of a quorum.
type QuorumStatus struct {
	Size              int `json:"size"` // of the electorate
	Need              int `json:"need"`
	Present           int `json:"present"`
	ToleratedFailures int `json:"toleratedFailures"` // how many of Size may be absent
}

// AcknowledgementRequest asks which members follow a token, or have applied a journal, or both.
type AcknowledgementRequest struct {
	Election     Election
	Token        Token         // 0, only with a JournalIndex: any token
	JournalIndex Index         // 0: the journal does not matter
	Need         int           // how many members must follow: 1 to MaxMembers
	Wait         time.Duration // how long to wait for Need members: 0 to MaxWait
}

// Validate returns an InvalidArgument error unless the request is valid.
func (r AcknowledgementRequest) Validate() error {
	if r.JournalIndex < 0 {
		return Invalid("journalIndex", fmt.Errorf("journalIndex is the index of an entry, or left out, and not %d", r.JournalIndex))
	}
	if r.Token == 0 && r.JournalIndex > 0 {
		if err := r.Election.Validate(); err != nil {
			return Invalid("election", err)
		}
	} else if err := (TokenCheck{Election: r.Election, Token: r.Token}).Validate(); err != nil {
		return err
	}
	if r.Need < 1 || r.Need > MaxMembers {
		return Invalid("need", fmt.Errorf("need is how many members must follow, from 1 to %d, not %d", MaxMembers, r.Need))
	}
	if r.Wait < 0 || r.Wait > MaxWait {
		return Invalid("wait", fmt.Errorf("wait is from 0s to %s, not %s; to wait for longer, ask again", form.Spoken(MaxWait), form.Spoken(r.Wait)))
	}
	return nil
}

// Acknowledgement lists the members that follow the token or journal asked for, and those that do
// not. The leader is in neither list.
type Acknowledgement struct {
	Election     Election      `json:"election"`
	Token        Token         `json:"fencingToken,omitzero"`
	JournalIndex Index         `json:"journalIndex,omitzero"`
	Need         int           `json:"need"`
	Done         bool          `json:"acknowledged"` // at least Need members follow
	Complete     bool          `json:"complete"`     // as in Members
	Follow       []CandidateID `json:"follow"`
	Missing      []CandidateID `json:"missing"`
}

// RefuseMember returns the error for a member that the instance has no room for.
func RefuseMember(r JoinRequest) error {
	return &Error{Code: LimitExceeded, Detail: fmt.Sprintf("%q cannot join election %q: this instance remembers %d members, and no more; let others leave, or ask at another instance",
		r.CandidateID, r.Election, MaxMembers)}
}
