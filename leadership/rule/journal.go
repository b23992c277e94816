package rule

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// MaxLogBytes is the most that the head of a log (its text and body together) or one segment may
// have, encoded.
const MaxLogBytes = 640 << 10

// LogKind is which of an election's logs it is.
type LogKind string

// The kinds of logs.
const (
	LogCheckpoint LogKind = "checkpoint"
	LogJournal    LogKind = "journal"
	LogProposals  LogKind = "proposals"
	LogEffects    LogKind = "effects"
)

// LogID names a log.
type LogID struct {
	Election leadership.Election
	Kind     LogKind
}

// Compare orders logs by their elections, and then by their kinds.
func (id LogID) Compare(other LogID) int {
	return cmp.Or(cmp.Compare(id.Election, other.Election), cmp.Compare(id.Kind, other.Kind))
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
	First, Last leadership.Index
	Data        string // a JSON array of entries or, in a snapshot, what it holds
	// At is when it was committed, by the store's clock. The store sets it, unless it is set: the
	// copy of a log in another store keeps its times, to the microsecond.
	At time.Time
}

// Entries are the entries of a segment.
func (s Segment) Entries() ([]leadership.Entry, error) {
	var all []leadership.Entry
	if err := json.Unmarshal([]byte(s.Data), &all); err != nil || s.First < 1 || leadership.Index(len(all)) != s.Last-s.First+1 {
		return nil, fmt.Errorf("the entries %d to %d cannot be read (%w)", s.First, s.Last, errors.Join(err, leadership.RecordCorrupt))
	}
	for i := range all {
		all[i].Index, all[i].At = s.First+leadership.Index(i), s.At.UTC()
	}
	return all, nil
}

// Mark is the highest token under which a log was written, with its leader and that one's key: no
// other may write. It is raised when a leader opens the log, before that leader reads it, so that
// nothing of an earlier one can land afterwards.
type Mark struct {
	Token  leadership.Token       `json:"token,omitempty"`
	Leader leadership.CandidateID `json:"leader,omitempty"`
	Key    leadership.KeyHash     `json:"key,omitzero"`
}

// journalHead is the text of a journal's head.
type journalHead struct {
	Mark
	Index    leadership.Index `json:"index,omitempty"`    // of the last entry
	Snapshot leadership.Index `json:"snapshot,omitempty"` // the entries up to it may be trimmed
	// Generation is the mark of the last restore: entries before it may be others than were read.
	Generation leadership.Token `json:"generation,omitempty"`
	Last       appended         `json:"last,omitzero"`
	Runs       []run            `json:"runs,omitempty"` // of the entries after the snapshot, in their order
}

// run is how much entries that follow each other take, up to one of them.
type run struct {
	Last  leadership.Index `json:"last"`
	Bytes int              `json:"bytes"`
}

const (
	runBytes     = 1 << 20 // a snapshot frees whole runs, and so as much as this less than it could
	segmentBytes = 128     // about what a store keeps of a segment beside its data
)

// grow counts a segment that ends with the entry, unless there is no room for it.
func (h *journalHead) grow(last leadership.Index, size int) bool {
	all := size
	for _, r := range h.Runs {
		all += r.Bytes
	}
	if all > leadership.MaxJournalBytes {
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
	After leadership.Index `json:"after"`
	Sum   string           `json:"sum"` // of its entries, without the token: the leader may go on in a new epoch
}

// newAppended returns what an append of the entries after the index leaves behind.
func newAppended(after leadership.Index, entries []leadership.Entry) appended {
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
	Token    leadership.Token       `json:"token"`
	LeaderID leadership.CandidateID `json:"leaderId"`
	Task     string                 `json:"task,omitempty"`
	URI      string                 `json:"uri,omitempty"`
	SHA256   string                 `json:"sha256,omitempty"`
	At       time.Time              `json:"at,omitzero"` // zero if this head was written with it
}

// holds reports whether this is the same checkpoint, perhaps of an earlier epoch of its leader.
func (p *left) holds(other left) bool {
	if p != nil {
		other.Token, other.At = p.Token, p.At
	}
	return p != nil && *p == other
}

// readHead reads the text of a head into it.
func (l Log) readHead(head any) error { return l.read(l.Text, head) }

// read reads the text of a head, or its body, if it has any.
func (l Log) read(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := form.Decode([]byte(text), into); err != nil {
		return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the head of the %s of election %q cannot be read: %v", l.ID.Kind, l.ID.Election, err)}
	}
	return nil
}

// readMark reads the mark alone of a log that has no segments.
func (l Log) readMark(m *Mark) error {
	if l.ID.Kind == LogEffects {
		return l.readHead(m)
	}
	var h checkpointHead
	err := l.readHead(&h)
	*m = h.Mark
	return err
}

func HeadText(head any) string {
	text, _ := form.JSON(head) // heads always have a JSON form
	return string(text)
}

// admit returns nil if the leader may write at once, and ErrUnopened if its lease has to be
// verified first.
func (m Mark) admit(id LogID, c Renewal) error {
	switch {
	case m.Token > c.Token:
		return &leadership.Error{Code: leadership.TokenStale, Detail: fmt.Sprintf(
			"a leader with fencing token %d has opened the %s of election %q since; stop acting with fencing token %d", m.Token, id.Kind, id.Election, c.Token)}
	case m.Token < c.Token:
		return ErrUnopened
	case m.Leader != c.CandidateID || !m.Key.Equal(c.KeyHash):
		return &leadership.Error{Code: leadership.LeaseLost, Detail: fmt.Sprintf(
			"the lease of election %q with fencing token %d is not that of %q with this key, or the store was moved or restored since; stop acting as its leader, and acquire again", id.Election, c.Token, c.CandidateID)}
	}
	return nil
}

// ErrUnopened says that the caller's lease has to be verified, and the mark raised.
var ErrUnopened = errors.New("the log is not opened by this leader")

// raise puts the mark of a leader, whose lease was verified, into the head of a log. same reports
// whether it is the leader of before, with the same key, in a new epoch.
func (m *Mark) raise(id LogID, c Renewal) (raised, same bool, err error) {
	if err := m.admit(id, c); !errors.Is(err, ErrUnopened) {
		return false, false, err
	}
	same = m.Leader == c.CandidateID && m.Key.Equal(c.KeyHash)
	*m = Mark{c.Token, c.CandidateID, c.KeyHash}
	return true, same, nil
}

// OpenJournal raises the journal's mark.
func OpenJournal(l Log, c Renewal) (LogChange, error) {
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
	return LogChange{Text: HeadText(h)}, nil
}

// AppendEntries adds entries after the given index.
//
// Errors: TokenStale; IndexMismatch, with the present index; LimitExceeded; errUnopened.
func AppendEntries(l Log, c Renewal, after leadership.Index, entries []leadership.Entry) (LogChange, error) {
	var h journalHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	if err := h.admit(l.ID, c); err != nil {
		return LogChange{}, err
	}
	data, err := form.JSON(entries)
	if err != nil {
		return LogChange{}, leadership.Invalid("entries", err)
	}
	last, end := newAppended(after, entries), after+leadership.Index(len(entries))
	switch {
	case h.Index == end && h.Last == last: // the reply was lost
		return LogChange{}, nil
	case h.Index != after:
		return LogChange{}, mismatch(l.ID.Election, h.Index, after)
	case !h.grow(end, len(data)+segmentBytes):
		return LogChange{}, &leadership.Error{Code: leadership.LimitExceeded, Detail: fmt.Sprintf(
			"the journal of election %q has no room: at most %d bytes of entries are kept; put a snapshot up to index %d, which stands for them, and append then", l.ID.Election, leadership.MaxJournalBytes, h.Index)}
	}
	h.Index, h.Last = end, last
	return LogChange{Text: HeadText(h), Add: []Segment{{First: after + 1, Last: end, Data: string(data)}}}, nil
}

// mismatch refuses an index.
func mismatch(e leadership.Election, have, named leadership.Index) error {
	return &leadership.Error{Code: leadership.IndexMismatch, Index: have, Detail: fmt.Sprintf(
		"the journal of election %q is at index %d, not %d; read what follows the index that you know, and go on from there", e, have, named)}
}

// SnapJournal puts a snapshot in the place of the entries up to an index.
//
// Errors: TokenStale; IndexMismatch, if there are not so many entries; errUnopened.
func SnapJournal(l Log, c Renewal, upTo leadership.Index, data string) (LogChange, error) {
	var h journalHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	if err := h.admit(l.ID, c); err != nil {
		return LogChange{}, err
	}
	switch {
	case upTo > h.Index:
		return LogChange{}, mismatch(l.ID.Election, h.Index, upTo)
	case upTo <= h.Snapshot:
		return LogChange{}, nil // a later one stands, or this one
	}
	h.Snapshot = upTo
	h.Runs = slices.DeleteFunc(h.Runs, func(r run) bool { return r.Last <= upTo })
	return LogChange{Text: HeadText(h), Add: []Segment{{Last: upTo, Data: data}}}, nil
}

// PutCheckpoint replaces the checkpoint, by the next one of its leader.
//
// Errors: TokenStale; IndexMismatch, with the present sequence; errUnopened.
func PutCheckpoint(l Log, c Renewal, p leadership.Checkpoint) (LogChange, error) {
	var h checkpointHead
	if err := l.readHead(&h); err != nil {
		return LogChange{}, err
	}
	if err := h.admit(l.ID, c); err != nil {
		return LogChange{}, err
	}
	next := left{Token: c.Token, LeaderID: c.CandidateID, Task: p.Task, URI: p.URI, SHA256: p.SHA256}
	switch {
	case p.Sequence == h.Sequence && h.Left.holds(next) && l.Body == string(p.Data): // the reply was lost
		return LogChange{}, nil
	case p.Sequence != h.Sequence+1:
		return LogChange{}, &leadership.Error{Code: leadership.IndexMismatch, Index: leadership.Index(h.Sequence), Detail: fmt.Sprintf(
			"the leader of election %q has put %d checkpoints, so that its next has sequence %d and not %d; if this is a late copy of an earlier call, drop it, and if not, put it with that sequence",
			l.ID.Election, h.Sequence, h.Sequence+1, p.Sequence)}
	}
	h.Sequence, h.Left = p.Sequence, &next
	return LogChange{Text: HeadText(h), Body: string(p.Data)}, nil
}

// OpenCheckpoint raises the checkpoint's mark; what the log has then is the last that an earlier
// leader has put.
func OpenCheckpoint(l Log, c Renewal) (LogChange, error) {
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
	return h.written(l)
}

// RaisedLog is the change of a log after which no leader can write in it whose token is not above
// the given one: for a store whose elections were raised after a restore, or that is being moved. A
// journal that was restored begins a generation: its readers may know of entries that are gone.
func RaisedLog(l Log, token leadership.Token, restored bool) (LogChange, error) {
	switch l.ID.Kind {
	case LogSecret: // it has no leader
		return LogChange{}, nil
	case LogJournal:
		var h journalHead
		err := l.readHead(&h)
		return l.raised(&h.Mark, token, err, func() (LogChange, error) {
			if restored {
				h.Generation = token
			}
			return LogChange{Text: HeadText(h), Body: l.Body}, nil
		})
	case LogProposals:
		h, all, err := l.readProposals(time.Time{})
		return l.raised(&h.Mark, token, err, func() (LogChange, error) { return all.written(h) })
	case LogEffects:
		m, all, err := l.readEffects()
		return l.raised(&m, token, err, func() (LogChange, error) { return writtenEffects(m, all) })
	}
	var h checkpointHead
	err := l.readHead(&h)
	return l.raised(&h.Mark, token, err, func() (LogChange, error) { return h.written(l) })
}

// raised is RaisedLog for a log that was read, or not for that reason; written is the change then.
func (l Log) raised(m *Mark, token leadership.Token, err error, written func() (LogChange, error)) (LogChange, error) {
	if err != nil || l.Text == "" || m.Token > token || *m == (Mark{Token: token}) {
		return LogChange{}, err
	}
	*m = Mark{Token: token}
	return written()
}

// written is the change of a head whose checkpoint stays, with its time.
func (h checkpointHead) written(l Log) (LogChange, error) {
	if h.Left != nil && h.Left.At.IsZero() {
		h.Left.At = l.WrittenAt
	}
	return LogChange{Text: HeadText(h), Body: l.Body}, nil
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
func LogCopied(there Log, c LogCopy) (after leadership.Index, all bool, err error) {
	if c.ID.Kind == LogSecret { // a store that has one already keeps it: it may be in use
		return 0, there.Text != "", nil
	}
	if c.ID.Kind == LogProposals {
		all, err := there.hasProposals(c.Log)
		return 0, all, err
	}
	if c.ID.Kind != LogJournal {
		var have, from Mark
		err := errors.Join(there.readMark(&have), c.readMark(&from))
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
		return 0, false, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
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
	ch.Text, ch.Body = HeadText(h), c.Body
	return ch, nil
}

// Checkpoint is what the log has.
func (l Log) Checkpoint() (leadership.Checkpoint, error) {
	var h checkpointHead
	if err := l.readHead(&h); err != nil || h.Left == nil {
		return leadership.Checkpoint{Election: l.ID.Election}, err
	}
	at := h.Left.At.UTC()
	if at.IsZero() {
		at = l.WrittenAt.UTC()
	}
	p := leadership.Checkpoint{Election: l.ID.Election, Token: h.Left.Token, LeaderID: h.Left.LeaderID, Sequence: h.Sequence, Task: h.Left.Task, URI: h.Left.URI, SHA256: h.Left.SHA256, At: at}
	if l.Body != "" {
		p.Data = json.RawMessage(l.Body)
	}
	return p, nil
}

func (l Log) Journal() (leadership.JournalHead, error) {
	var h journalHead
	err := l.readHead(&h)
	return leadership.JournalHead{Election: l.ID.Election, Token: h.Token, Index: h.Index, Snapshot: h.Snapshot, Generation: h.Generation}, err
}
