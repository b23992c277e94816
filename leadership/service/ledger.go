package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"regent/leadership"
	"regent/leadership/internal/form"
	"regent/leadership/rule"
)

// Ledger keeps checkpoints, journals, effects and proposals. It validates requests, verifies
// leases, and runs the rules in the transactions of a Journal.
type Ledger struct {
	service *Service
	journal Journal

	// Told, if set, is called after each Propose and Decide with the resulting proposals, and
	// whether the proposal of the call is open. It must not block.
	Told func(all leadership.Proposals, open bool)
}

// NewLedger returns a ledger on the journal, which must be in the store of the service.
func NewLedger(service *Service, journal Journal) *Ledger {
	return &Ledger{service: service, journal: journal}
}

type wholeKey struct{}

// WithWhole returns a context with which a Ledger stores in bytes the size of all effects, or all
// proposals, of the election: a call reads them all, and writes them all if it changes one.
func WithWhole(ctx context.Context, bytes *atomic.Int64) context.Context {
	return context.WithValue(ctx, wholeKey{}, bytes)
}

// tellWhole stores the size of the log for WithWhole.
func tellWhole(ctx context.Context, log rule.Log) {
	if bytes, ok := ctx.Value(wholeKey{}).(*atomic.Int64); ok {
		bytes.Store(int64(len(log.Body)))
	}
}

func checkpoint(r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	p := leadership.Checkpoint{Sequence: r.Sequence, Task: r.Task, URI: r.URI, SHA256: strings.ToLower(r.SHA256)}
	if r.Sequence < 1 {
		return p, leadership.Invalid("sequence", fmt.Errorf("sequence is 1 for the first checkpoint of a leader and one more for each that follows, not %d", r.Sequence))
	}
	if err := form.Line("task", r.Task); err != nil {
		return p, leadership.Invalid("task", err)
	}
	var err error
	if p.Data, err = oneOf(r.Data, r.URI, leadership.MaxCheckpointBytes); err != nil {
		return p, err
	}
	if sum, err := hex.DecodeString(p.SHA256); p.SHA256 != "" && (err != nil || len(sum) != 32 || r.URI == "") {
		return p, leadership.Invalid("sha256", errors.New("sha256 is 64 hexadecimal digits, and stands beside a uri"))
	}
	return p, nil
}

// oneOf accepts either JSON of at most that many bytes, which it returns without spaces, or a URI.
func oneOf(data json.RawMessage, uri string, most int) (json.RawMessage, error) {
	switch {
	case (len(data) == 0) == (uri == ""):
		return nil, leadership.Invalid("data", errors.New("send data, or the uri of where it is"))
	case uri != "":
		if len(uri) > leadership.MaxURIBytes || !utf8.ValidString(uri) || strings.ContainsFunc(uri, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }) || !strings.Contains(uri, ":") {
			return nil, leadership.Invalid("uri", fmt.Errorf("uri is a URI of at most %d bytes, without spaces", leadership.MaxURIBytes))
		}
		return nil, nil
	}
	return small("data", data, most, "and send its uri")
}

// small returns the JSON without spaces, or an error if that is too long; nil if data is empty.
func small(field string, data json.RawMessage, most int, remedy string) (json.RawMessage, error) {
	if len(data) == 0 {
		return nil, nil
	}
	data, err := compact(field, data)
	if err == nil && len(data) > most {
		err = &leadership.Error{Code: leadership.PayloadTooLarge, Field: field, Detail: fmt.Sprintf(
			"%s has at most %d bytes of JSON, and this one has %d; put it elsewhere, %s", field, most, len(data), remedy)}
	}
	return data, err
}

// compact returns the JSON without spaces.
func compact(field string, data json.RawMessage) (json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, leadership.Invalid(field, fmt.Errorf("%s is JSON in UTF-8", field))
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, leadership.Invalid(field, fmt.Errorf("%s is JSON: %w", field, err))
	}
	return b.Bytes(), nil
}

// PutCheckpoint replaces the checkpoint of the election. The caller's lease is verified when it
// first puts one; from then on the log's mark guards it. A late copy of an earlier call is
// recognized by its sequence and changes nothing. Repeating the last call gives the same answer.
// The sequence continues in a new epoch.
//
// Errors: TokenStale, once a later leader has inherited; IndexMismatch, with the present sequence
// as its Index, if r.Sequence is not the next one; LeaseLost; InvalidArgument; PayloadTooLarge.
func (l *Ledger) PutCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	c, err := renewal(r.LeaseRequest)
	if err != nil {
		return leadership.Checkpoint{}, err
	}
	p, err := checkpoint(r)
	if err != nil {
		return leadership.Checkpoint{}, err
	}
	log, err := l.write(ctx, rule.LogID{Election: r.Election, Kind: rule.LogCheckpoint}, c, rule.OpenCheckpoint, func(log rule.Log) (rule.LogChange, error) { return rule.PutCheckpoint(log, c, p) })
	return of(log, err, rule.Log.Checkpoint)
}

// write runs a rule on a log. If the leader has not opened the log yet, it opens it first.
func (l *Ledger) write(ctx context.Context, id rule.LogID, c rule.Renewal, open func(rule.Log, rule.Renewal) (rule.LogChange, error), decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	log, err := l.journal.Amend(ctx, id, decide)
	if !errors.Is(err, rule.ErrUnopened) {
		return log, err
	}
	if _, err := l.open(ctx, id, c, open); err != nil {
		return rule.Log{}, err
	}
	return l.journal.Amend(ctx, id, decide)
}

// open verifies the lease, and raises the log's mark to its token.
func (l *Ledger) open(ctx context.Context, id rule.LogID, c rule.Renewal, decide func(rule.Log, rule.Renewal) (rule.LogChange, error)) (rule.Log, error) {
	snap, err := l.service.store.Get(ctx, id.Election)
	if err != nil {
		return rule.Log{}, err
	}
	if !snap.Leads(c) {
		return rule.Log{}, snap.RefuseLost(c)
	}
	return l.journal.Amend(ctx, id, func(log rule.Log) (rule.LogChange, error) { return decide(log, c) })
}

// Checkpoint reads the checkpoint of an election, strongly. Error: NotFound, if there is none.
func (l *Ledger) Checkpoint(ctx context.Context, e leadership.Election) (leadership.Checkpoint, error) {
	p, err := look(ctx, l, rule.LogID{Election: e, Kind: rule.LogCheckpoint}, rule.Log.Checkpoint)
	if err == nil && p.Token == 0 {
		err = &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf("election %q has no checkpoint; its leader puts one", e)}
	}
	return p, err
}

// look reads the head of a log, strongly.
func look[T any](ctx context.Context, l *Ledger, id rule.LogID, read func(rule.Log) (T, error)) (T, error) {
	if err := id.Election.Validate(); err != nil {
		return *new(T), leadership.Invalid("election", err)
	}
	log, err := l.journal.Look(ctx, id)
	return of(log, err, read)
}

// of returns err, or read(log) if err is nil.
func of[T any](log rule.Log, err error, read func(rule.Log) (T, error)) (T, error) {
	if err != nil {
		return *new(T), err
	}
	return read(log)
}

// Inherit adds to a new grant the state that earlier leaders left: the last checkpoint, unless the
// caller has put it itself, and the effects in doubt. It first raises the marks, so that no write
// of an earlier leader can follow; the mark of effects only if there are any, for BeginEffect finds
// those that come later. It also adds the open proposals, which need no mark: decisions of earlier
// leaders are valid until the caller decides one.
//
// Error: TokenStale, if a later leader has inherited.
func (l *Ledger) Inherit(ctx context.Context, g *leadership.Grant) error {
	c := rule.Renewal{Election: g.Election, CandidateID: g.LeaderID, KeyHash: g.Key.Hash(), Token: g.Token}
	log, err := l.journal.Amend(ctx, rule.LogID{Election: g.Election, Kind: rule.LogCheckpoint}, func(log rule.Log) (rule.LogChange, error) { return rule.OpenCheckpoint(log, c) })
	if err != nil {
		return err
	}
	p, err := log.Checkpoint()
	if err != nil {
		return err
	}
	if p.Token != 0 && p.Token != g.Token {
		g.Inherited = &leadership.Inheritance{Checkpoint: p}
		if p.Token == g.Token-1 {
			g.Inherited.EndedBecause = g.PreviousEnd
		}
	}
	if g.InDoubt, err = l.inDoubt(ctx, c); err != nil {
		return err
	}
	all, err := l.LookAtProposals(ctx, g.Election, g.ReadAt.Add(-clocksApart))
	g.Proposals = all.Open
	return err
}

// clocksApart is more than the clocks of one store's servers differ.
const clocksApart = time.Second

// OpenJournal verifies the caller's lease and raises the journal's mark to its token. No earlier
// leader can append after that, so entries read from then on are complete. Idempotent. A new epoch
// alone does not raise the mark: appends under the previous token succeed until the leader opens
// the journal, or appends, under the next one.
//
// Errors: LeaseLost; TokenStale.
func (l *Ledger) OpenJournal(ctx context.Context, r leadership.LeaseRequest) (leadership.JournalHead, error) {
	c, err := renewal(r)
	if err != nil {
		return leadership.JournalHead{}, err
	}
	log, err := l.open(ctx, rule.LogID{Election: r.Election, Kind: rule.LogJournal}, c, rule.OpenJournal)
	return of(log, err, rule.Log.Journal)
}

// Head reads the head of a journal, strongly.
func (l *Ledger) Head(ctx context.Context, e leadership.Election) (leadership.JournalHead, error) {
	return look(ctx, l, rule.LogID{Election: e, Kind: rule.LogJournal}, rule.Log.Journal)
}

func entries(r leadership.AppendRequest) ([]leadership.Entry, error) {
	if r.After < 0 {
		return nil, leadership.Invalid("after", fmt.Errorf("after is an index, 0 or more, not %d", r.After))
	}
	if n := len(r.Entries); n < 1 || n > leadership.MaxEntries {
		return nil, leadership.Invalid("entries", fmt.Errorf("an append has from 1 to %d entries, not %d", leadership.MaxEntries, n))
	}
	all, size := make([]leadership.Entry, len(r.Entries)), 0
	for i, e := range r.Entries {
		field := fmt.Sprintf("entries/%d", i)
		if len(e.Type) > leadership.MaxEntryTypeBytes || form.Text(e.Type) != nil {
			return nil, leadership.Invalid(field+"/type", fmt.Errorf("type is one line of at most %d bytes", leadership.MaxEntryTypeBytes))
		}
		data, err := compact(field+"/data", e.Data)
		if err != nil {
			return nil, err
		}
		if len(data) > leadership.MaxAppendBytes {
			return nil, &leadership.Error{Code: leadership.PayloadTooLarge, Field: field + "/data", Detail: fmt.Sprintf(
				"the data of an entry has at most %d bytes of JSON, and this one has %d; put it elsewhere, and append where it is", leadership.MaxAppendBytes, len(data))}
		}
		size += len(data)
		all[i] = leadership.Entry{Token: r.Token, Type: e.Type, Data: data}
	}
	if size > leadership.MaxAppendBytes {
		return nil, &leadership.Error{Code: leadership.PayloadTooLarge, Field: "entries", Detail: fmt.Sprintf(
			"the data of one append has at most %d bytes of JSON together, and this one has %d; append it in parts", leadership.MaxAppendBytes, size)}
	}
	return all, nil
}

// AppendJournal adds entries after the index r.After; all or none. They are durable when it
// returns. After a lost reply, repeat the call to get the same answer. It also opens the journal
// for the leader, if needed.
//
// Errors: IndexMismatch, with the present index; TokenStale, once a later leader has opened it;
// LeaseLost; LimitExceeded, until a snapshot makes room; InvalidArgument; PayloadTooLarge.
func (l *Ledger) AppendJournal(ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	c, err := renewal(r.LeaseRequest)
	if err != nil {
		return leadership.JournalHead{}, err
	}
	entries, err := entries(r)
	if err != nil {
		return leadership.JournalHead{}, err
	}
	log, err := l.write(ctx, rule.LogID{Election: r.Election, Kind: rule.LogJournal}, c, rule.OpenJournal, func(log rule.Log) (rule.LogChange, error) { return rule.AppendEntries(log, c, r.After, entries) })
	return of(log, err, rule.Log.Journal)
}

// SnapshotJournal replaces entries with a snapshot. Idempotent. It does nothing if there is a
// snapshot up to a later index.
//
// Errors: IndexMismatch, if the journal has fewer entries; TokenStale; LeaseLost; InvalidArgument,
// also if there is another snapshot up to the same index, which a follower may have read;
// PayloadTooLarge.
func (l *Ledger) SnapshotJournal(ctx context.Context, r leadership.SnapshotRequest) (leadership.JournalHead, error) {
	c, err := renewal(r.LeaseRequest)
	if err != nil {
		return leadership.JournalHead{}, err
	}
	if r.UpTo < 1 {
		return leadership.JournalHead{}, leadership.Invalid("upTo", fmt.Errorf("upTo is an index, 1 or more, not %d", r.UpTo))
	}
	data, err := oneOf(r.Data, r.URI, leadership.MaxSnapshotBytes)
	if err != nil {
		return leadership.JournalHead{}, err
	}
	snapshot := leadership.JournalSnapshot{Token: r.Token, Data: data, URI: r.URI}
	text := rule.HeadText(snapshot)
	id := rule.LogID{Election: r.Election, Kind: rule.LogJournal}
	var stands bool // there is a snapshot up to that index or a later one
	log, err := l.write(ctx, id, c, rule.OpenJournal, func(log rule.Log) (rule.LogChange, error) {
		ch, err := rule.SnapJournal(log, c, r.UpTo, text)
		stands = ch.Text == ""
		return ch, err
	})
	if err == nil && stands {
		err = l.sameSnapshot(ctx, r.Election, r.UpTo, snapshot)
	}
	if err != nil {
		return leadership.JournalHead{}, err
	}
	h, err := log.Journal()
	if err == nil {
		_ = l.journal.Trim(ctx, id, h.Snapshot) // after an error the next snapshot deletes the rest
	}
	return h, err
}

// sameSnapshot refuses a snapshot if there is a different one up to the same index. That one no
// longer changes, so it need not be read together with the head.
func (l *Ledger) sameSnapshot(ctx context.Context, e leadership.Election, upTo leadership.Index, s leadership.JournalSnapshot) error {
	is, err := l.ReadSnapshot(ctx, e)
	if err == nil && is.UpTo == upTo && (is.URI != s.URI || !bytes.Equal(is.Data, s.Data)) {
		err = leadership.Invalid("upTo", fmt.Errorf("the journal of election %q has another snapshot up to index %d already, which stands; append, and put the snapshot up to a later index", e, upTo))
	}
	return err
}

// ReadSnapshot reads the newest snapshot of a journal. Error: NotFound, if there is none.
func (l *Ledger) ReadSnapshot(ctx context.Context, e leadership.Election) (leadership.JournalSnapshot, error) {
	if err := e.Validate(); err != nil {
		return leadership.JournalSnapshot{}, leadership.Invalid("election", err)
	}
	segment, err := l.journal.Snapshot(ctx, rule.LogID{Election: e, Kind: rule.LogJournal})
	switch {
	case err != nil:
		return leadership.JournalSnapshot{}, err
	case segment.Last == 0:
		return leadership.JournalSnapshot{}, &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf("the journal of election %q has no snapshot; read it from index 0", e)}
	}
	var s leadership.JournalSnapshot
	if err := form.Decode([]byte(segment.Data), &s); err != nil {
		return s, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the snapshot of the journal of election %q cannot be read: %v", e, err)}
	}
	s.Election, s.UpTo, s.At = e, segment.Last, segment.At.UTC()
	return s, nil
}

// ReadJournal reads entries, in order and without a gap; fewer than r.Limit if they are large. It
// is strong: it sees every append that was acknowledged before.
//
// Errors: HistoryCompacted, if a snapshot has replaced the next entries, or if r.Generation is not
// the journal's: then everything that the caller has read is void, and it must begin anew from the
// snapshot or, if there is none, from index 0. The error's Index is that of the snapshot, and its
// Generation that of the journal. IndexMismatch, if r.After or r.Applied is beyond the journal's
// last entry: the caller has read another journal.
func (l *Ledger) ReadJournal(ctx context.Context, r leadership.JournalRequest) (leadership.JournalPage, error) {
	if err := r.Validate(); err != nil {
		return leadership.JournalPage{}, err
	}
	limit := cmp.Or(r.Limit, leadership.DefaultPageSize)
	for again := false; ; again = true {
		page, err := l.readJournal(ctx, r.Election, r.After, limit)
		switch known := max(r.After, r.Applied); {
		case err != nil:
			return page, err
		case known > 0 && page.Generation != r.Generation:
			return page, &leadership.Error{Code: leadership.HistoryCompacted, Index: page.Snapshot, Generation: page.Generation, Detail: fmt.Sprintf(
				"the journal of election %q was restored from a backup and is of generation %d, not %d; drop what was read, begin anew from its snapshot or, if there is none, from index 0, and send that generation from then on", r.Election, page.Generation, r.Generation)}
		case page.Index < known:
			return page, &leadership.Error{Code: leadership.IndexMismatch, Index: page.Index, Detail: fmt.Sprintf(
				"the journal of election %q ends at index %d, before %d; it is another one than was read: read it anew from its snapshot or from the start", r.Election, page.Index, known)}
		case len(page.Entries) > 0, page.Index == r.After:
			return page, nil
		case r.After < page.Snapshot:
			return page, &leadership.Error{Code: leadership.HistoryCompacted, Index: page.Snapshot, Generation: page.Generation, Detail: fmt.Sprintf(
				"the journal of election %q is kept from index %d; read its snapshot, and go on after %d", r.Election, page.Snapshot+1, page.Snapshot)}
		case again: // the entry was there before the second read began
			return page, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the journal of election %q is at index %d, and entry %d is missing", r.Election, page.Index, r.After+1)}
		}
	}
}

// readJournal reads the entries that follow the index without a gap, and then the head, so that a
// trim in between is noticed.
func (l *Ledger) readJournal(ctx context.Context, e leadership.Election, after leadership.Index, limit int) (leadership.JournalPage, error) {
	segments, err := l.journal.Segments(ctx, rule.LogID{Election: e, Kind: rule.LogJournal}, after, limit)
	if err != nil {
		return leadership.JournalPage{}, err
	}
	var page leadership.JournalPage
	if page.JournalHead, err = l.Head(ctx, e); err != nil {
		return page, err
	}
	next := after + 1
	for _, s := range segments {
		all, err := s.Entries()
		if err != nil {
			return page, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the journal of election %q: %v", e, err)}
		}
		if s.First > next {
			break
		}
		all = all[min(next-s.First, leadership.Index(len(all))):]
		all = all[:min(limit-len(page.Entries), len(all))]
		page.Entries, next = append(page.Entries, all...), next+leadership.Index(len(all))
	}
	return page, nil
}
