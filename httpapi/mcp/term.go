package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// term is a lease of a caller.
type term struct {
	lease *client.Lease
	keep  time.Duration

	mu      sync.Mutex
	notices []notice        // since the caller has asked last; guarded by mu
	journal *client.Journal // nil until it is used; guarded by mu
}

// maxNotices is how many notices wait for the caller.
const maxNotices = 50

type notice struct {
	Kind         client.NoticeKind `json:"kind"`
	FencingToken leadership.Token  `json:"fencingToken"`
	LeftMs       int64             `json:"leftMs"`
}

func (t *term) note(n client.Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices = append(t.notices, notice{n.Kind, n.Token, n.Left.Milliseconds()})
	t.notices = t.notices[max(len(t.notices)-maxNotices, 0):]
}

// recall puts earlier notices before those of this term.
func (t *term) recall(earlier []notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices = append(earlier, t.notices...)
}

// heard returns the notices since the last call.
func (t *term) heard() []notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	heard := append([]notice{}, t.notices...)
	t.notices = nil
	return heard
}

func (t *term) standing() standing {
	l := t.lease
	left, ends := l.Remaining(), l.EndsBy()
	return standing{
		Leading: left > 0, Election: l.Election(), CandidateID: l.CandidateID(), FencingToken: l.Token(),
		LeadsForMs: left.Milliseconds(), EndsBecause: ends.Because, EndsInMs: ends.Left.Milliseconds(),
	}
}

func (t *term) led(handle string) leadOutput {
	return leadOutput{Handle: handle, standing: t.standing(), LeaseDuration: wire.Duration(t.lease.Duration()), Keep: wire.Duration(t.keep), Inherited: inherited(t.lease.Inherited())}
}

// releaseTimeout limits the release of a lease that no caller waits for.
const releaseTimeout = 5 * time.Second

// release gives a lease back, if there is one, also after ctx has ended.
func (t *term) release(ctx context.Context) error {
	if t == nil || t.lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if t.lease.EndsBy().MustRunOut() {
		t.lease.LetEnd()
		return nil
	}
	return t.lease.Resign(ctx)
}

// append appends to the journal. After an unknown outcome the same journal is used again: it knows
// after which index the entries belong.
func (t *term) append(ctx context.Context, entries []client.Entry) (leadership.Index, error) {
	journal, err := t.opened(ctx)
	if err != nil {
		return 0, err
	}
	index, err := journal.Append(ctx, entries...)
	if errors.Is(err, leadership.IndexMismatch) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.journal = nil
	}
	return index, err
}

func (t *term) opened(ctx context.Context) (*client.Journal, error) {
	t.mu.Lock()
	journal := t.journal
	t.mu.Unlock()
	if journal != nil {
		return journal, nil
	}
	journal, err := t.lease.Journal(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.journal == nil {
		t.journal = journal
	}
	return t.journal, nil
}

// checkpoint is what a leader has left.
type checkpoint struct {
	FencingToken leadership.Token       `json:"fencingToken"`
	LeaderID     leadership.CandidateID `json:"leaderId"`
	Task         string                 `json:"task,omitzero"`
	At           time.Time              `json:"at"`
	EndedBecause leadership.EndReason   `json:"endedBecause,omitzero"`
	Data         jsontext.Value         `json:"data,omitzero"`
	URI          string                 `json:"uri,omitzero"`
	SHA256       string                 `json:"sha256,omitzero"`
}

func newCheckpoint(p leadership.Checkpoint) checkpoint {
	return checkpoint{FencingToken: p.Token, LeaderID: p.LeaderID, Task: p.Task, At: p.At.UTC(), Data: jsontext.Value(p.Data), URI: p.URI, SHA256: p.SHA256}
}

func inherited(i *leadership.Inheritance) *checkpoint {
	if i == nil {
		return nil
	}
	p := newCheckpoint(i.Checkpoint)
	p.EndedBecause = i.EndedBecause
	return &p
}
