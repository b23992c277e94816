package leadership

// MemberChange says that a member of an election has come, or has gone, whether its leader may
// write, or that its leader is asked something.
type MemberChange struct {
	ID        CandidateID      `json:"id"`
	Role      Role             `json:"role"`
	Change    MemberChangeType `json:"change"`
	SeenToken Token            `json:"term,omitzero"` // the newest that it follows, or did; 0: unknown
}

// MemberChangeType is how a member has come or gone.
type MemberChangeType string

const (
	MemberJoined   MemberChangeType = "joined"
	MemberLeft     MemberChangeType = "left"     // it said so, or has closed its stream
	MemberVanished MemberChangeType = "vanished" // it was not heard of any more

	// Of the leader, where the policy asks for a quorum: as in Members.ReadOnly.
	MemberReadOnly MemberChangeType = "readOnly" // the quorum is lost: it must not write
	MemberWritable MemberChangeType = "writable" // it may write

	// Of the leader: there is an open proposal, which was just made, or made again. It may be told
	// several times, and may get lost if no proposer asks again.
	MemberAsked MemberChangeType = "asked"
)
