package wire

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// Limits of the bodies of checkpoints, appends and snapshots, with room for what is beside the data
// and for some white space in it.
const (
	MaxCheckpointBody = leadership.MaxCheckpointBytes + MaxBody
	MaxAppendBody     = leadership.MaxAppendBytes + leadership.MaxEntries*(leadership.MaxEntryTypeBytes+32) + MaxBody
	MaxSnapshotBody   = leadership.MaxSnapshotBytes + MaxBody
)

// CheckpointRequest is the body that puts a checkpoint.
type CheckpointRequest struct {
	CandidateID  leadership.CandidateID `json:"candidateId"`
	Key          string                 `json:"key"`
	FencingToken leadership.Token       `json:"fencingToken"`
	Sequence     int64                  `json:"sequence"`
	Task         string                 `json:"task,omitzero"`
	Data         jsontext.Value         `json:"data,omitzero"`
	URI          *string                `json:"uri,omitzero"`
	SHA256       *string                `json:"sha256,omitzero"`
}

// NewCheckpointRequest writes a request.
func NewCheckpointRequest(r leadership.CheckpointRequest) CheckpointRequest {
	return CheckpointRequest{r.CandidateID, r.Key.Text(), r.Token, r.Sequence, r.Task, jsontext.Value(r.Data), optional(r.URI), optional(r.SHA256)}
}

// Leadership reads a request about the election.
func (w CheckpointRequest) Leadership(e leadership.Election) (leadership.CheckpointRequest, error) {
	r := leadership.CheckpointRequest{Sequence: w.Sequence, Task: w.Task, Data: json.RawMessage(w.Data), URI: given(w.URI), SHA256: given(w.SHA256)}
	if isEmpty(w.SHA256) {
		return r, malformed("/sha256", "sha256 is empty; send 64 hexadecimal digits, or leave it out")
	}
	err := dataOrURI(w.Data, w.URI)
	if err != nil {
		return r, err
	}
	r.LeaseRequest, err = Holder{w.CandidateID, w.Key, w.FencingToken}.Leadership(e)
	return r, err
}

// dataOrURI accepts a body with one of them.
func dataOrURI(data jsontext.Value, uri *string) error {
	switch {
	case isEmpty(uri):
		return malformed("/uri", "uri is empty; say where the data is, or send data and leave uri out")
	case data == nil && uri == nil:
		return malformed("/data", "data is missing; send it or, if it is elsewhere, its uri")
	case data != nil && uri != nil:
		return malformed("/data", "there are both data and a uri; send one of them")
	}
	return shallow("/data", data)
}

// MaxDepth is how many arrays and objects the data of a caller may nest, far less than JSON parsers
// bear.
const MaxDepth = 100

// shallow accepts JSON that nests no more than MaxDepth arrays and objects.
func shallow(pointer string, data jsontext.Value) error {
	if Deeper(data, MaxDepth) {
		return malformed(pointer, "data nests more than %d arrays and objects; send it flatter, or as one string", MaxDepth)
	}
	return nil
}

// Deeper reports whether a text, if it is JSON, nests more than so many arrays and objects.
func Deeper(data []byte, most int) bool {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[', c == '{':
			if depth++; depth > most {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}

// Checkpoint is what a leader has left behind of its task.
type Checkpoint struct {
	Election     leadership.Election    `json:"election"`
	FencingToken leadership.Token       `json:"fencingToken"`
	LeaderID     leadership.CandidateID `json:"leaderId"`
	Sequence     int64                  `json:"sequence"`
	Task         string                 `json:"task,omitzero"`
	At           time.Time              `json:"at"`
	Data         jsontext.Value         `json:"data,omitzero"`
	URI          string                 `json:"uri,omitzero"`
	SHA256       string                 `json:"sha256,omitzero"`
}

// NewCheckpoint writes a checkpoint.
func NewCheckpoint(p leadership.Checkpoint) Checkpoint {
	return Checkpoint{p.Election, p.Token, p.LeaderID, p.Sequence, p.Task, p.At.UTC(), jsontext.Value(p.Data), p.URI, p.SHA256}
}

// Leadership reads a checkpoint.
func (w Checkpoint) Leadership() leadership.Checkpoint {
	return leadership.Checkpoint{
		Election: w.Election, Token: w.FencingToken, LeaderID: w.LeaderID, Sequence: w.Sequence, Task: w.Task, At: w.At, Data: json.RawMessage(w.Data), URI: w.URI, SHA256: w.SHA256,
	}
}

// Inheritance is a checkpoint as a successor gets it.
type Inheritance struct {
	FencingToken leadership.Token       `json:"fencingToken"`
	LeaderID     leadership.CandidateID `json:"leaderId"`
	Task         string                 `json:"task,omitzero"`
	At           time.Time              `json:"at"`
	EndedBecause leadership.EndReason   `json:"endedBecause,omitzero"`
	Data         jsontext.Value         `json:"data,omitzero"`
	URI          string                 `json:"uri,omitzero"`
	SHA256       string                 `json:"sha256,omitzero"`
}

func newInheritance(i *leadership.Inheritance) *Inheritance {
	if i == nil {
		return nil
	}
	return &Inheritance{i.Token, i.LeaderID, i.Task, i.At.UTC(), i.EndedBecause, jsontext.Value(i.Data), i.URI, i.SHA256}
}

// Leadership reads what was inherited in the election; nil if there is none.
func (w *Inheritance) Leadership(e leadership.Election) *leadership.Inheritance {
	if w == nil {
		return nil
	}
	return &leadership.Inheritance{EndedBecause: w.EndedBecause, Checkpoint: leadership.Checkpoint{
		Election: e, Token: w.FencingToken, LeaderID: w.LeaderID, Task: w.Task, At: w.At, Data: json.RawMessage(w.Data), URI: w.URI, SHA256: w.SHA256,
	}}
}

// JournalHead is where a journal stands.
type JournalHead struct {
	Election      leadership.Election `json:"election"`
	FencingToken  leadership.Token    `json:"fencingToken,omitzero"` // the highest that has opened it
	Index         leadership.Index    `json:"index"`
	SnapshotIndex leadership.Index    `json:"snapshotIndex"`
	Generation    leadership.Token    `json:"generation,omitzero"`
}

// NewJournalHead writes a head.
func NewJournalHead(h leadership.JournalHead) JournalHead {
	return JournalHead{h.Election, h.Token, h.Index, h.Snapshot, h.Generation}
}

// Leadership reads a head.
func (w JournalHead) Leadership() leadership.JournalHead {
	return leadership.JournalHead{Election: w.Election, Token: w.FencingToken, Index: w.Index, Snapshot: w.SnapshotIndex, Generation: w.Generation}
}

// AppendRequest is the body that adds entries to a journal.
type AppendRequest struct {
	CandidateID  leadership.CandidateID `json:"candidateId"`
	Key          string                 `json:"key"`
	FencingToken leadership.Token       `json:"fencingToken"`
	After        leadership.Index       `json:"after"`
	Entries      []NewEntry             `json:"entries"`
}

// NewEntry is an entry that is not in the journal yet.
type NewEntry struct {
	Type string         `json:"type,omitzero"`
	Data jsontext.Value `json:"data"`
}

// NewAppendRequest writes a request.
func NewAppendRequest(r leadership.AppendRequest) AppendRequest {
	w := AppendRequest{r.CandidateID, r.Key.Text(), r.Token, r.After, []NewEntry{}}
	for _, e := range r.Entries {
		w.Entries = append(w.Entries, NewEntry{e.Type, jsontext.Value(e.Data)})
	}
	return w
}

// Leadership reads a request about the election.
func (w AppendRequest) Leadership(e leadership.Election) (leadership.AppendRequest, error) {
	r := leadership.AppendRequest{After: w.After, Entries: make([]leadership.Entry, len(w.Entries))}
	if w.After < 0 {
		return r, malformed("/after", "after is the index of the last entry that you know, or 0 if there is none, and not %d", w.After)
	}
	for i, one := range w.Entries {
		if err := shallow("/entries/"+strconv.Itoa(i)+"/data", one.Data); err != nil {
			return r, err
		}
		r.Entries[i] = leadership.Entry{Type: one.Type, Data: json.RawMessage(one.Data)}
	}
	var err error
	r.LeaseRequest, err = Holder{w.CandidateID, w.Key, w.FencingToken}.Leadership(e)
	return r, err
}

// JournalEntry is one entry of a journal.
type JournalEntry struct {
	Index        leadership.Index `json:"index"`
	FencingToken leadership.Token `json:"fencingToken"`
	At           time.Time        `json:"at"`
	Type         string           `json:"type,omitzero"`
	Data         jsontext.Value   `json:"data"`
}

// NewJournalEntry writes an entry.
func NewJournalEntry(e leadership.Entry) JournalEntry {
	return JournalEntry{e.Index, e.Token, e.At.UTC(), e.Type, jsontext.Value(e.Data)}
}

// Leadership reads an entry.
func (w JournalEntry) Leadership() leadership.Entry {
	return leadership.Entry{Index: w.Index, Token: w.FencingToken, At: w.At, Type: w.Type, Data: json.RawMessage(w.Data)}
}

// JournalPage is a part of a journal.
type JournalPage struct {
	JournalHead
	Entries []JournalEntry `json:"entries"`
}

// NewJournalPage writes a page.
func NewJournalPage(p leadership.JournalPage) JournalPage {
	w := JournalPage{NewJournalHead(p.JournalHead), []JournalEntry{}}
	for _, e := range p.Entries {
		w.Entries = append(w.Entries, NewJournalEntry(e))
	}
	return w
}

// Leadership reads a page.
func (w JournalPage) Leadership() leadership.JournalPage {
	p := leadership.JournalPage{JournalHead: w.JournalHead.Leadership()}
	for _, e := range w.Entries {
		p.Entries = append(p.Entries, e.Leadership())
	}
	return p
}

// SnapshotRequest is the body that puts a snapshot in the place of entries.
type SnapshotRequest struct {
	CandidateID  leadership.CandidateID `json:"candidateId"`
	Key          string                 `json:"key"`
	FencingToken leadership.Token       `json:"fencingToken"`
	UpTo         leadership.Index       `json:"upTo"`
	Data         jsontext.Value         `json:"data,omitzero"`
	URI          *string                `json:"uri,omitzero"`
}

// NewSnapshotRequest writes a request.
func NewSnapshotRequest(r leadership.SnapshotRequest) SnapshotRequest {
	return SnapshotRequest{r.CandidateID, r.Key.Text(), r.Token, r.UpTo, jsontext.Value(r.Data), optional(r.URI)}
}

// Leadership reads a request about the election.
func (w SnapshotRequest) Leadership(e leadership.Election) (leadership.SnapshotRequest, error) {
	r := leadership.SnapshotRequest{UpTo: w.UpTo, Data: json.RawMessage(w.Data), URI: given(w.URI)}
	err := dataOrURI(w.Data, w.URI)
	if err != nil {
		return r, err
	}
	r.LeaseRequest, err = Holder{w.CandidateID, w.Key, w.FencingToken}.Leadership(e)
	return r, err
}

// JournalSnapshot stands for the entries of a journal up to an index.
type JournalSnapshot struct {
	Election     leadership.Election `json:"election"`
	UpTo         leadership.Index    `json:"upTo"`
	FencingToken leadership.Token    `json:"fencingToken"`
	At           time.Time           `json:"at"`
	Data         jsontext.Value      `json:"data,omitzero"`
	URI          string              `json:"uri,omitzero"`
}

// NewJournalSnapshot writes a snapshot.
func NewJournalSnapshot(s leadership.JournalSnapshot) JournalSnapshot {
	return JournalSnapshot{s.Election, s.UpTo, s.Token, s.At.UTC(), jsontext.Value(s.Data), s.URI}
}

// Leadership reads a snapshot.
func (w JournalSnapshot) Leadership() leadership.JournalSnapshot {
	return leadership.JournalSnapshot{Election: w.Election, UpTo: w.UpTo, Token: w.FencingToken, At: w.At, Data: json.RawMessage(w.Data), URI: w.URI}
}
