package instance

import (
	"context"
	"slices"

	"regent/leadership"
	"regent/leadership/wire"
)

func leaseOp(r leadership.LeaseRequest) Op {
	return Op{Election: r.Election, Candidate: r.CandidateID, Token: r.Token, N: 1}
}

func sizedOp(r leadership.LeaseRequest, bytes int) Op {
	op := leaseOp(r)
	op.Bytes = bytes
	return op
}

// Delegate implements Protocol. Its caller must be allowed to acquire the child with the same
// candidate id, so that it cannot make an election in this way that it could not make otherwise.
func (g *Guarded) Delegate(ctx context.Context, r leadership.DelegateRequest) (leadership.Lease, error) {
	return guarded(ctx, g, wire.VerbDelegate, leaseOp(r.LeaseRequest), func(ctx context.Context, r leadership.DelegateRequest) (l leadership.Lease, err error) {
		child := leadership.Election(string(r.Election) + "." + r.Child)
		in, err := g.enter(ctx, wire.VerbAcquire, Op{Election: child, Candidate: r.CandidateID, N: 1, Further: true})
		if err != nil {
			return l, err
		}
		defer func() { in.done(err) }()
		return g.service.Delegate(ctx, r)
	}, r)
}

// stands asks the gates whether the caller may act as the candidate in the election that a via
// names. A lease at another service is checked by that service.
func (g *Guarded) stands(ctx context.Context, r *leadership.AcquireRequest) error {
	if !standsHere(r.Via) {
		return nil
	}
	in, err := g.enter(ctx, wire.VerbRenew, viaOp(r))
	in.done(err)
	return err
}

func standsHere(v leadership.Via) bool { return v.Election != "" && v.Peer == "" }

func viaOp(r *leadership.AcquireRequest) Op {
	return Op{Election: r.Via.Election, Candidate: r.CandidateID, Further: true}
}

// standsStill is stands for a candidate that has waited. It leaves no audit record.
func (g *Guarded) standsStill(ctx context.Context, r *leadership.AcquireRequest) error {
	if !standsHere(r.Via) {
		return nil
	}
	op := viaOp(r)
	op.Row = g.rows[wire.VerbRenew]
	return g.recheck(ctx, op)
}

// Tree implements Service. Elections that the caller may not read are left out, with all below
// them.
func (g *Guarded) Tree(ctx context.Context, e leadership.Election) (leadership.Tree, error) {
	t, err := guarded(ctx, g, wire.VerbTree, Op{Election: e, N: 1}, g.service.Tree, e)
	g.answered(ctx, wire.VerbTree, max(t.Read, len(t.Leases)))
	if err != nil || len(g.filters) == 0 {
		return t, err
	}
	op, shown := Op{Row: g.rows[wire.VerbTree]}, map[leadership.Election]bool{e: true}
	all := t.Leases
	t.Leases = nil
	for i, l := range all {
		visible := func(f Filter) bool { return f.Visible(ctx, op, l.Election) }
		if i == 0 || shown[l.Config.Delegation.Parent] && !slices.ContainsFunc(g.filters, func(f Filter) bool { return !visible(f) }) {
			shown[l.Election] = true
			t.Leases = append(t.Leases, l)
		}
	}
	return t, nil
}

func (g *Guarded) PutCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	return guarded(ctx, g, wire.VerbPutCheckpoint, sizedOp(r.LeaseRequest, len(r.Data)+len(r.Task)+len(r.URI)), g.service.PutCheckpoint, r)
}

func (g *Guarded) Checkpoint(ctx context.Context, e leadership.Election) (leadership.Checkpoint, error) {
	return guarded(ctx, g, wire.VerbCheckpoint, Op{Election: e, N: 1}, g.service.Checkpoint, e)
}

func (g *Guarded) OpenJournal(ctx context.Context, r leadership.LeaseRequest) (leadership.JournalHead, error) {
	return guarded(ctx, g, wire.VerbOpenJournal, leaseOp(r), g.service.OpenJournal, r)
}

func (g *Guarded) AppendJournal(ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	op := leaseOp(r.LeaseRequest)
	op.Entries = len(r.Entries)
	for _, e := range r.Entries {
		op.Bytes += len(e.Data) + len(e.Type)
	}
	return guarded(ctx, g, wire.VerbAppendJournal, op, g.service.AppendJournal, r)
}

// ReadJournal implements Ledger. A reader that is a follower needs the right to join, too.
func (g *Guarded) ReadJournal(ctx context.Context, r leadership.JournalRequest) (page leadership.JournalPage, err error) {
	if err := g.follows(ctx, r); err != nil {
		return page, err
	}
	page, err = guarded(ctx, g, wire.VerbJournal, Op{Election: r.Election, N: 1}, g.service.ReadJournal, r)
	g.answered(ctx, wire.VerbJournal, len(page.Entries))
	return page, err
}

// follows asks the gates whether the caller may be the member that it names.
func (g *Guarded) follows(ctx context.Context, r leadership.JournalRequest) error {
	if r.Member == "" {
		return nil
	}
	in, err := g.enter(ctx, wire.VerbJoin, Op{Election: r.Election, Candidate: r.Member}) // not counted as a call: the read is
	in.done(err)
	return err
}

func (g *Guarded) FollowJournal(ctx context.Context, r leadership.JournalRequest) (*JournalFeed, error) {
	if err := g.follows(ctx, r); err != nil {
		return nil, err
	}
	return opened(ctx, g, wire.VerbFollowJournal, Op{Election: r.Election}, func() (*JournalFeed, error) {
		return g.service.FollowJournal(ctx, r)
	})
}

func (g *Guarded) SnapshotJournal(ctx context.Context, r leadership.SnapshotRequest) (leadership.JournalHead, error) {
	return guarded(ctx, g, wire.VerbSnapshotJournal, sizedOp(r.LeaseRequest, len(r.Data)+len(r.URI)), g.service.SnapshotJournal, r)
}

func (g *Guarded) ReadSnapshot(ctx context.Context, e leadership.Election) (leadership.JournalSnapshot, error) {
	return guarded(ctx, g, wire.VerbReadSnapshot, Op{Election: e, N: 1}, g.service.ReadSnapshot, e)
}

func (g *Guarded) BeginEffect(ctx context.Context, r leadership.EffectRequest) (leadership.Effect, error) {
	return whole(ctx, g, wire.VerbBeginEffect, sizedOp(r.LeaseRequest, len(r.ID)), g.service.BeginEffect, r)
}

func (g *Guarded) FinishEffect(ctx context.Context, r leadership.FinishRequest) (leadership.Effect, error) {
	return whole(ctx, g, wire.VerbFinishEffect, sizedOp(r.LeaseRequest, len(r.ID)+len(r.Result)), g.service.FinishEffect, r)
}

func (g *Guarded) Effects(ctx context.Context, e leadership.Election) (leadership.Effects, error) {
	all, err := guarded(ctx, g, wire.VerbEffects, Op{Election: e, N: 1}, g.service.Effects, e)
	g.answered(ctx, wire.VerbEffects, len(all.Effects))
	return all, err
}

func (g *Guarded) Propose(ctx context.Context, r leadership.ProposeRequest) (leadership.Proposal, error) {
	op := Op{Election: r.Election, Candidate: r.CandidateID, Waits: r.Wait > 0, N: 1, Bytes: len(r.ID) + len(r.Data) + len(r.Kind)}
	return whole(ctx, g, wire.VerbPropose, op, g.service.Propose, r)
}

func (g *Guarded) Decide(ctx context.Context, r leadership.DecideRequest) (leadership.Proposal, error) {
	return whole(ctx, g, wire.VerbDecide, sizedOp(r.LeaseRequest, len(r.ID)+len(r.Note)), g.service.Decide, r)
}

func (g *Guarded) Proposals(ctx context.Context, e leadership.Election) (leadership.Proposals, error) {
	all, err := guarded(ctx, g, wire.VerbProposals, Op{Election: e, N: 1}, g.service.Proposals, e)
	g.answered(ctx, wire.VerbProposals, len(all.Open)+len(all.Decided))
	return all, err
}
