package leadership

// MemberChange says that a member of an election has come, or has gone, or whether its leader may
// write.
type MemberChange struct {
	ID        CandidateID
	Role      Role
	Change    MemberChangeType
	SeenToken Token // the newest that it follows, or did; 0: unknown
}

// MemberChangeType is how a member has come or gone.
type MemberChangeType string

// The types of a MemberChange.
const (
	MemberJoined   MemberChangeType = "joined"
	MemberLeft     MemberChangeType = "left"     // it said so, or has closed its stream
	MemberVanished MemberChangeType = "vanished" // it was not heard of any more

	// Of the leader, where the policy asks for a quorum: as in Members.ReadOnly.
	MemberReadOnly MemberChangeType = "readOnly" // the quorum is lost: it must not write
	MemberWritable MemberChangeType = "writable" // it may write
)
