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

// MaxLogBytes limits the head of a log (its text and body together), and each segment, encoded.
const MaxLogBytes = 640 << 10

// LogKind names one of an election's logs.
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

// Log is the head of a log at one moment. Text has the Mark that guards the log, and Body the rest
// of the head. A store does not look into either.
type Log struct {
	ID   LogID
	Text string // a JSON object; "" if the log was never written
	Body string
	// WrittenAt is when this head was committed, by the store's clock; zero if the log was never
	// written.
	WrittenAt time.Time
}

// LogChange is the change of a log that a rule wants written. Without a Text nothing is written.
type LogChange struct {
	Text string
	Body string
	// Add are segments with their places in the log; a snapshot replaces the previous one. They are
	// at most MaxBatch/2, and together no larger than the result of one read of segments.
	Add []Segment
}

// Segment is a run of entries that were appended together or, with First 0, a snapshot that
// replaces all entries up to Last.
type Segment struct {
	First, Last leadership.Index
	Data        string // a JSON array of entries or, in a snapshot, its data
	// At is when it was committed, by the store's clock. The store sets it, unless it is set
	// already: the copy of a log in another store keeps its times, to the microsecond.
	At time.Time
}

// Entries decodes the entries of a segment.
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

// Mark is the highest token under which a log was opened, with its leader and that leader's key: no
// other may write. It is raised when a leader opens the log, before that leader reads it, so that
// no write of an earlier leader can follow.
type Mark struct {
	Token  leadership.Token       `json:"token,omitempty"`
	Leader leadership.CandidateID `json:"leader,omitempty"`
	Key    leadership.KeyHash     `json:"key,omitzero"`
}

// journalHead is the text of a journal's head.
type journalHead struct {
	Mark
	Index    leadership.Index `json:"index,omitempty"`    // of the last entry
	Snapshot leadership.Index `json:"snapshot,omitempty"` // entries up to this one may be trimmed
	// Generation is the mark of the last restore: earlier entries may differ from what readers saw.
	Generation leadership.Token `json:"generation,omitempty"`
	Last       appended         `json:"last,omitzero"`
	Runs       []run            `json:"runs,omitempty"` // of the entries after the snapshot, in their order
}

// run is the size of a run of entries, of which Last is the last.
type run struct {
	Last  leadership.Index `json:"last"`
	Bytes int              `json:"bytes"`
}

const (
	runBytes     = 1 << 20 // size of a run; a snapshot frees whole runs, so up to this much less than it could
	segmentBytes = 128     // roughly what a store keeps for a segment in addition to its data
)

// grow adds a segment of that size which ends with entry last. It reports false if there is no
// room.
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

// appended identifies the last append, so that a repetition is recognized. It is by the mark's
// leader: an append by another one clears it.
type appended struct {
	After leadership.Index `json:"after"`
	Sum   string           `json:"sum"` // of its entries, without the token: it may be repeated in a new epoch
}

// newAppended returns the identity of an append of the entries after the index.
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
	At       time.Time              `json:"at,omitzero"` // zero: when this head was written
}

// holds reports whether p is the same checkpoint as other, perhaps from an earlier epoch.
func (p *left) holds(other left) bool {
	if p != nil {
		other.Token, other.At = p.Token, p.At
	}
	return p != nil && *p == other
}

// readHead decodes the log's text into head.
func (l Log) readHead(head any) error { return l.read(l.Text, head) }

// read decodes the text of a head, or its body, unless that is empty.
func (l Log) read(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := form.Decode([]byte(text), into); err != nil {
		return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the head of the %s of election %q cannot be read: %v", l.ID.Kind, l.ID.Election, err)}
	}
	return nil
}

// readMark reads only the mark of a log that has no segments.
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

// admit returns nil if the leader may write at once, ErrUnopened if its lease has to be verified
// first, and otherwise a refusal.
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

// ErrUnopened says that the caller's lease must be verified and the mark raised first.
var ErrUnopened = errors.New("the log is not opened by this leader")

// raise sets the mark of a leader whose lease was verified. raised reports whether the mark has
// changed, and same whether its leader and key are the same as before, in a new epoch.
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
// Errors: TokenStale; IndexMismatch, with the present index; LimitExceeded; ErrUnopened.
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

// mismatch returns the IndexMismatch error for an index.
func mismatch(e leadership.Election, have, named leadership.Index) error {
	return &leadership.Error{Code: leadership.IndexMismatch, Index: have, Detail: fmt.Sprintf(
		"the journal of election %q is at index %d, not %d; read what follows the index that you know, and go on from there", e, have, named)}
}

// SnapJournal replaces the entries up to an index with a snapshot.
//
// Errors: TokenStale; IndexMismatch, if there are fewer entries; ErrUnopened.
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
		return LogChange{}, nil // this snapshot or a later one is there already
	}
	h.Snapshot = upTo
	h.Runs = slices.DeleteFunc(h.Runs, func(r run) bool { return r.Last <= upTo })
	return LogChange{Text: HeadText(h), Add: []Segment{{Last: upTo, Data: data}}}, nil
}

// PutCheckpoint replaces the checkpoint with its leader's next one.
//
// Errors: TokenStale; IndexMismatch, with the present sequence; ErrUnopened.
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

// OpenCheckpoint raises the checkpoint's mark, so that the checkpoint in the log is the last one of
// any earlier leader.
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

// RaisedLog returns the change of a log after which only a leader with a token above the given one
// can write to it. It is for a store that is being moved, or whose elections were raised after a
// restore. A restored journal begins a new generation, because readers may have seen entries that
// are gone.
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

// raised is RaisedLog for a log whose mark m was read, unless that failed with err. written returns
// the change with the raised mark.
func (l Log) raised(m *Mark, token leadership.Token, err error, written func() (LogChange, error)) (LogChange, error) {
	if err != nil || l.Text == "" || m.Token > token || *m == (Mark{Token: token}) {
		return LogChange{}, err
	}
	*m = Mark{Token: token}
	return written()
}

// written returns the change of a head that keeps its checkpoint, with the checkpoint's time.
func (h checkpointHead) written(l Log) (LogChange, error) {
	if h.Left != nil && h.Left.At.IsZero() {
		h.Left.At = l.WrittenAt
	}
	return LogChange{Text: HeadText(h), Body: l.Body}, nil
}

// LogCopy is a log of another store to be copied, or its next part. Nothing writes to that log any
// more; see RaisedLog.
type LogCopy struct {
	Log
	Snapshot Segment   // of a journal; zero if it has none
	Next     []Segment // of a journal: the segments after the index that LogCopied returned
}

// LogCopied compares the log in the new store with the log to be copied. It returns the index after
// which the copy continues, and whether it is complete.
//
// Error: RecordCorrupt, if the log in the new store is neither a part of the copy nor the copy with
// later writes.
func LogCopied(there Log, c LogCopy) (after leadership.Index, all bool, err error) {
	if c.ID.Kind == LogSecret { // a store keeps the secret that it has: it may be in use
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

// CopyLog returns the change that copies the next part of a log.
//
// Errors: those of LogCopied.
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
	if after < h.Index { // until the rest follows, the log is a shorter journal
		h.Index, h.Last = after, appended{}
	}
	ch.Text, ch.Body = HeadText(h), c.Body
	return ch, nil
}

// Checkpoint returns the log's checkpoint; one without a Token if there is none.
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
