package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"unicode/utf8"

	"regent/leadership"
)

// Inherited returns the checkpoint that the last leader had left when this lease was granted, and
// why its term ended; nil if there is none, or if Candidate.Inherit is not set.
func (l *Lease) Inherited() *leadership.Inheritance { return l.inherited }

// Checkpoint replaces the election's checkpoint, for the next leader to inherit: data is anything
// that encoding/json can write, at most leadership.MaxCheckpointBytes of it (a json.RawMessage is
// taken as it is), and task one line that describes it. It blocks until the checkpoint is durable,
// and retries while the server cannot be reached, until ctx or the lease ends.
//
// Errors: leadership.TokenStale, once a later leader has inherited; leadership.LeaseLost;
// leadership.PayloadTooLarge, for which CheckpointAt is the remedy; leadership.OutcomeUnknown; the
// cause, if the lease or ctx has ended.
func (l *Lease) Checkpoint(ctx context.Context, task string, data any) error {
	text, err := encoded("data", data)
	if err != nil {
		return err
	}
	_, err = l.PutCheckpoint(ctx, leadership.CheckpointRequest{Task: task, Data: text})
	return err
}

// CheckpointAt is Checkpoint for data that is elsewhere. sha256 is its sum in hexadecimal, or
// empty.
func (l *Lease) CheckpointAt(ctx context.Context, task, uri, sha256 string) error {
	_, err := l.PutCheckpoint(ctx, leadership.CheckpointRequest{Task: task, URI: uri, SHA256: sha256})
	return err
}

// PutCheckpoint is Checkpoint for a caller that counts its checkpoints itself, so that it can
// repeat a call. It returns leadership.IndexMismatch if c.Sequence is not the next sequence; 0
// selects the next one. It fills in c.LeaseRequest.
func (l *Lease) PutCheckpoint(ctx context.Context, c leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	return persist(ctx, l, func(ctx context.Context, r leadership.LeaseRequest) (leadership.Checkpoint, error) {
		c.LeaseRequest = r
		if c.Sequence != 0 {
			return l.client.putCheckpoint(ctx, c)
		}
		return l.client.putNextCheckpoint(ctx, c, &l.checkpoints)
	})
}

// Entry is an entry to append to a journal.
type Entry struct {
	Type string // at most leadership.MaxEntryTypeBytes bytes; may be empty
	Data any    // anything that encoding/json can write; a json.RawMessage is taken as it is
}

// Journal is the journal of an election, to which its leader appends. Its methods may be called
// concurrently; appends are made one after the other.
type Journal struct {
	lease *Lease
	turn  chan struct{} // capacity 1: holds a value while an append is in progress

	mu    sync.Mutex
	index leadership.Index // guarded by mu
}

// Journal opens the election's journal for the leader: no earlier leader can append to it any more,
// so Read then returns all entries. It retries as Checkpoint does, with the same errors.
func (l *Lease) Journal(ctx context.Context) (*Journal, error) {
	head, err := persist(ctx, l, l.client.OpenJournal)
	if err != nil {
		return nil, err
	}
	return l.JournalAfter(head.Index), nil
}

// JournalAfter is Journal for a leader that already knows the index of the last entry. It makes no
// call: the first Append keeps earlier leaders out, and is refused with leadership.IndexMismatch if
// one of them has appended after i.
func (l *Lease) JournalAfter(i leadership.Index) *Journal {
	return &Journal{lease: l, turn: make(chan struct{}, 1), index: i}
}

// Index returns the index of the last entry that the leader knows of; 0 if there is none.
func (j *Journal) Index() leadership.Index {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index
}

func (j *Journal) moveTo(i leadership.Index) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index = max(j.index, i)
}

// Append adds entries after Index, all or none, and returns the index of the last one. The entries
// are durable when it returns. It takes up to leadership.MaxEntries entries with
// leadership.MaxAppendBytes of data, which it never splits. It retries while the server cannot be
// reached or has not answered, until ctx or the lease ends.
//
// After leadership.OutcomeUnknown the entries may be in the journal, or may still get there. Repeat
// the call to find out: the entries are appended once. A call with other entries is refused with
// leadership.IndexMismatch if these are there. Lease.Journal opens the journal anew, with its
// present index.
//
// Errors: those of Lease.Checkpoint.
func (j *Journal) Append(ctx context.Context, entries ...Entry) (leadership.Index, error) {
	r := leadership.AppendRequest{}
	for i, e := range entries {
		text, err := encoded(fmt.Sprintf("entries/%d/data", i), e.Data)
		if err != nil {
			return 0, err
		}
		r.Entries = append(r.Entries, leadership.Entry{Type: e.Type, Data: text})
	}
	select {
	case j.turn <- struct{}{}:
		defer func() { <-j.turn }()
	case <-ctx.Done():
		return 0, about(j.lease.named(), context.Cause(ctx))
	}
	r.After = j.Index()
	end := r.After + leadership.Index(len(entries))
	head, err := persist(ctx, j.lease, func(ctx context.Context, lease leadership.LeaseRequest) (leadership.JournalHead, error) {
		r.LeaseRequest = lease
		head, err := j.lease.client.AppendJournal(ctx, r)
		if err == nil && head.Index != end {
			err = misread("append to journal", true, fmt.Errorf("it says index %d, not %d", head.Index, end))
		}
		return head, err
	})
	if err != nil {
		return 0, err
	}
	j.moveTo(head.Index)
	return head.Index, nil
}

// Snapshot replaces all entries up to the index upTo with a snapshot: data is anything that
// encoding/json can write, at most leadership.MaxSnapshotBytes of it. The entries are deleted, and
// readers that need them get the snapshot instead. Errors: those of Append.
func (j *Journal) Snapshot(ctx context.Context, upTo leadership.Index, data any) error {
	text, err := encoded("data", data)
	if err != nil {
		return err
	}
	return j.snapshot(ctx, leadership.SnapshotRequest{UpTo: upTo, Data: text})
}

// SnapshotAt is Snapshot for data that is elsewhere.
func (j *Journal) SnapshotAt(ctx context.Context, upTo leadership.Index, uri string) error {
	return j.snapshot(ctx, leadership.SnapshotRequest{UpTo: upTo, URI: uri})
}

func (j *Journal) snapshot(ctx context.Context, s leadership.SnapshotRequest) error {
	_, err := persist(ctx, j.lease, func(ctx context.Context, r leadership.LeaseRequest) (leadership.JournalHead, error) {
		s.LeaseRequest = r
		return j.lease.client.SnapshotJournal(ctx, s)
	})
	return err
}

// Read yields the journal's items after an index, up to Index as it is when the loop begins: first
// a snapshot if that has replaced some of these entries, and then each entry once, in order and
// without a gap. An error is the last iteration.
func (j *Journal) Read(ctx context.Context, after leadership.Index) iter.Seq2[JournalItem, error] {
	return func(yield func(JournalItem, error) bool) {
		f := &journalReader{client: j.lease.client, election: j.lease.Election(), last: after, yield: yield}
		if err := f.readUpTo(ctx, j.Index()); err != nil && err != errLeft {
			yield(JournalItem{}, err)
		}
	}
}

// encoded returns the JSON text of a value.
func encoded(field string, v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, invalid(field, "%s: %v", field, err)
	case !utf8.Valid(text): // of a json.RawMessage
		return nil, invalid(field, "%s is not in UTF-8", field)
	}
	return text, nil
}
