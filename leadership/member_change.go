package leadership

// MemberChange tells that a member of an election has come or gone, or tells its leader whether it
// may write, or that a proposal waits.
type MemberChange struct {
	ID        CandidateID      `json:"id"`
	Role      Role             `json:"role"`
	Change    MemberChangeType `json:"change"`
	SeenToken Token            `json:"term,omitzero"` // the newest token that the member follows or followed; 0: unknown
}

// MemberChangeType is the kind of a MemberChange.
type MemberChangeType string

const (
	MemberJoined   MemberChangeType = "joined"
	MemberLeft     MemberChangeType = "left"     // the member said so, or closed its stream
	MemberVanished MemberChangeType = "vanished" // the member did not join again in time, or its instance vanished

	// Of the leader, where the policy asks for a quorum: as in Members.ReadOnly.
	MemberReadOnly MemberChangeType = "readOnly" // the quorum is lost: the leader must not write
	MemberWritable MemberChangeType = "writable" // the leader may write

	// Of the leader: a proposal was just made, or made again, and is open. It may be told several
	// times, and may get lost unless the proposer asks again.
	MemberAsked MemberChangeType = "asked"
)
