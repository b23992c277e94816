package leadership

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Limits of the proposals of an election.
const (
	MaxOpenProposals     = 64      // not decided yet
	MaxDecidedProposals  = 64      // the last decided ones are kept
	MaxProposals         = 1024    // open or decided within their ttl, including those of which only the id is kept
	MaxOwnProposals      = 8       // open ones of one candidate, and of one principal
	MaxProposalLength    = 128     // of an id
	MaxProposalKindBytes = 64      // of a kind
	MaxProposalBytes     = 2 << 10 // of the data
	MinProposalTTL       = time.Second
	MaxProposalTTL       = 24 * time.Hour
	DefaultProposalTTL   = 10 * time.Minute
)

// ProposalID names a proposal: 1 to 128 of A-Z, a-z, 0-9 and "._@:-", unique within the election.
type ProposalID string

// Validate returns an error that says why the id is invalid, or nil.
func (id ProposalID) Validate() error {
	return validateID("a proposal", string(id), MaxProposalLength)
}

// Proposal asks the leader of an election for a decision.
type Proposal struct {
	Election    Election        `json:"election,omitzero"`
	ID          ProposalID      `json:"proposalId"`
	CandidateID CandidateID     `json:"candidateId"`        // of the proposer
	Principal   string          `json:"principal,omitzero"` // of the proposer; "" if the caller was not verified
	Kind        string          `json:"kind"`               // one line
	Data        json.RawMessage `json:"data,omitzero"`      // any JSON; may be empty
	At          time.Time       `json:"at,omitzero"`        // when it was proposed, by the store's clock
	Until       time.Time       `json:"until,omitzero"`     // how long it is kept; a decision extends this by the ttl
	Decision    *Decision       `json:"decision,omitzero"`  // nil while it is open
}

// Decision is a leader's answer to a proposal. It never changes.
type Decision struct {
	Verdict  ProposalVerdict `json:"verdict"`
	Note     string          `json:"note,omitzero"` // for people; may be empty
	Token    Token           `json:"fencingToken"`  // of the leader
	LeaderID CandidateID     `json:"leaderId"`
	At       time.Time       `json:"at,omitzero"` // by the store's clock
}

// ProposalVerdict says whether a proposal was accepted.
type ProposalVerdict string

const (
	ProposalAccepted ProposalVerdict = "accepted"
	ProposalRejected ProposalVerdict = "rejected"
)

// Proposals are the proposals that an election keeps.
type Proposals struct {
	Election Election   `json:"election"`
	Open     []Proposal `json:"open"`    // in the order in which they were proposed
	Decided  []Proposal `json:"decided"` // in the order in which they were decided
	Changes  int64      `json:"-"`       // counts the changes of these proposals
}

// Find returns the proposal, or nil.
func (p Proposals) Find(id ProposalID) *Proposal {
	for _, all := range [][]Proposal{p.Open, p.Decided} {
		for i := range all {
			if all[i].ID == id {
				return &all[i]
			}
		}
	}
	return nil
}

// ProposeRequest proposes something to the leader.
type ProposeRequest struct {
	Election    Election
	CandidateID CandidateID // of the proposer, which need not be a candidate or a member
	ID          ProposalID
	Kind        string          // 1 to MaxProposalKindBytes bytes, one line
	Data        json.RawMessage // any JSON, of at most MaxProposalBytes bytes; may be empty
	TTL         time.Duration   // MinProposalTTL to MaxProposalTTL; 0 for DefaultProposalTTL
	// Wait is how long to wait for the decision: 0 to MaxWait, and no longer than the TTL. A Ledger
	// alone answers at once; an Instance waits.
	Wait time.Duration
}

// Patience returns how long the call may wait in addition to its own work.
func (r ProposeRequest) Patience() time.Duration { return r.Wait }

// Validate returns an InvalidArgument error unless the request is valid; the service
// checks the data.
func (r ProposeRequest) Validate() error {
	if err := cmp.Or(validateNames(r.Election, r.CandidateID), fields("proposalId", r.ID.Validate())); err != nil {
		return err
	}
	_, ttl := validateBounds(bounded{"ttl", r.TTL, ProposalBounds})
	switch {
	case r.Kind == "" || len(r.Kind) > MaxProposalKindBytes || form.Text(r.Kind) != nil:
		return Invalid("kind", fmt.Errorf("kind is one line of 1 to %d bytes, such as scale", MaxProposalKindBytes))
	case ttl != nil:
		return Invalid("ttl", ttl)
	case r.Wait > cmp.Or(r.TTL, DefaultProposalTTL):
		return Invalid("wait", fmt.Errorf("wait is no longer than ttl, which is %s, and not %s", form.Spoken(cmp.Or(r.TTL, DefaultProposalTTL)), form.Spoken(r.Wait)))
	case r.Wait < 0 || r.Wait > MaxWait:
		return Invalid("wait", fmt.Errorf("wait is from 0s to %s, not %s; to wait for longer, propose the same again", form.Spoken(MaxWait), form.Spoken(r.Wait)))
	}
	return nil
}

// DecideRequest decides a proposal.
type DecideRequest struct {
	LeaseRequest
	ID      ProposalID
	Verdict ProposalVerdict
	Note    string // for people: one line of at most 256 bytes; may be empty
}

// Validate returns an InvalidArgument error unless the request is valid.
func (r DecideRequest) Validate() error {
	if err := r.LeaseRequest.Validate(); err != nil {
		return err
	}
	if r.Verdict != ProposalAccepted && r.Verdict != ProposalRejected {
		return Invalid("verdict", fmt.Errorf("verdict is %q or %q, not %s", ProposalAccepted, ProposalRejected, form.Shown(string(r.Verdict))))
	}
	return cmp.Or(fields("proposalId", r.ID.Validate()), fields("note", form.Line("note", r.Note)))
}
