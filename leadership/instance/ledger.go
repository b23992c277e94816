package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// inheriting bounds how long a new leader waits for what the last one left behind, and giveBack how
// long a release takes that only the instance waits for.
const (
	inheriting = 5 * time.Second
	giveBack   = 2 * time.Second
)

// inherit reads what the last leader left behind, for a leader that was just granted the lease. If
// that fails, a caller that knows its key asks again; the lease of another is released.
func (i *Instance) inherit(ctx context.Context, g *leadership.Grant, knows bool) (err error) {
	reading, cancel := context.WithTimeout(ctx, inheriting)
	defer cancel()
	if g.Inherited, err = i.ledger.Inherit(reading, *g); err == nil {
		return nil
	}
	if !knows {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
		defer cancel()
		_, released := i.Release(late, leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token})
		i.note(released)
		return fmt.Errorf("instance: what the last leader of election %q left behind could not be read, so the lease was given back: %w", g.Election, err)
	}
	if errors.Is(err, leadership.RecordCorrupt) {
		return err
	}
	return fmt.Errorf("instance: %w: %q leads election %q, and what the last leader left behind could not be read; ask again with the same key: %v",
		leadership.OutcomeUnknown, g.LeaderID, g.Election, err)
}
