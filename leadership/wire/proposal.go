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
	Holder
	ProposalID leadership.ProposalID      `json:"proposalId"`
	Verdict    leadership.ProposalVerdict `json:"verdict"`
	Note       string                     `json:"note,omitzero"`
}

// NewDecideRequest writes a request.
func NewDecideRequest(r leadership.DecideRequest) DecideRequest {
	return DecideRequest{NewHolder(r.LeaseRequest), r.ID, r.Verdict, r.Note}
}

// Leadership reads a request about the election.
func (w DecideRequest) Leadership(e leadership.Election) (leadership.DecideRequest, error) {
	holder, err := w.Holder.Leadership(e)
	r := leadership.DecideRequest{LeaseRequest: holder, ID: w.ProposalID, Verdict: w.Verdict, Note: w.Note}
	if err != nil {
		return r, err
	}
	return r, r.Validate()
}
