package client

import (
	"cmp"
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Propose asks the leader of an election for a decision; see service.Ledger. It blocks until there
// is a decision, for at most r.Wait, which may exceed leadership.MaxWait but not the ttl: it
// repeats the call as needed, and after transient failures.
//
// It returns the proposal; without a Decision it is still open. An empty r.CandidateID selects the
// id of the Client's Candidate.
//
// Errors: leadership.NotFound, if the election does not exist, or the proposal is no longer kept;
// LimitExceeded; InvalidArgument, also if the id is that of another proposal; PayloadTooLarge.
func (c *Client) Propose(ctx context.Context, r leadership.ProposeRequest) (leadership.Proposal, error) {
	if ttl := cmp.Or(r.TTL, leadership.DefaultProposalTTL); r.Wait > ttl {
		return leadership.Proposal{}, invalid("wait", "the proposal is kept for %v, so wait for no longer than that, and not for %v", ttl, r.Wait)
	}
	r.CandidateID = cmp.Or(r.CandidateID, c.candidateID(ctx))
	until := c.clock() + r.Wait
	for pause := (backoff{}); ; {
		p, err := c.propose(ctx, r)
		if r.Wait = until - c.clock(); r.Wait <= 0 || p.Decision != nil || ctx.Err() != nil || err != nil && !transient(err) {
			return p, err
		}
		if err != nil {
			sleep(ctx, min(pause.after(err), r.Wait))
		}
	}
}

func (c *Client) propose(ctx context.Context, r leadership.ProposeRequest) (leadership.Proposal, error) {
	r.Wait = min((max(r.Wait, 0) + time.Millisecond - 1).Truncate(time.Millisecond), leadership.MaxWait)
	k := post("propose", wire.VerbPropose, wire.NewProposeRequest(r))
	k.wait = r.Wait
	return c.proposal(ctx, r.Election, r.ID, k)
}

// Decide decides a proposal; see service.Ledger.
func (c *Client) Decide(ctx context.Context, r leadership.DecideRequest) (leadership.Proposal, error) {
	return c.proposal(ctx, r.Election, r.ID, post("decide", wire.VerbDecide, wire.NewDecideRequest(r)))
}

func (c *Client) proposal(ctx context.Context, e leadership.Election, id leadership.ProposalID, k call) (leadership.Proposal, error) {
	return ask(ctx, c, e, k, func(answer leadership.Proposal) bool { return answer.Election == e && answer.ID == id })
}

// Proposals reads the proposals that an election keeps.
func (c *Client) Proposals(ctx context.Context, e leadership.Election) (leadership.Proposals, error) {
	return ask(ctx, c, e, look("proposals", wire.ProposalsPath), func(answer leadership.Proposals) bool { return answer.Election == e })
}

// OpenProposals returns the proposals that were open when this lease was granted, if
// Candidate.Inherit is set. Client.Proposals reads the present ones.
func (l *Lease) OpenProposals() []leadership.Proposal { return l.proposals }

// Decide decides a proposal for good; note is a line for people, or empty. It retries as Checkpoint
// does.
//
// Errors: those of Checkpoint; leadership.NotFound, if there is no such proposal or its ttl is
// over; InvalidArgument, if it was decided differently.
func (l *Lease) Decide(ctx context.Context, id leadership.ProposalID, verdict leadership.ProposalVerdict, note string) (leadership.Proposal, error) {
	return persist(ctx, l, func(ctx context.Context, r leadership.LeaseRequest) (leadership.Proposal, error) {
		return l.client.Decide(ctx, leadership.DecideRequest{LeaseRequest: r, ID: id, Verdict: verdict, Note: note})
	})
}
