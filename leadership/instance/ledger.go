package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
)

// AppendJournal adds entries to a journal; see service.Ledger. Streams at this instance get them at
// once.
func (i *Instance) AppendJournal(ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	h, err := i.ledger.AppendJournal(ctx, r)
	if err == nil {
		i.hub.Appended(r.Election, h.Index)
		i.roll.appended(r.Election, h.Index)
	}
	return h, err
}

// ReadJournal reads a part of a journal; see service.Ledger. With r.Member the reader counts as a
// follower that has applied the entries up to r.Applied, for 30 s or for as long as it has joined.
//
// Errors: those of service.Ledger; LimitExceeded if this instance has no room for a member.
func (i *Instance) ReadJournal(ctx context.Context, r leadership.JournalRequest) (leadership.JournalPage, error) {
	page, err := i.ledger.ReadJournal(ctx, r)
	if err != nil {
		return page, err
	}
	if r.Member != "" {
		err = i.roll.applied(leadership.Actor(ctx), r)
	}
	i.hub.Appended(r.Election, page.Index)
	return page, err
}

// FollowJournal opens a stream of the entries after r.After, which the caller must close. With
// r.Member the reader counts as a follower while the stream is open, and has applied the entries up
// to r.Applied; it reports further progress by ReadJournal, or by another stream.
//
// Errors: those of ReadJournal.
func (i *Instance) FollowJournal(ctx context.Context, r leadership.JournalRequest) (*JournalFeed, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	feed, err := i.journals.open(ctx, r)
	if err != nil || r.Member == "" {
		return feed, err
	}
	if feed.left, err = i.roll.follow(leadership.Actor(ctx), r); err != nil {
		feed.left = func() {}
		feed.Close()
		return nil, err
	}
	return feed, nil
}

// JournalStats returns how many streams of journals are open, and the largest known lag, in
// entries, of a member at this instance.
func (i *Instance) JournalStats() (feeds, lag int64) {
	return i.journals.stats(), int64(i.roll.lag())
}

// inheriting limits how long a new leader waits for Inherit, and giveBack how long the instance
// takes to release a lease on its own account.
const (
	inheriting = 5 * time.Second
	giveBack   = 2 * time.Second
)

// inherit adds the state that earlier leaders left to a new grant. If that fails, a caller that
// knows its key can ask again; otherwise the lease is released.
func (i *Instance) inherit(ctx context.Context, g *leadership.Grant, knows bool) (err error) {
	reading, cancel := context.WithTimeout(ctx, inheriting)
	defer cancel()
	if err = i.ledger.Inherit(reading, g); err == nil {
		return nil
	}
	if !knows {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
		defer cancel()
		_, released := i.Do(late, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}})
		i.note(released)
		return fmt.Errorf("instance: what the last leader of election %q left behind could not be read, so the lease was given back: %w", g.Election, err)
	}
	if errors.Is(err, leadership.RecordCorrupt) {
		return err
	}
	return fmt.Errorf("instance: %w: %q leads election %q, and what the last leader left behind could not be read; ask again with the same key: %v",
		leadership.OutcomeUnknown, g.LeaderID, g.Election, err)
}
