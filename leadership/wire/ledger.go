package wire

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// Limits of the bodies of checkpoints, appends and snapshots, with room for the other fields and
// for some white space.
const (
	MaxCheckpointBody = leadership.MaxCheckpointBytes + MaxBody
	MaxAppendBody     = leadership.MaxAppendBytes + leadership.MaxEntries*(leadership.MaxEntryTypeBytes+32) + MaxBody
	MaxSnapshotBody   = leadership.MaxSnapshotBytes + MaxBody
)

// CheckpointRequest is the body that puts a checkpoint.
type CheckpointRequest struct {
	Holder
	Sequence int64          `json:"sequence"`
	Task     string         `json:"task,omitzero"`
	Data     jsontext.Value `json:"data,omitzero"`
	URI      *string        `json:"uri,omitzero"`
	SHA256   *string        `json:"sha256,omitzero"`
}

// NewCheckpointRequest writes a request.
func NewCheckpointRequest(r leadership.CheckpointRequest) CheckpointRequest {
	return CheckpointRequest{NewHolder(r.LeaseRequest), r.Sequence, r.Task, jsontext.Value(r.Data), optional(r.URI), optional(r.SHA256)}
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
	r.LeaseRequest, err = w.Holder.Leadership(e)
	return r, err
}

// dataOrURI accepts a body with either data or a URI.
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

// MaxDepth is how deep the data of a caller may nest arrays and objects, far less than JSON parsers
// can handle.
const MaxDepth = 100

// shallow accepts JSON that nests no more than MaxDepth arrays and objects.
func shallow(pointer string, data jsontext.Value) error {
	if Deeper(data, MaxDepth) {
		return malformed(pointer, "data nests more than %d arrays and objects; send it flatter, or as one string", MaxDepth)
	}
	return nil
}

// Deeper reports whether data, if it is JSON, nests more than most arrays and objects.
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

// AppendRequest is the body that adds entries to a journal.
type AppendRequest struct {
	Holder
	After   leadership.Index `json:"after"`
	Entries []NewEntry       `json:"entries"`
}

// NewEntry is an entry that is not in the journal yet.
type NewEntry struct {
	Type string         `json:"type,omitzero"`
	Data jsontext.Value `json:"data"`
}

// NewAppendRequest writes a request.
func NewAppendRequest(r leadership.AppendRequest) AppendRequest {
	entries := appended([]NewEntry{}, r.Entries, func(e leadership.Entry) NewEntry { return NewEntry{e.Type, jsontext.Value(e.Data)} })
	return AppendRequest{NewHolder(r.LeaseRequest), r.After, entries}
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
	r.LeaseRequest, err = w.Holder.Leadership(e)
	return r, err
}

// SnapshotRequest is the body that replaces entries with a snapshot.
type SnapshotRequest struct {
	Holder
	UpTo leadership.Index `json:"upTo"`
	Data jsontext.Value   `json:"data,omitzero"`
	URI  *string          `json:"uri,omitzero"`
}

// NewSnapshotRequest writes a request.
func NewSnapshotRequest(r leadership.SnapshotRequest) SnapshotRequest {
	return SnapshotRequest{NewHolder(r.LeaseRequest), r.UpTo, jsontext.Value(r.Data), optional(r.URI)}
}

// Leadership reads a request about the election.
func (w SnapshotRequest) Leadership(e leadership.Election) (leadership.SnapshotRequest, error) {
	r := leadership.SnapshotRequest{UpTo: w.UpTo, Data: json.RawMessage(w.Data), URI: given(w.URI)}
	err := dataOrURI(w.Data, w.URI)
	if err != nil {
		return r, err
	}
	r.LeaseRequest, err = w.Holder.Leadership(e)
	return r, err
}

// EffectRequest is the part of a leader's request that names an effect.
type EffectRequest struct {
	Holder
	EffectID leadership.EffectID `json:"effectId"`
}

func newEffectRequest(r leadership.EffectRequest) EffectRequest {
	return EffectRequest{NewHolder(r.LeaseRequest), r.ID}
}

// BeginRequest is the body that begins an effect.
type BeginRequest struct {
	EffectRequest
	AttemptID string `json:"attemptId,omitzero"`
}

// NewBeginRequest writes a request.
func NewBeginRequest(r leadership.EffectRequest) BeginRequest {
	return BeginRequest{newEffectRequest(r), r.Attempt}
}

// Leadership reads a request about the election.
func (w BeginRequest) Leadership(e leadership.Election) (leadership.EffectRequest, error) {
	r, err := w.EffectRequest.Leadership(e)
	r.Attempt = w.AttemptID
	return r, err
}

// Leadership reads a request about the election.
func (w EffectRequest) Leadership(e leadership.Election) (leadership.EffectRequest, error) {
	holder, err := w.Holder.Leadership(e)
	return leadership.EffectRequest{LeaseRequest: holder, ID: w.EffectID}, err
}

// FinishRequest is the body that finishes an effect.
type FinishRequest struct {
	EffectRequest
	Result jsontext.Value `json:"result,omitzero"`
}

// NewFinishRequest writes a request.
func NewFinishRequest(r leadership.FinishRequest) FinishRequest {
	return FinishRequest{newEffectRequest(r.EffectRequest), jsontext.Value(r.Result)}
}

// Leadership reads a request about the election.
func (w FinishRequest) Leadership(e leadership.Election) (leadership.FinishRequest, error) {
	if err := shallow("/result", w.Result); err != nil {
		return leadership.FinishRequest{}, err
	}
	r, err := w.EffectRequest.Leadership(e)
	return leadership.FinishRequest{EffectRequest: r, Result: json.RawMessage(w.Result)}, err
}

// ProposeRequest is the body that proposes something to the leader of an election.
type ProposeRequest struct {
	CandidateID leadership.CandidateID `json:"candidateId"`
	ProposalID  leadership.ProposalID  `json:"proposalId"`
	Kind        string                 `json:"kind"`
	Data        jsontext.Value         `json:"data,omitzero"`
	TTL         *Duration              `json:"ttl,omitzero"`
	Wait        Duration               `json:"wait,omitzero"`
}

// NewProposeRequest writes a request.
func NewProposeRequest(r leadership.ProposeRequest) ProposeRequest {
	return ProposeRequest{r.CandidateID, r.ID, r.Kind, jsontext.Value(r.Data), optional(Duration(r.TTL)), Duration(r.Wait)}
}

// Leadership reads a request about the election.
func (w ProposeRequest) Leadership(e leadership.Election) (leadership.ProposeRequest, error) {
	r := leadership.ProposeRequest{Election: e, CandidateID: w.CandidateID, ID: w.ProposalID, Kind: w.Kind, Data: json.RawMessage(w.Data), TTL: time.Duration(given(w.TTL)), Wait: time.Duration(w.Wait)}
	if isEmpty(w.TTL) {
		return r, malformed("/ttl", "ttl is from %s to %s, not 0s; leave it out for %s", Duration(leadership.MinProposalTTL), Duration(leadership.MaxProposalTTL), Duration(leadership.DefaultProposalTTL))
	}
	if err := validateWait(w.Wait); err != nil {
		return r, err
	}
	if err := shallow("/data", w.Data); err != nil {
		return r, err
	}
	if ttl := cmp.Or(r.TTL, leadership.DefaultProposalTTL); r.Wait > ttl {
		return r, malformed("/wait", "wait is no longer than ttl, which is %v, and not %v", Duration(ttl), w.Wait)
	}
	return r, r.Validate()
}

// DecideRequest is the body of a leader's decision.
type DecideRequest struct {
	Holder
	ProposalID leadership.ProposalID      `json:"proposalId"`
	Verdict    leadership.ProposalVerdict `json:"verdict"`
	Note       string                     `json:"note,omitzero"`
}

// NewDecideRequest writes a request.
func NewDecideRequest(r leadership.DecideRequest) DecideRequest {
	return DecideRequest{NewHolder(r.LeaseRequest), r.ID, r.Verdict, r.Note}
}

// Leadership reads a request about the election.
func (w DecideRequest) Leadership(e leadership.Election) (leadership.DecideRequest, error) {
	holder, err := w.Holder.Leadership(e)
	r := leadership.DecideRequest{LeaseRequest: holder, ID: w.ProposalID, Verdict: w.Verdict, Note: w.Note}
	if err != nil {
		return r, err
	}
	return r, r.Validate()
}
