package wire

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// ProposeRequest is the body that proposes something to the leader of an election.
type ProposeRequest struct {
	CandidateID leadership.CandidateID `json:"candidateId"`
	ProposalID  leadership.ProposalID  `json:"proposalId"`
	Kind        string                 `json:"kind"`
	Data        jsontext.Value         `json:"data,omitzero"`
	TTL         *Duration              `json:"ttl,omitzero"`
	Wait        Duration               `json:"wait,omitzero"`
}

// NewProposeRequest writes a request.
func NewProposeRequest(r leadership.ProposeRequest) ProposeRequest {
	return ProposeRequest{r.CandidateID, r.ID, r.Kind, jsontext.Value(r.Data), optional(Duration(r.TTL)), Duration(r.Wait)}
}

// Leadership reads a request about the election.
func (w ProposeRequest) Leadership(e leadership.Election) (leadership.ProposeRequest, error) {
	r := leadership.ProposeRequest{Election: e, CandidateID: w.CandidateID, ID: w.ProposalID, Kind: w.Kind, Data: json.RawMessage(w.Data), TTL: time.Duration(given(w.TTL)), Wait: time.Duration(w.Wait)}
	if isEmpty(w.TTL) {
		return r, malformed("/ttl", "ttl is from %s to %s, not 0s; leave it out for %s", Duration(leadership.MinProposalTTL), Duration(leadership.MaxProposalTTL), Duration(leadership.DefaultProposalTTL))
	}
	if err := validateWait(w.Wait); err != nil {
		return r, err
	}
	if err := shallow("/data", w.Data); err != nil {
		return r, err
	}
	if ttl := cmp.Or(r.TTL, leadership.DefaultProposalTTL); r.Wait > ttl {
		return r, malformed("/wait", "wait is no longer than ttl, which is %v, and not %v", Duration(ttl), w.Wait)
	}
	return r, r.Validate()
}

// DecideRequest is the body by which the leader decides.
type DecideRequest struct {
	CandidateID  leadership.CandidateID     `json:"candidateId"`
	Key          string                     `json:"key"`
	FencingToken leadership.Token           `json:"fencingToken"`
	ProposalID   leadership.ProposalID      `json:"proposalId"`
	Verdict      leadership.ProposalVerdict `json:"verdict"`
	Note         string                     `json:"note,omitzero"`
}

// NewDecideRequest writes a request.
func NewDecideRequest(r leadership.DecideRequest) DecideRequest {
	return DecideRequest{r.CandidateID, r.Key.Text(), r.Token, r.ID, r.Verdict, r.Note}
}

// Leadership reads a request about the election.
func (w DecideRequest) Leadership(e leadership.Election) (leadership.DecideRequest, error) {
	holder, err := Holder{w.CandidateID, w.Key, w.FencingToken}.Leadership(e)
	r := leadership.DecideRequest{LeaseRequest: holder, ID: w.ProposalID, Verdict: w.Verdict, Note: w.Note}
	if err != nil {
		return r, err
	}
	return r, r.Validate()
}

// Proposal is a proposal as it stands.
type Proposal struct {
	Election    leadership.Election    `json:"election"`
	ProposalID  leadership.ProposalID  `json:"proposalId"`
	CandidateID leadership.CandidateID `json:"candidateId"` // of the proposer
	Principal   string                 `json:"principal,omitzero"`
	Kind        string                 `json:"kind"`
	Data        jsontext.Value         `json:"data,omitzero"`
	At          time.Time              `json:"at"`
	Until       time.Time              `json:"until"` // it is kept until then, by the store's clock
	Decision    *Decision              `json:"decision,omitzero"`
}

// Decision is what a leader has said of a proposal.
type Decision struct {
	Verdict      leadership.ProposalVerdict `json:"verdict"`
	Note         string                     `json:"note,omitzero"`
	FencingToken leadership.Token           `json:"fencingToken"`
	LeaderID     leadership.CandidateID     `json:"leaderId"`
	At           time.Time                  `json:"at"`
}

// NewProposal writes a proposal.
func NewProposal(p leadership.Proposal) Proposal {
	w := Proposal{p.Election, p.ID, p.CandidateID, p.Principal, p.Kind, jsontext.Value(p.Data), p.At.UTC(), p.Until.UTC(), nil}
	if d := p.Decision; d != nil {
		w.Decision = &Decision{d.Verdict, d.Note, d.Token, d.LeaderID, d.At.UTC()}
	}
	return w
}

// Leadership reads a proposal.
func (w Proposal) Leadership() leadership.Proposal {
	p := leadership.Proposal{Election: w.Election, ID: w.ProposalID, CandidateID: w.CandidateID, Principal: w.Principal, Kind: w.Kind, Data: json.RawMessage(w.Data), At: w.At, Until: w.Until}
	if d := w.Decision; d != nil {
		p.Decision = &leadership.Decision{Verdict: d.Verdict, Note: d.Note, Token: d.FencingToken, LeaderID: d.LeaderID, At: d.At}
	}
	return p
}

func newProposals(all []leadership.Proposal) (w []Proposal) {
	for _, p := range all {
		w = append(w, NewProposal(p))
	}
	return w
}

// LeadershipProposals reads proposals.
func LeadershipProposals(w []Proposal) (all []leadership.Proposal) {
	for _, p := range w {
		all = append(all, p.Leadership())
	}
	return all
}

// Proposals are those of an election that are kept.
type Proposals struct {
	Election leadership.Election `json:"election"`
	Open     []Proposal          `json:"open"`
	Decided  []Proposal          `json:"decided"`
}

// NewProposals writes the proposals of an election.
func NewProposals(p leadership.Proposals) Proposals {
	return Proposals{p.Election, emptyNotNull(newProposals(p.Open)), emptyNotNull(newProposals(p.Decided))}
}

// Leadership reads the proposals of an election.
func (w Proposals) Leadership() leadership.Proposals {
	return leadership.Proposals{Election: w.Election, Open: LeadershipProposals(w.Open), Decided: LeadershipProposals(w.Decided)}
}
