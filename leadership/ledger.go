package leadership

import (
	"encoding/json"
	"errors"
	"time"
)

// Checkpoint is the state of its task that a leader leaves to the next one.
type Checkpoint struct {
	Election Election    `json:"election"`
	Token    Token       `json:"fencingToken"` // of the leader that put it; 0 if there is none
	LeaderID CandidateID `json:"leaderId"`
	// Sequence counts the checkpoints put by the leader that was the last to inherit or put one.
	Sequence int64           `json:"sequence,omitzero"`
	Task     string          `json:"task,omitzero"`   // one line of at most MaxTaskBytes bytes
	At       time.Time       `json:"at"`              // when it was put, by the store's clock
	Data     json.RawMessage `json:"data,omitzero"`   // any JSON, of at most MaxCheckpointBytes bytes; or
	URI      string          `json:"uri,omitzero"`    // where the data is
	SHA256   string          `json:"sha256,omitzero"` // of the data at the URI, in hexadecimal
}

// Inheritance is the checkpoint of an earlier term, for its successor.
type Inheritance struct {
	Checkpoint
	// EndedBecause is why the last term ended; "" if unknown, or if another term put the
	// checkpoint.
	EndedBecause EndReason `json:"endedBecause,omitzero"`
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

// JournalHead is the present state of a journal.
type JournalHead struct {
	Election Election `json:"election"`
	Token    Token    `json:"fencingToken,omitzero"` // the highest that has opened the journal; 0: none
	Index    Index    `json:"index"`                 // of the last entry; 0: none
	Snapshot Index    `json:"snapshotIndex"`         // entries up to this one are kept only as a snapshot; 0: none
	// Generation rises when the store is restored from a backup: the journal may have lost entries,
	// and others may have taken their indexes. 0: the store was never restored.
	Generation Token `json:"generation,omitzero"`
}

// AppendRequest adds entries to a journal.
type AppendRequest struct {
	LeaseRequest
	After   Index   // of the last entry that the leader knows; 0: there is none
	Entries []Entry // 1 to MaxEntries; their Type and Data count
}

// JournalSnapshot replaces the entries of a journal up to an index.
type JournalSnapshot struct {
	Election Election        `json:"election,omitzero"`
	UpTo     Index           `json:"upTo"`
	Token    Token           `json:"fencingToken"`
	At       time.Time       `json:"at,omitzero"`
	Data     json.RawMessage `json:"data,omitzero"` // or
	URI      string          `json:"uri,omitzero"`
}

// SnapshotRequest replaces the entries up to an index with a snapshot.
type SnapshotRequest struct {
	LeaseRequest
	UpTo Index
	Data json.RawMessage // any JSON, of at most MaxSnapshotBytes bytes; or
	URI  string          // where it is
}

// JournalRequest reads a part of a journal.
type JournalRequest struct {
	Election Election
	After    Index // entries with a greater index
	// Generation is that of the last page the reader read; any will do if After and Applied are 0.
	Generation Token
	Limit      int // 1 to MaxPageSize; 0 for DefaultPageSize
	// Member, if it is not empty, is a follower that has applied the entries up to Applied.
	Member  CandidateID
	Applied Index
}

// Validate returns an InvalidArgument error unless the request is valid.
func (r JournalRequest) Validate() error {
	if err := r.Election.Validate(); err != nil {
		return Invalid("election", err)
	}
	if r.After < 0 || r.Applied < 0 || r.Generation < 0 {
		return Invalid("after", errors.New("after, applied and generation are 0 or more"))
	}
	if r.Member != "" {
		if err := r.Member.Validate(); err != nil {
			return Invalid("member", err)
		}
	} else if r.Applied > 0 {
		return Invalid("applied", errors.New("applied says how far a member is; name the member, too"))
	}
	return validateLimit("limit", r.Limit)
}

// JournalPage is a part of a journal, with the journal's head at the time of the read or later.
type JournalPage struct {
	JournalHead
	Entries []Entry `json:"entries"` // in order and without a gap, from After+1
}

// Limits of a journal and of a checkpoint.
const (
	MaxEntries         = 500       // of one append
	MaxAppendBytes     = 512 << 10 // of the data of one append, together
	MaxEntryTypeBytes  = 64
	MaxSnapshotBytes   = 512 << 10
	MaxJournalBytes    = 16 << 20 // of the entries that no snapshot replaces, encoded
	MaxCheckpointBytes = 64 << 10
	MaxURIBytes        = 2 << 10
	MaxTaskBytes       = 256
	// MaxReadBytes is how much one call of Journal.Segments reads, plus at most one segment. With a
	// head that fits into a message of 4 MiB, the most that Firestore's emulator takes.
	MaxReadBytes = 2 << 20
)

// Index counts the entries of a journal, from 1, without a gap.
type Index int64

// Entry is one entry of a journal.
type Entry struct {
	Index Index           `json:"index,omitzero"`
	Token Token           `json:"fencingToken"`
	At    time.Time       `json:"at,omitzero"`
	Type  string          `json:"type,omitzero"`
	Data  json.RawMessage `json:"data"`
}
