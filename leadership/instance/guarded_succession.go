package instance

import (
	"context"

	"regent/leadership"
	"regent/leadership/wire"
)

func leaseOp(r leadership.LeaseRequest) Op {
	return Op{Election: r.Election, Candidate: r.CandidateID, Token: r.Token, N: 1}
}

// HandOver implements Protocol.
func (g *Guarded) HandOver(ctx context.Context, r leadership.HandOverRequest) (leadership.Lease, error) {
	return guarded(ctx, g, wire.VerbHandOver, leaseOp(r.LeaseRequest), g.service.HandOver, r)
}

// SayReady implements Protocol.
func (g *Guarded) SayReady(ctx context.Context, r leadership.ReadyRequest) (leadership.Lease, error) {
	return guarded(ctx, g, wire.VerbSayReady, Op{Election: r.Election, Candidate: r.CandidateID, N: 1}, g.service.SayReady, r)
}

// Yield implements Protocol.
func (g *Guarded) Yield(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	op := leaseOp(r)
	op.Token = 0 // as a release, it says that its caller has stopped
	return guarded(ctx, g, wire.VerbYield, op, g.service.Yield, r)
}

// Delegate implements Protocol.
func (g *Guarded) Delegate(ctx context.Context, r leadership.DelegateRequest) (leadership.Lease, error) {
	return guarded(ctx, g, wire.VerbDelegate, leaseOp(r.LeaseRequest), g.service.Delegate, r)
}

// Tree implements Service.
func (g *Guarded) Tree(ctx context.Context, e leadership.Election) (leadership.Tree, error) {
	return guarded(ctx, g, wire.VerbTree, Op{Election: e, N: 1}, g.service.Tree, e)
}

// PutCheckpoint implements Ledger.
func (g *Guarded) PutCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	op := leaseOp(r.LeaseRequest)
	op.Bytes = len(r.Data)
	return guarded(ctx, g, wire.VerbPutCheckpoint, op, g.service.PutCheckpoint, r)
}

// Checkpoint implements Ledger.
func (g *Guarded) Checkpoint(ctx context.Context, e leadership.Election) (leadership.Checkpoint, error) {
	return guarded(ctx, g, wire.VerbCheckpoint, Op{Election: e, N: 1}, g.service.Checkpoint, e)
}

// OpenJournal implements Ledger.
func (g *Guarded) OpenJournal(ctx context.Context, r leadership.LeaseRequest) (leadership.JournalHead, error) {
	return guarded(ctx, g, wire.VerbOpenJournal, leaseOp(r), g.service.OpenJournal, r)
}

// AppendJournal implements Ledger.
func (g *Guarded) AppendJournal(ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	op := leaseOp(r.LeaseRequest)
	op.Entries = len(r.Entries)
	for _, e := range r.Entries {
		op.Bytes += len(e.Data)
	}
	return guarded(ctx, g, wire.VerbAppendJournal, op, g.service.AppendJournal, r)
}

// ReadJournal implements Ledger. A reader that is a follower needs the right to join, too.
func (g *Guarded) ReadJournal(ctx context.Context, r leadership.JournalRequest) (page leadership.JournalPage, err error) {
	if err := g.follows(ctx, r); err != nil {
		return page, err
	}
	return guarded(ctx, g, wire.VerbJournal, Op{Election: r.Election, N: 1}, g.service.ReadJournal, r)
}

// follows asks the gates whether the caller may be the member that it names.
func (g *Guarded) follows(ctx context.Context, r leadership.JournalRequest) error {
	if r.Member == "" {
		return nil
	}
	in, err := g.enter(ctx, wire.VerbJoin, Op{Election: r.Election, Candidate: r.Member}) // it counts for no call: the read does
	in.done(err)
	return err
}

// FollowJournal implements Service.
func (g *Guarded) FollowJournal(ctx context.Context, r leadership.JournalRequest) (*JournalFeed, error) {
	if err := g.follows(ctx, r); err != nil {
		return nil, err
	}
	return opened(ctx, g, wire.VerbFollowJournal, Op{Election: r.Election}, func() (*JournalFeed, error) {
		return g.service.FollowJournal(ctx, r)
	})
}

// SnapshotJournal implements Ledger.
func (g *Guarded) SnapshotJournal(ctx context.Context, r leadership.SnapshotRequest) (leadership.JournalHead, error) {
	op := leaseOp(r.LeaseRequest)
	op.Bytes = len(r.Data)
	return guarded(ctx, g, wire.VerbSnapshotJournal, op, g.service.SnapshotJournal, r)
}

// ReadSnapshot implements Ledger.
func (g *Guarded) ReadSnapshot(ctx context.Context, e leadership.Election) (leadership.JournalSnapshot, error) {
	return guarded(ctx, g, wire.VerbReadSnapshot, Op{Election: e, N: 1}, g.service.ReadSnapshot, e)
}
