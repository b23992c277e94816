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
	Election     leadership.Election    `json:"election"`
	CandidateID  leadership.CandidateID `json:"candidateId,omitzero"`
	ProposalID   leadership.ProposalID  `json:"proposalId"`
	ProposalKind string                 `json:"proposalKind"`
	Data         jsontext.Value         `json:"data,omitzero"`
	TTL          wire.Duration          `json:"ttl,omitzero"`
	Wait         wire.Duration          `json:"wait,omitzero"`
}

// proposed is a proposal as a model sees it. Without a verdict it is open.
type proposed struct {
	ProposalID   leadership.ProposalID      `json:"proposalId"`
	CandidateID  leadership.CandidateID     `json:"candidateId"`
	ProposalKind string                     `json:"proposalKind"`
	Data         jsontext.Value             `json:"data,omitzero"`
	At           time.Time                  `json:"at"`
	Verdict      leadership.ProposalVerdict `json:"verdict,omitzero"`
	Note         string                     `json:"note,omitzero"`
	LeaderID     leadership.CandidateID     `json:"leaderId,omitzero"`
	FencingToken leadership.Token           `json:"fencingToken,omitzero"`
}

func newProposed(all ...leadership.Proposal) []proposed {
	shown := make([]proposed, len(all))
	for i, p := range all {
		shown[i] = proposed{ProposalID: p.ID, CandidateID: p.CandidateID, ProposalKind: p.Kind, Data: jsontext.Value(p.Data), At: p.At.UTC()}
		if d := p.Decision; d != nil {
			shown[i].Verdict, shown[i].Note, shown[i].LeaderID, shown[i].FencingToken = d.Verdict, d.Note, d.LeaderID, d.Token
		}
	}
	return shown
}

func (d *desk) propose(ctx context.Context, in proposeInput) (proposed, error) {
	if err := checkWait(in.Wait, 0); err != nil {
		return proposed{}, err
	}
	p, err := d.calls.Propose(ctx, leadership.ProposeRequest{
		Election: in.Election, CandidateID: in.CandidateID, ID: in.ProposalID, Kind: in.ProposalKind, Data: json.RawMessage(in.Data),
		TTL: time.Duration(in.TTL), Wait: time.Duration(in.Wait),
	})
	return newProposed(p)[0], err
}

type proposalsOutput struct {
	Open    []proposed `json:"open"`
	Decided []proposed `json:"decided"`
}

func (d *desk) proposals(ctx context.Context, in about) (proposalsOutput, error) {
	all, err := d.calls.Proposals(ctx, in.Election)
	return proposalsOutput{newProposed(all.Open...), newProposed(all.Decided...)}, err
}

type decideInput struct {
	Handle     string                     `json:"handle"`
	ProposalID leadership.ProposalID      `json:"proposalId"`
	Verdict    leadership.ProposalVerdict `json:"verdict"`
	Note       string                     `json:"note,omitzero"`
}

func (d *desk) decide(ctx context.Context, in decideInput) (proposed, error) {
	t, err := d.leader(ctx, in.Handle)
	if err != nil {
		return proposed{}, err
	}
	p, err := t.lease.Decide(ctx, in.ProposalID, in.Verdict, in.Note)
	if err != nil {
		return proposed{}, t.failed(err)
	}
	return newProposed(p)[0], nil
}
