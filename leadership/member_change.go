package leadership

// MemberChange says that a member of an election has come, or has gone.
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
)
