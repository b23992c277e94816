package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
	"regent/leadership/wire"
)

type proposeInput struct {
	Election    leadership.Election    `json:"election"`
	CandidateID leadership.CandidateID `json:"candidateId"`
	ProposalID  leadership.ProposalID  `json:"proposalId"`
	Kind        string                 `json:"kind"`
	Data        jsontext.Value         `json:"data,omitzero"`
	TTL         wire.Duration          `json:"ttl,omitzero"`
	Wait        wire.Duration          `json:"wait,omitzero"`
}

func (d *desk) propose(ctx context.Context, in proposeInput) (leadership.Proposal, error) {
	if err := checkWait(in.Wait, 0); err != nil {
		return leadership.Proposal{}, err
	}
	return d.calls.Propose(ctx, leadership.ProposeRequest{
		Election: in.Election, CandidateID: in.CandidateID, ID: in.ProposalID, Kind: in.Kind, Data: json.RawMessage(in.Data),
		TTL: time.Duration(in.TTL), Wait: time.Duration(in.Wait),
	})
}

func (d *desk) proposals(ctx context.Context, in about) (leadership.Proposals, error) {
	return d.calls.Proposals(ctx, in.Election)
}

type decideInput struct {
	handled
	ProposalID leadership.ProposalID      `json:"proposalId"`
	Verdict    leadership.ProposalVerdict `json:"verdict"`
	Note       string                     `json:"note,omitzero"`
}

func (t *term) decide(ctx context.Context, in decideInput) (leadership.Proposal, error) {
	return t.lease.Decide(ctx, in.ProposalID, in.Verdict, in.Note)
}
