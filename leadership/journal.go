package leadership

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits of a journal and of a checkpoint.
const (
	MaxEntries         = 500       // of one append
	MaxAppendBytes     = 512 << 10 // of the data of one append, together
	MaxEntryTypeBytes  = 64
	MaxSnapshotBytes   = 512 << 10
	MaxJournalBytes    = 16 << 20 // of the entries that no snapshot stands for, encoded
	MaxCheckpointBytes = 64 << 10
	MaxURIBytes        = 2 << 10
	MaxTaskBytes       = 256
	// MaxLogBytes is the most that the head of a log (its text and body together) or one segment
	// may have, encoded.
	MaxLogBytes = 640 << 10
	// MaxReadBytes is about how much one call of Journal.Segments reads: one segment more, at most.
	// That and a head fit into a message of 4 MiB, the most that Firestore's emulator takes.
	MaxReadBytes = 2 << 20
)

// Index counts the entries of a journal, from 1, without a gap.
type Index int64

// LogKind is which of an election's logs it is.
type LogKind string

// The kinds of logs.
const (
	LogCheckpoint LogKind = "checkpoint"
	LogJournal    LogKind = "journal"
)

// LogID names a log.
type LogID struct {
	Election Election
	Kind     LogKind
}

// Compare orders logs by their elections, and then by their kinds.
func (id LogID) Compare(other LogID) int {
	return cmp.Or(cmp.Compare(id.Election, other.Election), cmp.Compare(id.Kind, other.Kind))
}

// Journal keeps what leaders leave behind for their successors, beside the Store, in the same
// place: for each log a head, which guards it, and segments. It never touches the record of an
// election. Several processes may have a Journal each on the same data. Its errors are those of a
// Store: StoreUnavailable if nothing was done, OutcomeUnknown, RecordCorrupt.
//
// A log is never deleted, not with its election either. Texts are valid UTF-8 without NUL, and are
// kept as they are.
type Journal interface {
	// Amend is the transaction that decides. It reads the head of the log, runs decide, and writes
	// the change, all or nothing, in isolation from every other Amend of that log. A log never
	// written has an empty head. decide may run more than once; it must be pure.
	//
	// It returns an error of decide as it is, and else the log as it now is. A handle may remember
	// the head that it wrote last and run decide on that, if the change is then written only while
	// the log still has that head. If it has another, or if decide has returned an error or no
	// change, the handle reads and decides anew.
	Amend(ctx context.Context, id LogID, decide func(Log) (LogChange, error)) (Log, error)

	// Look reads the head of a log, strongly: it sees every change that was reported as done before
	// the call.
	Look(ctx context.Context, id LogID) (Log, error)

	// Segments reads up to limit segments that have an entry after the index, in their order: the
	// first has the next entry, if that was written and not trimmed. They are fewer, but at least
	// one if there is one, if they have more than MaxReadBytes together, or if some between them
	// were trimmed. If the next entry was trimmed, the first may be one that follows the snapshot.
	// All that was reported as done before the call is seen.
	Segments(ctx context.Context, id LogID, after Index, limit int) ([]Segment, error)

	// Snapshot reads the snapshot of a log; a zero Segment if it has none.
	Snapshot(ctx context.Context, id LogID) (Segment, error)

	// Trim deletes segments that have no entry after the index, the snapshot not among them: none
	// of them is read any more. It is for what a snapshot stands for; it may leave some.
	Trim(ctx context.Context, id LogID, upTo Index) error

	// Logs reads up to limit names of logs that come after the given one, in the order of elections
	// and then kinds. LogID{} comes before all.
	Logs(ctx context.Context, after LogID, limit int) ([]LogID, error)
}

// Log is the head of a log at one moment. Its Text is what guards the log, and Body what else the
// head has. A store reads neither.
type Log struct {
	ID   LogID
	Text string // a JSON object; "" if the log was never written
	Body string
	// WrittenAt is when this head was committed, by the store's clock; zero if the log was never
	// written.
	WrittenAt time.Time
}

// LogChange is what a rule wants written. A change without a Text is none.
type LogChange struct {
	Text string
	Body string
	// Add are segments with their places in the log; a snapshot takes the place of the one before.
	// They are MaxBatch/2 at most, and have no more together than one read of segments returns.
	Add []Segment
}

// Segment is a run of entries that were appended together or, with First 0, a snapshot that stands
// for all entries up to Last.
type Segment struct {
	First, Last Index
	Data        string // a JSON array of entries or, in a snapshot, what it holds
	// At is when it was committed, by the store's clock. The store sets it, unless it is set: the
	// copy of a log in another store keeps its times, to the microsecond.
	At time.Time
}

// Entry is one entry of a journal.
type Entry struct {
	Index Index           `json:"-"`
	Token Token           `json:"token"`
	At    time.Time       `json:"-"`
	Type  string          `json:"type,omitempty"`
	Data  json.RawMessage `json:"data"`
}

// Entries are the entries of a segment.
func (s Segment) Entries() ([]Entry, error) {
	var all []Entry
	if err := json.Unmarshal([]byte(s.Data), &all); err != nil || s.First < 1 || Index(len(all)) != s.Last-s.First+1 {
		return nil, fmt.Errorf("the entries %d to %d cannot be read (%w)", s.First, s.Last, errors.Join(err, RecordCorrupt))
	}
	for i := range all {
		all[i].Index, all[i].At = s.First+Index(i), s.At
	}
	return all, nil
}

// Mark is the highest token under which a log was written, with its leader and that one's key: no
// other may write. It is raised when a leader opens the log, before that leader reads it, so that
// nothing of an earlier one can land afterwards.
type Mark struct {
	Token  Token       `json:"token,omitempty"`
	Leader CandidateID `json:"leader,omitempty"`
	Key    KeyHash     `json:"key,omitzero"`
}

// journalHead is the text of a journal's head.
type journalHead struct {
	Mark
	Index    Index `json:"index,omitempty"`    // of the last entry
	Snapshot Index `json:"snapshot,omitempty"` // the entries up to it may be trimmed
	// Generation is the mark of the last restore: entries before it may be others than were read.
	Generation Token    `json:"generation,omitempty"`
	Last       appended `json:"last,omitzero"`
	Runs       []run    `json:"runs,omitempty"` // of the entries after the snapshot, in their order
}

// run is how much entries that follow each other take, up to one of them.
type run struct {
	Last  Index `json:"last"`
	Bytes int   `json:"bytes"`
}

const (
	runBytes     = 1 << 20 // a snapshot frees whole runs, and so as much as this less than it could
	segmentBytes = 128     // about what a store keeps of a segment beside its data
)

// grow counts a segment that ends with the entry, unless there is no room for it.
func (h *journalHead) grow(last Index, size int) bool {
	all := size
	for _, r := range h.Runs {
		all += r.Bytes
	}
	if all > MaxJournalBytes {
		return false
	}
	if n := len(h.Runs); n > 0 && h.Runs[n-1].Bytes+size <= runBytes {
		h.Runs[n-1] = run{last, h.Runs[n-1].Bytes + size}
	} else {
		h.Runs = append(h.Runs, run{last, size})
	}
	return true
}

// appended is the last append, to know it when it is repeated. It is that of the mark's leader: an
// append by another one clears it.
type appended struct {
	After Index  `json:"after"`
	Sum   string `json:"sum"` // of its entries, without the token: the leader may go on in a new epoch
}

// newAppended returns what an append of the entries after the index leaves behind.
func newAppended(after Index, entries []Entry) appended {
	sum := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(sum, "%q %d %s", e.Type, len(e.Data), e.Data)
	}
	return appended{After: after, Sum: base64.RawURLEncoding.EncodeToString(sum.Sum(nil))}
}

// checkpointHead is the text of a checkpoint's head.
type checkpointHead struct {
	Mark
	Sequence int64 `json:"sequence,omitempty"` // of the last put of the mark's leader
	Left     *left `json:"left,omitempty"`     // nil if none was put yet
}

// left is a checkpoint without its data, which is the body.
type left struct {
	Token    Token       `json:"token"`
	LeaderID CandidateID `json:"leaderId"`
	Task     string      `json:"task,omitempty"`
	URI      string      `json:"uri,omitempty"`
	SHA256   string      `json:"sha256,omitempty"`
	At       time.Time   `json:"at,omitzero"` // zero if this head was written with it
}

// holds reports whether this is the same checkpoint, perhaps of an earlier epoch of its leader.
func (p *left) holds(other left) bool {
	if p != nil {
		other.Token, other.At = p.Token, p.At
	}
	return p != nil && *p == other
}

// readHead reads the text of a head into it.
func (l Log) readHead(head any) error {
	if l.Text == "" {
		return nil
	}
	if err := decodeStrictly([]byte(l.Text), head); err != nil {
		return &Error{Code: RecordCorrupt, Detail: fmt.Sprintf("the head of the %s of election %q cannot be read: %v", l.ID.Kind, l.ID.Election, err)}
	}
	return nil
}

func headText(head any) string {
	text, _ := encodeJSON(head) // heads always have a JSON form
	return string(text)
}

// stale refuses a leader whose log a later one has opened.
func (m Mark) stale(id LogID, token Token) error {
	return &Error{Code: TokenStale, Detail: fmt.Sprintf(
		"a leader with fencing token %d has opened the %s of election %q since; stop acting with fencing token %d", m.Token, id.Kind, id.Election, token)}
}

// admit returns whether the leader may write at once. If not, and without an error, its lease has
// to be verified first.
func (m Mark) admit(id LogID, c Renewal) (bool, error) {
	switch {
	case m.Token > c.Token:
		return false, m.stale(id, c.Token)
	case m.Token == c.Token && (m.Leader != c.CandidateID || !m.Key.Equal(c.KeyHash)):
		return false, &Error{Code: LeaseLost, Detail: fmt.Sprintf(
			"the lease of election %q with fencing token %d is not that of %q with this key, or the store was moved or restored since; stop acting as its leader, and acquire again", id.Election, c.Token, c.CandidateID)}
	}
	return m.Token == c.Token, nil
}

// errUnopened says that the caller's lease has to be verified, and the mark raised.
var errUnopened = errors.New("the log is not opened by this leader")

// raise puts the mark of a leader, whose lease was verified, into the head of a log. same reports
// whether it is the leader of before, with the same key, in a new epoch.
func (m *Mark) raise(id LogID, c Renewal) (raised, same bool, err error) {
	if open, err := m.admit(id, c); open || err != nil {
		return false, false, err
	}
	same = m.Leader == c.CandidateID && m.Key.Equal(c.KeyHash)
	*m = Mark{c.Token, c.CandidateID, c.KeyHash}
	return true, same, nil
}

// openJournal raises the journal's mark.
func openJournal(l Log, c Renewal) (LogChange, error) {
	var h journalHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	raised, same, err := h.raise(l.ID, c)
	if !raised {
		return LogChange{}, err
	}
	if !same {
		h.Last = appended{}
	}
	return LogChange{Text: headText(h)}, nil
}

// appendEntries adds entries after the given index.
//
// Errors: TokenStale; IndexMismatch, with the present index; LimitExceeded; errUnopened.
func appendEntries(l Log, c Renewal, after Index, entries []Entry) (LogChange, error) {
	var h journalHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	if open, err := h.admit(l.ID, c); err != nil {
		return LogChange{}, err
	} else if !open {
		return LogChange{}, errUnopened
	}
	data, err := encodeJSON(entries)
	if err != nil {
		return LogChange{}, invalid("entries", err)
	}
	last, end := newAppended(after, entries), after+Index(len(entries))
	switch {
	case h.Index == end && h.Last == last: // the reply was lost
		return LogChange{}, nil
	case h.Index != after:
		return LogChange{}, mismatch(l.ID.Election, h.Index, after)
	case !h.grow(end, len(data)+segmentBytes):
		return LogChange{}, &Error{Code: LimitExceeded, Detail: fmt.Sprintf(
			"the journal of election %q has no room: at most %d bytes of entries are kept; put a snapshot up to index %d, which stands for them, and append then", l.ID.Election, MaxJournalBytes, h.Index)}
	}
	h.Index, h.Last = end, last
	return LogChange{Text: headText(h), Add: []Segment{{First: after + 1, Last: end, Data: string(data)}}}, nil
}

// mismatch refuses an index.
func mismatch(e Election, have, named Index) error {
	return &Error{Code: IndexMismatch, Index: have, Detail: fmt.Sprintf(
		"the journal of election %q is at index %d, not %d; read what follows the index that you know, and go on from there", e, have, named)}
}

// snapJournal puts a snapshot in the place of the entries up to an index.
//
// Errors: TokenStale; IndexMismatch, if there are not so many entries; errUnopened.
func snapJournal(l Log, c Renewal, upTo Index, data string) (LogChange, error) {
	var h journalHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	if open, err := h.admit(l.ID, c); err != nil {
		return LogChange{}, err
	} else if !open {
		return LogChange{}, errUnopened
	}
	switch {
	case upTo > h.Index:
		return LogChange{}, mismatch(l.ID.Election, h.Index, upTo)
	case upTo <= h.Snapshot:
		return LogChange{}, nil // a later one stands, or this one
	}
	h.Snapshot = upTo
	h.Runs = slices.DeleteFunc(h.Runs, func(r run) bool { return r.Last <= upTo })
	return LogChange{Text: headText(h), Add: []Segment{{Last: upTo, Data: data}}}, nil
}

// putCheckpoint replaces the checkpoint, by the next one of its leader.
//
// Errors: TokenStale; IndexMismatch, with the present sequence; errUnopened.
func putCheckpoint(l Log, c Renewal, p Checkpoint) (LogChange, error) {
	var h checkpointHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	if open, err := h.admit(l.ID, c); err != nil {
		return LogChange{}, err
	} else if !open {
		return LogChange{}, errUnopened
	}
	next := left{Token: c.Token, LeaderID: c.CandidateID, Task: p.Task, URI: p.URI, SHA256: p.SHA256}
	switch {
	case p.Sequence == h.Sequence && h.Left.holds(next) && l.Body == string(p.Data): // the reply was lost
		return LogChange{}, nil
	case p.Sequence != h.Sequence+1:
		return LogChange{}, &Error{Code: IndexMismatch, Index: Index(h.Sequence), Detail: fmt.Sprintf(
			"the leader of election %q has put %d checkpoints, so that its next has sequence %d and not %d; if this is a late copy of an earlier call, drop it, and if not, put it with that sequence",
			l.ID.Election, h.Sequence, h.Sequence+1, p.Sequence)}
	}
	h.Sequence, h.Left = p.Sequence, &next
	return LogChange{Text: headText(h), Body: string(p.Data)}, nil
}

// openCheckpoint raises the checkpoint's mark; what the log has then is the last that an earlier
// leader has put.
func openCheckpoint(l Log, c Renewal) (LogChange, error) {
	var h checkpointHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	raised, same, err := h.raise(l.ID, c)
	if !raised {
		return LogChange{}, err
	}
	if !same {
		h.Sequence = 0
	}
	if h.Left != nil && h.Left.At.IsZero() {
		h.Left.At = l.WrittenAt
	}
	return LogChange{Text: headText(h), Body: l.Body}, nil
}

// RaisedLog is the change of a log after which no leader can write in it whose token is not above
// the given one: for a store whose elections were raised after a restore, or that is being moved. A
// journal that was restored begins a generation: its readers may know of entries that are gone.
func RaisedLog(l Log, token Token, restored bool) (LogChange, error) {
	if l.ID.Kind == LogSecret { // it has no leader
		return LogChange{}, nil
	}
	var mark *Mark
	var head any
	if l.ID.Kind == LogJournal {
		h := &journalHead{}
		head, mark = h, &h.Mark
	} else {
		h := &checkpointHead{}
		head, mark = h, &h.Mark
	}
	if err := l.readHead(head); err != nil || l.Text == "" || mark.Token > token || *mark == (Mark{Token: token}) {
		return LogChange{}, err
	}
	*mark = Mark{Token: token}
	if h, ok := head.(*journalHead); ok && restored {
		h.Generation = token
	}
	if h, ok := head.(*checkpointHead); ok && h.Left != nil && h.Left.At.IsZero() {
		h.Left.At = l.WrittenAt
	}
	return LogChange{Text: headText(head), Body: l.Body}, nil
}

// LogCopy is a log of another store, which nothing writes any more (see RaisedLog), or its next
// part, to be copied.
type LogCopy struct {
	Log
	Snapshot Segment   // of a journal; zero if it has none
	Next     []Segment // of a journal, those that follow what LogCopied returned
}

// LogCopied returns the index after which a copy goes on, and whether all of it is there.
//
// Error: RecordCorrupt, if what is there is something else than a beginning of the copy, or the
// copy with what was written since.
func LogCopied(there Log, c LogCopy) (after Index, all bool, err error) {
	if c.ID.Kind == LogSecret { // a store that has one already keeps it: it may be in use
		return 0, there.Text != "", nil
	}
	if c.ID.Kind != LogJournal {
		var have, from checkpointHead
		err := errors.Join(there.readHead(&have), c.readHead(&from))
		return 0, have.Token > from.Token || there.Text == c.Text && there.Body == c.Body, err
	}
	var have, from journalHead
	if err := errors.Join(there.readHead(&have), c.readHead(&from)); err != nil {
		return 0, false, err
	}
	switch {
	case there.Text == c.Text, have.Token > from.Token && have.Index >= from.Index:
		return have.Index, true, nil
	case have.Token > from.Token, have.Index > from.Index, have.Snapshot > from.Snapshot:
		return 0, false, &Error{Code: RecordCorrupt, Detail: fmt.Sprintf(
			"the journal of election %q is at index %d and fencing token %d in one store, and at index %d and fencing token %d in the one that it is to be moved to, where it has gone on by itself",
			c.ID.Election, from.Index, from.Token, have.Index, have.Token)}
	}
	return max(have.Index, from.Snapshot), false, nil
}

// CopyLog is the change by which a copy of a log goes on.
//
// Errors: as those of LogCopied.
func CopyLog(there Log, c LogCopy) (LogChange, error) {
	after, all, err := LogCopied(there, c)
	if err != nil || all {
		return LogChange{}, err
	}
	if c.ID.Kind != LogJournal {
		return LogChange{Text: c.Text, Body: c.Body}, nil
	}
	var h journalHead
	if err := c.readHead(&h); err != nil {
		return LogChange{}, err
	}
	ch := LogChange{Add: c.Next}
	if c.Snapshot.Last > 0 {
		ch.Add = append(ch.Add[:len(ch.Add):len(ch.Add)], c.Snapshot)
	}
	if n := len(c.Next); n > 0 {
		after = c.Next[n-1].Last
	}
	if after < h.Index { // more is to follow, and this much is a journal until then
		h.Index, h.Last = after, appended{}
	}
	ch.Text, ch.Body = headText(h), c.Body
	return ch, nil
}
