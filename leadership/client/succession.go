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
	return c.lease(ctx, expected{election: r.Election, child: r.Child}, post("delegate", wire.VerbDelegate, wire.NewDelegateRequest(r)))
}

// Tree reads an election and the elections delegated below it, parents before their children.
func (c *Client) Tree(ctx context.Context, e leadership.Election) (leadership.Tree, error) {
	return askFor(ctx, c, e, look("tree", wire.TreePath), new(wire.Tree), func(t leadership.Tree) error {
		return expected{election: e}.match(t.Leases[0])
	})
}

// ask makes a call about an election, and returns its reply, for which isIt must return true.
func ask[T any](ctx context.Context, c *Client, e leadership.Election, k call, isIt func(T) bool) (answer T, err error) {
	k.answer = &answer
	if err := c.about(ctx, e, k); err != nil {
		return *new(T), err
	}
	if !isIt(answer) {
		return *new(T), misread(k.name, k.mutates, errors.New("it is about something else"))
	}
	return answer, nil
}

func look(name, suffix string) call { return call{name: name, method: http.MethodGet, suffix: suffix} }

func post(name string, verb wire.Verb, body any) call {
	row := verb.Row()
	return call{name: name, method: row.Method, suffix: row.Suffix(), mutates: row.Changes(), body: body}
}

// PutCheckpoint replaces the checkpoint of the election; see service.Ledger. A Sequence of 0
// selects the next one.
func (c *Client) PutCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	if r.Sequence == 0 {
		return c.putNextCheckpoint(ctx, r, new(atomic.Int64))
	}
	return c.putCheckpoint(ctx, r)
}

// putNextCheckpoint puts a checkpoint with the sequence after known. If that is not the next one,
// it learns the right sequence from the refusal and tries again.
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
	return c.checkpoint(ctx, r.Election, post("put checkpoint", wire.VerbPutCheckpoint, wire.NewCheckpointRequest(r)))
}

// Checkpoint reads the checkpoint of an election. NotFound: it has none.
func (c *Client) Checkpoint(ctx context.Context, e leadership.Election) (leadership.Checkpoint, error) {
	return c.checkpoint(ctx, e, look("checkpoint", wire.CheckpointPath))
}

func (c *Client) checkpoint(ctx context.Context, e leadership.Election, k call) (leadership.Checkpoint, error) {
	return ask(ctx, c, e, k, func(answer leadership.Checkpoint) bool { return answer.Election == e })
}

// OpenJournal keeps earlier leaders from appending to the journal, and returns its head; see
// service.Ledger.
func (c *Client) OpenJournal(ctx context.Context, r leadership.LeaseRequest) (leadership.JournalHead, error) {
	return c.journalHead(ctx, r.Election, post("open journal", wire.VerbOpenJournal, wire.NewHolder(r)))
}

// AppendJournal adds entries to the journal, all or none; see service.Ledger.
func (c *Client) AppendJournal(ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	return c.journalHead(ctx, r.Election, post("append to journal", wire.VerbAppendJournal, wire.NewAppendRequest(r)))
}

// SnapshotJournal replaces the first entries with a snapshot; see service.Ledger.
func (c *Client) SnapshotJournal(ctx context.Context, r leadership.SnapshotRequest) (leadership.JournalHead, error) {
	return c.journalHead(ctx, r.Election, post("put snapshot", wire.VerbSnapshotJournal, wire.NewSnapshotRequest(r)))
}

func (c *Client) journalHead(ctx context.Context, e leadership.Election, k call) (leadership.JournalHead, error) {
	return ask(ctx, c, e, k, func(answer leadership.JournalHead) bool { return answer.Election == e })
}

// ReadSnapshot reads the newest snapshot of a journal. NotFound: it has none.
func (c *Client) ReadSnapshot(ctx context.Context, e leadership.Election) (leadership.JournalSnapshot, error) {
	return ask(ctx, c, e, look("read snapshot", wire.JournalPath+wire.SnapshotPath), func(answer leadership.JournalSnapshot) bool { return answer.Election == e })
}

// ReadJournal reads a part of a journal: entries in order and without a gap. HistoryCompacted: a
// snapshot has replaced them.
func (c *Client) ReadJournal(ctx context.Context, r leadership.JournalRequest) (leadership.JournalPage, error) {
	query := url.Values{}
	setNumber(query, "after", int64(r.After))
	setNumber(query, "generation", int64(r.Generation))
	setNumber(query, "limit", int64(r.Limit))
	setText(query, "member", string(r.Member))
	setNumber(query, "applied", int64(r.Applied))
	k := look("journal", wire.JournalPath)
	k.query = query
	return ask(ctx, c, r.Election, k, func(answer leadership.JournalPage) bool { return answer.Election == r.Election })
}
