package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"

	"regent/leadership"
	"regent/leadership/wire"
)

// Delegate makes an election for a part of the caller's task, and returns it; see
// rule.Delegate.
func (c *Client) Delegate(ctx context.Context, r leadership.DelegateRequest) (leadership.Lease, error) {
	k := post("delegate", wire.VerbDelegate, wire.NewDelegateRequest(r))
	var answer wire.Lease
	k.answer = &answer
	if err := c.about(ctx, r.Election, k); err != nil {
		return leadership.Lease{}, err
	}
	lease, err := answer.Leadership()
	if err == nil {
		err = expected{election: leadership.Election(string(r.Election) + "." + r.Child)}.match(lease)
	}
	if err != nil {
		return leadership.Lease{}, misread(k.name, k.mutates, err)
	}
	return lease, nil
}

// Tree reads an election and what was delegated below it, the parents before their children.
func (c *Client) Tree(ctx context.Context, e leadership.Election) (leadership.Tree, error) {
	var answer wire.Tree
	k := call{name: "tree", method: http.MethodGet, suffix: wire.TreePath, answer: &answer}
	if err := c.about(ctx, e, k); err != nil {
		return leadership.Tree{}, err
	}
	tree, err := answer.Leadership()
	if err != nil {
		return tree, misread(k.name, k.mutates, err)
	}
	return tree, k.matchElection(answer.Election, e)
}

// post is a call with a body.
func post(name string, verb wire.Verb, body any) call {
	row := verb.Row()
	return call{name: name, method: row.Method, suffix: row.Suffix(), mutates: row.Changes(), body: body}
}

// PutCheckpoint replaces the checkpoint of the election; see service.Ledger. If the request has
// no sequence, it is the next one, whichever that is.
func (c *Client) PutCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	if r.Sequence == 0 {
		return c.putNextCheckpoint(ctx, r, new(atomic.Int64))
	}
	return c.putCheckpoint(ctx, r)
}

// putNextCheckpoint puts a checkpoint after those that are known of, and learns how many there are.
func (c *Client) putNextCheckpoint(ctx context.Context, r leadership.CheckpointRequest, known *atomic.Int64) (leadership.Checkpoint, error) {
	for {
		r.Sequence = known.Load() + 1
		p, err := c.putCheckpoint(ctx, r)
		refusal, _ := errors.AsType[*leadership.Error](err)
		switch {
		case err == nil:
			known.Store(p.Sequence)
		case errors.Is(err, leadership.IndexMismatch) && int64(refusal.Index) != r.Sequence-1:
			known.Store(int64(refusal.Index))
			continue
		}
		return p, err
	}
}

func (c *Client) putCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	var answer wire.Checkpoint
	k := post("put checkpoint", wire.VerbPutCheckpoint, wire.NewCheckpointRequest(r))
	k.answer = &answer
	if err := c.about(ctx, r.Election, k); err != nil {
		return leadership.Checkpoint{}, err
	}
	return answer.Leadership(), k.matchElection(answer.Election, r.Election)
}

// Checkpoint reads the checkpoint of an election. NotFound: it has none.
func (c *Client) Checkpoint(ctx context.Context, e leadership.Election) (leadership.Checkpoint, error) {
	var answer wire.Checkpoint
	k := call{name: "checkpoint", method: http.MethodGet, suffix: wire.CheckpointPath, answer: &answer}
	if err := c.about(ctx, e, k); err != nil {
		return leadership.Checkpoint{}, err
	}
	return answer.Leadership(), k.matchElection(answer.Election, e)
}

// OpenJournal keeps earlier leaders from appending to the journal, and returns where it stands; see
// service.Ledger.
func (c *Client) OpenJournal(ctx context.Context, r leadership.LeaseRequest) (leadership.JournalHead, error) {
	return c.journalHead(ctx, r.Election, post("open journal", wire.VerbOpenJournal, wire.NewHolder(r)))
}

// AppendJournal adds entries to the journal, all or none; see service.Ledger.
func (c *Client) AppendJournal(ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	return c.journalHead(ctx, r.Election, post("append to journal", wire.VerbAppendJournal, wire.NewAppendRequest(r)))
}

// SnapshotJournal puts a snapshot in the place of the first entries; see service.Ledger.
func (c *Client) SnapshotJournal(ctx context.Context, r leadership.SnapshotRequest) (leadership.JournalHead, error) {
	return c.journalHead(ctx, r.Election, post("put snapshot", wire.VerbSnapshotJournal, wire.NewSnapshotRequest(r)))
}

func (c *Client) journalHead(ctx context.Context, e leadership.Election, k call) (leadership.JournalHead, error) {
	var answer wire.JournalHead
	k.answer = &answer
	if err := c.about(ctx, e, k); err != nil {
		return leadership.JournalHead{}, err
	}
	return answer.Leadership(), k.matchElection(answer.Election, e)
}

// ReadSnapshot reads the newest snapshot of a journal. NotFound: it has none.
func (c *Client) ReadSnapshot(ctx context.Context, e leadership.Election) (leadership.JournalSnapshot, error) {
	var answer wire.JournalSnapshot
	k := call{name: "read snapshot", method: http.MethodGet, suffix: wire.JournalPath + wire.SnapshotPath, answer: &answer}
	if err := c.about(ctx, e, k); err != nil {
		return leadership.JournalSnapshot{}, err
	}
	return answer.Leadership(), k.matchElection(answer.Election, e)
}

// ReadJournal reads a part of a journal: entries in their order and without a gap.
// HistoryCompacted: they are only to be had as a snapshot.
func (c *Client) ReadJournal(ctx context.Context, r leadership.JournalRequest) (leadership.JournalPage, error) {
	query := url.Values{}
	setNumber(query, "after", int64(r.After))
	setNumber(query, "generation", int64(r.Generation))
	setNumber(query, "limit", int64(r.Limit))
	setText(query, "member", string(r.Member))
	setNumber(query, "applied", int64(r.Applied))
	var answer wire.JournalPage
	k := call{name: "journal", method: http.MethodGet, suffix: wire.JournalPath, query: query, answer: &answer}
	if err := c.about(ctx, r.Election, k); err != nil {
		return leadership.JournalPage{}, err
	}
	return answer.Leadership(), k.matchElection(answer.Election, r.Election)
}
