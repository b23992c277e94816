package wire

import (
	"strconv"
	"strings"
	"time"

	"regent/leadership"
)

// JoinRequest is the body of a join.
type JoinRequest struct {
	CandidateID leadership.CandidateID `json:"candidateId"`
	Role        leadership.Role        `json:"role"`
	TTL         Duration               `json:"ttl"`
	SeenToken   *leadership.Token      `json:"seenToken,omitzero"`
	Note        string                 `json:"note,omitzero"`
}

// NewJoinRequest writes a request.
func NewJoinRequest(r leadership.JoinRequest) JoinRequest {
	return JoinRequest{CandidateID: r.CandidateID, Role: r.Role, TTL: Duration(r.TTL), SeenToken: optional(r.SeenToken), Note: r.Note}
}

// Leadership reads a request about the election.
func (w JoinRequest) Leadership(e leadership.Election) (leadership.JoinRequest, error) {
	r := leadership.JoinRequest{Election: e, CandidateID: w.CandidateID, Role: w.Role, TTL: time.Duration(w.TTL), SeenToken: given(w.SeenToken), Note: w.Note}
	if isEmpty(w.SeenToken) {
		return r, malformed("/seenToken", "seenToken is a fencing token, from 1, not 0; leave it out if the member follows none yet")
	}
	return r, r.Validate()
}

// LeaveRequest is the body of a leave.
type LeaveRequest struct {
	CandidateID leadership.CandidateID `json:"candidateId"`
}

// Left is the reply to a leave.
type Left struct {
	Election leadership.Election `json:"election"`
}

// Member is one member of an election.
type Member struct {
	ID                 leadership.CandidateID `json:"id"`
	Seat               int                    `json:"seat,omitzero"` // the seat of which it is a member; left out for a member of the whole election
	Role               leadership.Role        `json:"role"`
	Term               leadership.Token       `json:"term,omitzero"` // the token that it said it follows
	LastHeartbeatAgoMs int64                  `json:"lastHeartbeatAgoMs"`
	Position           *int                   `json:"position"` // in line at its instance, from 1; null if it does not wait
	Note               string                 `json:"note,omitzero"`
	Applied            *leadership.Index      `json:"applied,omitzero"` // the last journal entry it has applied; left out if it does not follow the journal
	Lag                *leadership.Index      `json:"lag,omitzero"`     // how many entries it has not applied; with applied
}

// NewMember writes a member.
func NewMember(m leadership.Member) Member {
	w := Member{ID: m.ID, Seat: m.Seat, Role: m.Role, Term: m.SeenToken, LastHeartbeatAgoMs: millisUp(m.HeardAgo), Position: optional(m.Position), Note: m.Note}
	if m.Applied > 0 || m.Lag > 0 {
		w.Applied, w.Lag = &m.Applied, &m.Lag
	}
	return w
}

// Leadership reads a member.
func (w Member) Leadership() leadership.Member {
	return leadership.Member{ID: w.ID, Seat: w.Seat, Role: w.Role, SeenToken: w.Term, HeardAgo: fromMillis(w.LastHeartbeatAgoMs), Position: given(w.Position), Note: w.Note, Applied: given(w.Applied), Lag: given(w.Lag)}
}

// Members is the reply to a read of an election's members.
type Members struct {
	Election      leadership.Election      `json:"election"`
	ClusterSize   int                      `json:"clusterSize"`
	Leader        leadership.CandidateID   `json:"leader,omitzero"`
	Term          leadership.Token         `json:"term"`
	Status        leadership.MembersStatus `json:"status"`
	Participation float64                  `json:"participation"`
	Complete      bool                     `json:"complete"`
	ReadOnly      bool                     `json:"readOnly,omitzero"`
	Quorum        *leadership.QuorumStatus `json:"quorum,omitzero"`
	JournalIndex  leadership.Index         `json:"journalIndex,omitzero"` // the index of the journal's last entry, if the instance knows it
	Seats         int                      `json:"seats,omitzero"`        // how many seats the election has: the nodes are those of all seats
	Nodes         []Member                 `json:"nodes"`
}

// NewMembers writes the members.
func NewMembers(m leadership.Members) Members {
	return Members{
		Election: m.Election, ClusterSize: len(m.Members), Leader: m.LeaderID, Term: m.Token, Status: m.Status,
		Participation: m.Participation, Complete: m.Complete, ReadOnly: m.ReadOnly, JournalIndex: m.Journal, Quorum: m.Quorum, Seats: m.Seats,
		Nodes: appended(nil, m.Members, NewMember),
	}
}

// Leadership reads the members.
func (w Members) Leadership() leadership.Members {
	return leadership.Members{
		Election: w.Election, LeaderID: w.Leader, Token: w.Term, Status: w.Status,
		Participation: w.Participation, Complete: w.Complete, ReadOnly: w.ReadOnly, Journal: w.JournalIndex, Quorum: w.Quorum, Seats: w.Seats,
		Members: appended(nil, w.Nodes, Member.Leadership),
	}
}

// AcknowledgementRequest is the body that asks which members follow a token, have applied a journal
// up to an index, or both. At least one of these is required.
type AcknowledgementRequest struct {
	FencingToken *leadership.Token `json:"fencingToken,omitzero"`
	JournalIndex *leadership.Index `json:"journalIndex,omitzero"`
	Need         int               `json:"need"`
	Wait         Duration          `json:"wait,omitzero"`
}

// NewAcknowledgementRequest writes a request.
func NewAcknowledgementRequest(r leadership.AcknowledgementRequest) AcknowledgementRequest {
	return AcknowledgementRequest{FencingToken: optional(r.Token), JournalIndex: optional(r.JournalIndex), Need: r.Need, Wait: Duration(r.Wait)}
}

// Leadership reads a request about the election.
func (w AcknowledgementRequest) Leadership(e leadership.Election) (leadership.AcknowledgementRequest, error) {
	r := leadership.AcknowledgementRequest{Election: e, Token: given(w.FencingToken), JournalIndex: given(w.JournalIndex), Need: w.Need, Wait: time.Duration(w.Wait)}
	switch {
	case w.FencingToken == nil && w.JournalIndex == nil:
		return r, malformed("/fencingToken", "fencingToken is missing; send the token that members are to follow, or the journalIndex that they are to have applied, or both")
	case isEmpty(w.FencingToken):
		return r, malformed("/fencingToken", "a fencing token is an integer from 1, not 0; leave it out if you ask for a journalIndex alone")
	case isEmpty(w.JournalIndex):
		return r, malformed("/journalIndex", "journalIndex is the index of an entry, from 1, not 0; leave it out if you ask for a token alone")
	}
	if err := validateWait(w.Wait); err != nil {
		return r, err
	}
	return r, r.Validate()
}

// Quorum says which members must be present, and how many of them.
type Quorum struct {
	Electorate []string  `json:"electorate"`
	Need       Need      `json:"need,omitzero"`
	Grace      *Duration `json:"grace,omitzero"`
}

func (w Quorum) leadership() (q leadership.QuorumPolicy, err error) {
	const electorate = "/policy/quorum/electorate"
	switch {
	case len(w.Electorate) == 0:
		return q, malformed(electorate, "policy.quorum.electorate names 1 to %d members; leave quorum out if none is asked for", leadership.MaxElectorate)
	case w.Need < 0:
		return q, malformed("/policy/quorum/need", `policy.quorum.need is "majority", or how many members must be present: an integer from 1 to the size of the electorate`)
	case isEmpty(w.Grace):
		return q, malformed("/policy/quorum/grace", "policy.quorum.grace is from 1ms to %v, not 0s; leave it out for %v", Duration(leadership.MaxGrace), Duration(leadership.DefaultGrace))
	}
	q = leadership.QuorumPolicy{Need: int(w.Need), Grace: time.Duration(given(w.Grace))}
	q.Electorate, err = names(electorate, leadership.MaxCandidateLength, w.Electorate)
	return q, err
}

// Need is how many members must be present: a number, or "majority", which is 0 in Go. It is
// negative for anything else that a newer server may send.
type Need int

const majority = `"majority"`

// IsZero keeps the majority from being left out.
func (n Need) IsZero() bool { return false }

// MarshalJSON implements json.Marshaler.
func (n Need) MarshalJSON() ([]byte, error) {
	if n == 0 {
		return []byte(majority), nil
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Need) UnmarshalJSON(text []byte) error {
	*n = -1
	if string(text) == majority {
		*n = 0
	} else if v, err := strconv.ParseInt(string(text), 10, 32); err == nil && v > 0 {
		*n = Need(v)
	}
	return nil
}

// names reads a list of names, each at most once and of at most limit bytes.
func names(pointer string, limit int, all []string) (leadership.Names, error) {
	seen := make(map[string]bool, len(all))
	for i, name := range all {
		at := pointer + "/" + strconv.Itoa(i)
		switch {
		case name == "":
			return "", malformed(at, "a name is empty; use A-Z, a-z, 0-9 and \"._@:-\", or leave it out")
		case len(name) > limit || leadership.CandidateID(name).Validate() != nil:
			return "", malformed(at, "%s is no name: use up to %d of A-Z, a-z, 0-9 and \"._@:-\"", Quote(name), limit)
		case seen[name]:
			return "", malformed(at, "%s is there twice in %s; name it once", Quote(name), strings.ReplaceAll(pointer[1:], "/", "."))
		}
		seen[name] = true
	}
	return leadership.NewNames(all...), nil
}
