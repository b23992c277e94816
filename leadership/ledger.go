package leadership

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Ledger is what leaders leave behind: checkpoints and journals. It validates, verifies leases, and
// runs the rules in the transactions of a Journal.
type Ledger struct {
	service *Service
	journal Journal
}

// NewLedger returns a ledger on the journal, which must be in the store of the service.
func NewLedger(service *Service, journal Journal) *Ledger { return &Ledger{service, journal} }

// Checkpoint is what a leader leaves behind of its task.
type Checkpoint struct {
	Election Election
	Token    Token // of the leader that put it; 0 if there is none
	LeaderID CandidateID
	// Sequence is how many checkpoints the leader has put that inherited or put last.
	Sequence int64
	Task     string          // one line of at most MaxTaskBytes bytes
	Data     json.RawMessage // any JSON, of at most MaxCheckpointBytes bytes; or
	URI      string          // where it is
	SHA256   string          // of what is at the URI, in hexadecimal
	At       time.Time       // when it was put, by the store's clock
}

// Inheritance is the checkpoint of an earlier term, for its successor.
type Inheritance struct {
	Checkpoint
	EndedBecause EndReason // why the last term ended; "" if that is not known, or another one put it
}

// CheckpointRequest puts a checkpoint.
type CheckpointRequest struct {
	LeaseRequest
	Sequence int64 // 1 for the first checkpoint of the leader, and then one more each time
	Task     string
	Data     json.RawMessage
	URI      string
	SHA256   string
}

func (r CheckpointRequest) checkpoint() (Checkpoint, error) {
	p := Checkpoint{Sequence: r.Sequence, Task: r.Task, URI: r.URI, SHA256: strings.ToLower(r.SHA256)}
	if r.Sequence < 1 {
		return p, invalid("sequence", fmt.Errorf("sequence is 1 for the first checkpoint of a leader and one more for each that follows, not %d", r.Sequence))
	}
	if err := validateLine("task", r.Task); err != nil {
		return p, invalid("task", err)
	}
	var err error
	if p.Data, err = oneOf(r.Data, r.URI, MaxCheckpointBytes); err != nil {
		return p, err
	}
	if sum, err := hex.DecodeString(p.SHA256); p.SHA256 != "" && (err != nil || len(sum) != 32 || r.URI == "") {
		return p, invalid("sha256", errors.New("sha256 is 64 hexadecimal digits, and stands beside a uri"))
	}
	return p, nil
}

// oneOf accepts JSON of so many bytes, made compact, or a URI.
func oneOf(data json.RawMessage, uri string, most int) (json.RawMessage, error) {
	switch {
	case (len(data) == 0) == (uri == ""):
		return nil, invalid("data", errors.New("send data, or the uri of where it is"))
	case uri != "":
		if len(uri) > MaxURIBytes || !utf8.ValidString(uri) || strings.ContainsFunc(uri, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }) || !strings.Contains(uri, ":") {
			return nil, invalid("uri", fmt.Errorf("uri is a URI of at most %d bytes, without spaces", MaxURIBytes))
		}
		return nil, nil
	}
	data, err := compact("data", data)
	if err == nil && len(data) > most {
		err = &Error{Code: PayloadTooLarge, Field: "data", Detail: fmt.Sprintf(
			"data has at most %d bytes of JSON, and this one has %d; put it elsewhere, and send its uri", most, len(data))}
	}
	return data, err
}

// compact is the JSON without spaces.
func compact(field string, data json.RawMessage) (json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, invalid(field, fmt.Errorf("%s is JSON in UTF-8", field))
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, invalid(field, fmt.Errorf("%s is JSON: %w", field, err))
	}
	return b.Bytes(), nil
}

// PutCheckpoint replaces the checkpoint of the election. The caller's lease is verified when it
// first puts one; from then on the log's own mark guards it. The sequence tells a late copy of an
// earlier call: it changes nothing. The same call again gives the same answer, unless another one
// followed. In a new epoch the leader counts on.
//
// Errors: TokenStale, once a later leader has inherited; IndexMismatch, with the present sequence
// as its Index, if the call's does not follow on it; LeaseLost; InvalidArgument; PayloadTooLarge.
func (l *Ledger) PutCheckpoint(ctx context.Context, r CheckpointRequest) (Checkpoint, error) {
	c, err := r.renewal()
	if err != nil {
		return Checkpoint{}, err
	}
	p, err := r.checkpoint()
	if err != nil {
		return Checkpoint{}, err
	}
	log, err := l.write(ctx, LogID{r.Election, LogCheckpoint}, c, openCheckpoint, func(log Log) (LogChange, error) { return putCheckpoint(log, c, p) })
	if err != nil {
		return Checkpoint{}, err
	}
	return log.checkpoint()
}

// write runs a rule on a log. If its leader has not opened the log, it does that first.
func (l *Ledger) write(ctx context.Context, id LogID, c Renewal, open func(Log, Renewal) (LogChange, error), rule func(Log) (LogChange, error)) (Log, error) {
	log, err := l.journal.Amend(ctx, id, rule)
	if !errors.Is(err, errUnopened) {
		return log, err
	}
	if _, err := l.open(ctx, id, c, open); err != nil {
		return Log{}, err
	}
	return l.journal.Amend(ctx, id, rule)
}

// open verifies the lease, and raises the log's mark to its token.
func (l *Ledger) open(ctx context.Context, id LogID, c Renewal, rule func(Log, Renewal) (LogChange, error)) (Log, error) {
	snap, err := l.service.store.Get(ctx, id.Election)
	if err != nil {
		return Log{}, err
	}
	if !snap.leads(c) {
		return Log{}, snap.refuseLost(c)
	}
	return l.journal.Amend(ctx, id, func(log Log) (LogChange, error) { return rule(log, c) })
}

// checkpoint is what the log has.
func (l Log) checkpoint() (Checkpoint, error) {
	var h checkpointHead
	if err := l.readHead(&h); err != nil || h.Left == nil {
		return Checkpoint{Election: l.ID.Election}, err
	}
	at := h.Left.At
	if at.IsZero() {
		at = l.WrittenAt
	}
	p := Checkpoint{Election: l.ID.Election, Token: h.Left.Token, LeaderID: h.Left.LeaderID, Sequence: h.Sequence, Task: h.Left.Task, URI: h.Left.URI, SHA256: h.Left.SHA256, At: at}
	if l.Body != "" {
		p.Data = json.RawMessage(l.Body)
	}
	return p, nil
}

// Checkpoint reads the checkpoint of an election, strongly. Error: NotFound, if there is none.
func (l *Ledger) Checkpoint(ctx context.Context, e Election) (Checkpoint, error) {
	if err := e.Validate(); err != nil {
		return Checkpoint{}, invalid("election", err)
	}
	log, err := l.journal.Look(ctx, LogID{e, LogCheckpoint})
	if err != nil {
		return Checkpoint{}, err
	}
	p, err := log.checkpoint()
	if err == nil && p.Token == 0 {
		err = &Error{Code: NotFound, Detail: fmt.Sprintf("election %q has no checkpoint; its leader puts one", e)}
	}
	return p, err
}

// Inherit reads what the last leader left behind, for a leader that was just granted the lease. The
// mark is raised first, so that no late put of an earlier leader can follow. nil if there is none,
// or if the caller has put it itself.
//
// Error: TokenStale, if a later leader has inherited.
func (l *Ledger) Inherit(ctx context.Context, g Grant) (*Inheritance, error) {
	c := Renewal{Election: g.Election, CandidateID: g.LeaderID, KeyHash: g.Key.Hash(), Token: g.Token}
	log, err := l.journal.Amend(ctx, LogID{g.Election, LogCheckpoint}, func(log Log) (LogChange, error) { return openCheckpoint(log, c) })
	if err != nil {
		return nil, err
	}
	p, err := log.checkpoint()
	if err != nil || p.Token == 0 || p.Token == g.Token {
		return nil, err
	}
	because := EndReason("")
	if p.Token == g.Token-1 {
		because = g.PreviousEnd
	}
	return &Inheritance{p, because}, nil
}

// JournalHead is where a journal stands.
type JournalHead struct {
	Election Election
	Token    Token // the highest that has opened it; 0: none
	Index    Index // of the last entry; 0: none
	Snapshot Index // entries up to it can only be had as a snapshot; 0: none
	// Generation rises when the store is restored from a backup: the journal may have lost entries,
	// and others may stand in their places. 0: it never was.
	Generation Token
}

// OpenJournal verifies the caller's lease and raises the journal's mark to its token. No earlier
// leader can append then, so entries read from then on are complete. Idempotent. A new epoch
// alone does not stop the journal: what was sent under the token before may land until the leader
// opens it, or appends, under the next one.
//
// Errors: LeaseLost; TokenStale.
func (l *Ledger) OpenJournal(ctx context.Context, r LeaseRequest) (JournalHead, error) {
	c, err := r.renewal()
	if err != nil {
		return JournalHead{}, err
	}
	log, err := l.open(ctx, LogID{r.Election, LogJournal}, c, openJournal)
	if err != nil {
		return JournalHead{}, err
	}
	return log.journal()
}

// Head reads where a journal stands, strongly.
func (l *Ledger) Head(ctx context.Context, e Election) (JournalHead, error) {
	if err := e.Validate(); err != nil {
		return JournalHead{}, invalid("election", err)
	}
	log, err := l.journal.Look(ctx, LogID{e, LogJournal})
	if err != nil {
		return JournalHead{}, err
	}
	return log.journal()
}

func (l Log) journal() (JournalHead, error) {
	var h journalHead
	err := l.readHead(&h)
	return JournalHead{Election: l.ID.Election, Token: h.Token, Index: h.Index, Snapshot: h.Snapshot, Generation: h.Generation}, err
}

// AppendRequest adds entries to a journal.
type AppendRequest struct {
	LeaseRequest
	After   Index   // of the last entry that the leader knows; 0: there is none
	Entries []Entry // 1 to MaxEntries; their Type and Data count
}

func (r AppendRequest) entries() ([]Entry, error) {
	if r.After < 0 {
		return nil, invalid("after", fmt.Errorf("after is an index, 0 or more, not %d", r.After))
	}
	if n := len(r.Entries); n < 1 || n > MaxEntries {
		return nil, invalid("entries", fmt.Errorf("an append has from 1 to %d entries, not %d", MaxEntries, n))
	}
	all, size := make([]Entry, len(r.Entries)), 0
	for i, e := range r.Entries {
		field := fmt.Sprintf("entries/%d", i)
		if len(e.Type) > MaxEntryTypeBytes || validateText(e.Type) != nil {
			return nil, invalid(field+"/type", fmt.Errorf("type is one line of at most %d bytes", MaxEntryTypeBytes))
		}
		data, err := compact(field+"/data", e.Data)
		if err != nil {
			return nil, err
		}
		if len(data) > MaxAppendBytes {
			return nil, &Error{Code: PayloadTooLarge, Field: field + "/data", Detail: fmt.Sprintf(
				"the data of an entry has at most %d bytes of JSON, and this one has %d; put it elsewhere, and append where it is", MaxAppendBytes, len(data))}
		}
		size += len(data)
		all[i] = Entry{Token: r.Token, Type: e.Type, Data: data}
	}
	if size > MaxAppendBytes {
		return nil, &Error{Code: PayloadTooLarge, Field: "entries", Detail: fmt.Sprintf(
			"the data of one append has at most %d bytes of JSON together, and this one has %d; append it in parts", MaxAppendBytes, size)}
	}
	return all, nil
}

// AppendJournal adds entries after the index that the leader knows; all or none. What it reports as
// done is durable. If the reply was lost, the same call again gives the same answer. A leader that
// has not opened the journal does so by it.
//
// Errors: IndexMismatch, with the present index; TokenStale, once a later leader has opened it;
// LeaseLost; LimitExceeded, until a snapshot makes room; InvalidArgument; PayloadTooLarge.
func (l *Ledger) AppendJournal(ctx context.Context, r AppendRequest) (JournalHead, error) {
	c, err := r.renewal()
	if err != nil {
		return JournalHead{}, err
	}
	entries, err := r.entries()
	if err != nil {
		return JournalHead{}, err
	}
	log, err := l.write(ctx, LogID{r.Election, LogJournal}, c, openJournal, func(log Log) (LogChange, error) { return appendEntries(log, c, r.After, entries) })
	if err != nil {
		return JournalHead{}, err
	}
	return log.journal()
}

// JournalSnapshot stands for the entries of a journal up to an index.
type JournalSnapshot struct {
	Election Election        `json:"-"`
	UpTo     Index           `json:"-"`
	Token    Token           `json:"token"`
	At       time.Time       `json:"-"`
	Data     json.RawMessage `json:"data,omitempty"` // or
	URI      string          `json:"uri,omitempty"`
}

// SnapshotRequest puts a snapshot in the place of the entries up to an index.
type SnapshotRequest struct {
	LeaseRequest
	UpTo Index
	Data json.RawMessage // any JSON, of at most MaxSnapshotBytes bytes; or
	URI  string          // where it is
}

// SnapshotJournal puts a snapshot, and deletes the entries that it stands for. Idempotent. It does
// nothing if there is one up to a later index, which stands for more.
//
// Errors: IndexMismatch, if the journal has not so many entries; TokenStale; LeaseLost;
// InvalidArgument, also if there is another snapshot up to the same index: a follower may have read
// it; PayloadTooLarge.
func (l *Ledger) SnapshotJournal(ctx context.Context, r SnapshotRequest) (JournalHead, error) {
	c, err := r.renewal()
	if err != nil {
		return JournalHead{}, err
	}
	if r.UpTo < 1 {
		return JournalHead{}, invalid("upTo", fmt.Errorf("upTo is an index, 1 or more, not %d", r.UpTo))
	}
	data, err := oneOf(r.Data, r.URI, MaxSnapshotBytes)
	if err != nil {
		return JournalHead{}, err
	}
	snapshot := JournalSnapshot{Token: r.Token, Data: data, URI: r.URI}
	text := headText(snapshot)
	id := LogID{r.Election, LogJournal}
	var stands bool // one up to that index, or a later one
	log, err := l.write(ctx, id, c, openJournal, func(log Log) (LogChange, error) {
		ch, err := snapJournal(log, c, r.UpTo, text)
		stands = ch.Text == ""
		return ch, err
	})
	if err == nil && stands {
		err = l.sameSnapshot(ctx, r.Election, r.UpTo, snapshot)
	}
	if err != nil {
		return JournalHead{}, err
	}
	h, err := log.journal()
	if err == nil {
		_ = l.journal.Trim(ctx, id, h.Snapshot) // the next snapshot deletes what this one leaves
	}
	return h, err
}

// sameSnapshot refuses a snapshot if there is another one up to the same index. That one does not
// change any more, so it need not be read together with the head.
func (l *Ledger) sameSnapshot(ctx context.Context, e Election, upTo Index, s JournalSnapshot) error {
	is, err := l.ReadSnapshot(ctx, e)
	if err == nil && is.UpTo == upTo && (is.URI != s.URI || !bytes.Equal(is.Data, s.Data)) {
		err = invalid("upTo", fmt.Errorf("the journal of election %q has another snapshot up to index %d already, which stands; append, and put the snapshot up to a later index", e, upTo))
	}
	return err
}

// ReadSnapshot reads the newest snapshot of a journal. Error: NotFound, if there is none.
func (l *Ledger) ReadSnapshot(ctx context.Context, e Election) (JournalSnapshot, error) {
	if err := e.Validate(); err != nil {
		return JournalSnapshot{}, invalid("election", err)
	}
	segment, err := l.journal.Snapshot(ctx, LogID{e, LogJournal})
	switch {
	case err != nil:
		return JournalSnapshot{}, err
	case segment.Last == 0:
		return JournalSnapshot{}, &Error{Code: NotFound, Detail: fmt.Sprintf("the journal of election %q has no snapshot; read it from index 0", e)}
	}
	s := JournalSnapshot{Election: e, UpTo: segment.Last, At: segment.At}
	if err := decodeStrictly([]byte(segment.Data), &s); err != nil {
		return s, &Error{Code: RecordCorrupt, Detail: fmt.Sprintf("the snapshot of the journal of election %q cannot be read: %v", e, err)}
	}
	return s, nil
}

// JournalRequest reads a part of a journal.
type JournalRequest struct {
	Election Election
	After    Index // entries with a greater index
	// Generation is that of the page which the reader read last; if After and Applied are 0, any.
	Generation Token
	Limit      int // 1 to MaxPageSize; 0 for DefaultPageSize
	// Member, if it is not empty, is a follower that has applied the entries up to Applied.
	Member  CandidateID
	Applied Index
}

// Validate returns what is wrong with the request, with the code InvalidArgument.
func (r JournalRequest) Validate() error {
	_, err := r.validate()
	return err
}

func (r JournalRequest) validate() (limit int, err error) {
	if err := r.Election.Validate(); err != nil {
		return 0, invalid("election", err)
	}
	if r.After < 0 || r.Applied < 0 || r.Generation < 0 {
		return 0, invalid("after", errors.New("after, applied and generation are 0 or more"))
	}
	if r.Member != "" {
		if err := r.Member.Validate(); err != nil {
			return 0, invalid("member", err)
		}
	} else if r.Applied > 0 {
		return 0, invalid("applied", errors.New("applied says how far a member is; name the member, too"))
	}
	return pageSize("limit", r.Limit)
}

// JournalPage is a part of a journal, with where the journal stood when it was read, or later.
type JournalPage struct {
	JournalHead
	Entries []Entry // in their order, without a gap, the first right after what was asked for
}

// ReadJournal reads entries, in their order and without a gap, fewer than there are if they are
// large. It is strong: what was acknowledged before is seen.
//
// Errors: HistoryCompacted, if entries that were asked for are only to be had as a snapshot, or if
// the reader knows another Generation: then all that it has read is void, and it begins anew from
// the snapshot or, if there is none, from index 0. The error's Index is that of the snapshot, and
// its Generation that of the journal. IndexMismatch, if the journal has not so many entries as were
// asked for or applied: the reader means another one.
func (l *Ledger) ReadJournal(ctx context.Context, r JournalRequest) (JournalPage, error) {
	limit, err := r.validate()
	if err != nil {
		return JournalPage{}, err
	}
	for again := false; ; again = true {
		page, err := l.readJournal(ctx, r.Election, r.After, limit)
		switch known := max(r.After, r.Applied); {
		case err != nil:
			return page, err
		case known > 0 && page.Generation != r.Generation:
			return page, &Error{Code: HistoryCompacted, Index: page.Snapshot, Generation: page.Generation, Detail: fmt.Sprintf(
				"the journal of election %q was restored from a backup and is of generation %d, not %d; drop what was read, begin anew from its snapshot or, if there is none, from index 0, and send that generation from then on", r.Election, page.Generation, r.Generation)}
		case page.Index < known:
			return page, &Error{Code: IndexMismatch, Index: page.Index, Detail: fmt.Sprintf(
				"the journal of election %q ends at index %d, before %d; it is another one than was read: read it anew from its snapshot or from the start", r.Election, page.Index, known)}
		case len(page.Entries) > 0, page.Index == r.After:
			return page, nil
		case r.After < page.Snapshot:
			return page, &Error{Code: HistoryCompacted, Index: page.Snapshot, Generation: page.Generation, Detail: fmt.Sprintf(
				"the journal of election %q is kept from index %d; read its snapshot, and go on after %d", r.Election, page.Snapshot+1, page.Snapshot)}
		case again: // the entry was there before the second read began
			return page, &Error{Code: RecordCorrupt, Detail: fmt.Sprintf("the journal of election %q is at index %d, and entry %d is missing", r.Election, page.Index, r.After+1)}
		}
	}
}

// readJournal reads the entries that follow the index without a gap, and then the head, so that a
// trim in between is noticed.
func (l *Ledger) readJournal(ctx context.Context, e Election, after Index, limit int) (JournalPage, error) {
	segments, err := l.journal.Segments(ctx, LogID{e, LogJournal}, after, limit)
	if err != nil {
		return JournalPage{}, err
	}
	var page JournalPage
	if page.JournalHead, err = l.Head(ctx, e); err != nil {
		return page, err
	}
	next := after + 1
	for _, s := range segments {
		all, err := s.Entries()
		if err != nil {
			return page, &Error{Code: RecordCorrupt, Detail: fmt.Sprintf("the journal of election %q: %v", e, err)}
		}
		if s.First > next {
			break
		}
		all = all[min(next-s.First, Index(len(all))):]
		all = all[:min(limit-len(page.Entries), len(all))]
		page.Entries, next = append(page.Entries, all...), next+Index(len(all))
	}
	return page, nil
}
