package instance

import (
	"context"
	"fmt"

	"regent/leadership"
)

// errNoJournal answers calls about checkpoints and journals where the store keeps none.
var errNoJournal = fmt.Errorf("instance: %w: this store keeps no checkpoints and journals", leadership.StoreUnavailable)

// PutCheckpoint replaces the checkpoint of an election; see leadership.Ledger.
func (i *Instance) PutCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	if i.ledger == nil {
		return leadership.Checkpoint{}, errNoJournal
	}
	return i.ledger.PutCheckpoint(ctx, r)
}

// Checkpoint reads the checkpoint of an election; see leadership.Ledger.
func (i *Instance) Checkpoint(ctx context.Context, e leadership.Election) (leadership.Checkpoint, error) {
	if i.ledger == nil {
		return leadership.Checkpoint{}, errNoJournal
	}
	return i.ledger.Checkpoint(ctx, e)
}

// OpenJournal raises a journal's mark to the caller's token; see leadership.Ledger.
func (i *Instance) OpenJournal(ctx context.Context, r leadership.LeaseRequest) (leadership.JournalHead, error) {
	if i.ledger == nil {
		return leadership.JournalHead{}, errNoJournal
	}
	return i.ledger.OpenJournal(ctx, r)
}

// AppendJournal adds entries to a journal; see leadership.Ledger. Followers at this instance hear of
// them at once.
func (i *Instance) AppendJournal(ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	if i.ledger == nil {
		return leadership.JournalHead{}, errNoJournal
	}
	return i.ledger.AppendJournal(ctx, r)
}

// ReadJournal reads a part of a journal; see leadership.Ledger.
func (i *Instance) ReadJournal(ctx context.Context, r leadership.JournalRequest) (leadership.JournalPage, error) {
	if i.ledger == nil {
		return leadership.JournalPage{}, errNoJournal
	}
	return i.ledger.ReadJournal(ctx, r)
}

// SnapshotJournal puts a snapshot; see leadership.Ledger.
func (i *Instance) SnapshotJournal(ctx context.Context, r leadership.SnapshotRequest) (leadership.JournalHead, error) {
	if i.ledger == nil {
		return leadership.JournalHead{}, errNoJournal
	}
	return i.ledger.SnapshotJournal(ctx, r)
}

// ReadSnapshot reads the newest snapshot of a journal; see leadership.Ledger.
func (i *Instance) ReadSnapshot(ctx context.Context, e leadership.Election) (leadership.JournalSnapshot, error) {
	if i.ledger == nil {
		return leadership.JournalSnapshot{}, errNoJournal
	}
	return i.ledger.ReadSnapshot(ctx, e)
}

// FollowJournal opens a stream of the entries after r.After, to be closed by its owner.
//
// Errors: those of ReadJournal.
func (i *Instance) FollowJournal(ctx context.Context, r leadership.JournalRequest) (*JournalFeed, error) {
	if i.ledger == nil {
		return nil, errNoJournal
	}
	page, err := i.ledger.ReadJournal(ctx, r)
	if err != nil {
		return nil, err
	}
	return &JournalFeed{instance: i, request: r, page: &page}, nil
}

// inherit reads what the last leader left behind, for one that was just granted the lease. If that
// fails, the caller asks again with its key: it has the lease.
func (i *Instance) inherit(ctx context.Context, g leadership.Grant) (*leadership.Inheritance, error) {
	if i.ledger == nil {
		return nil, errNoJournal
	}
	return i.ledger.Inherit(ctx, g)
}
