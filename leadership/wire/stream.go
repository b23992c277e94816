package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// The names of the messages of a stream. An event has no name.
const (
	StreamSnapshot = "snapshot" // an election at the start of the stream: a Lease
	StreamReady    = "ready"    // after the last snapshot; see StreamStart
	StreamReport   = "report"   // the leader has sent a report; see StreamReported. It has no id
	StreamEntry    = "entry"    // an entry of a journal; see JournalEntry
	StreamMember   = "member"   // a member has come or gone; see MemberChange. It has no id
	StreamEnd      = "end"      // the last message; resume from its id: a StreamStop
)

// StreamStart follows the snapshots of a stream of all elections.
type StreamStart struct {
	Elections int `json:"elections"` // how many snapshots there were
}

// StreamReported is the last report of the election's leader.
type StreamReported struct {
	Report       jsontext.Value   `json:"report"`
	ReportedAt   time.Time        `json:"reportedAt"`
	FencingToken leadership.Token `json:"fencingToken"`
}

// NewStreamReported writes a report.
func NewStreamReported(r leadership.ReportText, at time.Time, token leadership.Token) StreamReported {
	return StreamReported{rawReport(r), at.UTC(), token}
}

// StreamStop says why a stream ends.
type StreamStop struct {
	Reason StopReason `json:"reason"`
}

// StopReason is why the server ends a stream. The reader resumes with the header Last-Event-ID.
type StopReason string

// The reasons for the end of a stream.
const (
	StopLimit     StopReason = "limit"     // the stream has lasted as long as one may
	StopDraining  StopReason = "draining"  // this instance is shutting down; resume at another
	StopSlow      StopReason = "slow"      // the reader was slower than the events
	StopCompacted StopReason = "compacted" // some events are no longer kept; start without a cursor, or for a journal with its snapshot
)

// ParseLastEventID reads the revision up to which a stream of one election was read. The error has
// the code InvalidArgument.
func ParseLastEventID(id string) (leadership.Revision, error) {
	if id == "0" {
		return 0, nil
	}
	if r, ok := revisionOf(`"` + id + `"`); ok {
		return r, nil
	}
	return 0, malformed(LastEventIDHeader, "%s must be the id of the last event that was read, a revision, not %s; leave it out to start with a snapshot",
		LastEventIDHeader, Quote(id))
}

// EntryID returns the id of an entry in a stream of a journal: "generation:index", or only the
// index if the generation is 0.
func EntryID(generation leadership.Token, i leadership.Index) string {
	if generation == 0 {
		return strconv.FormatInt(int64(i), 10)
	}
	return fmt.Sprintf("%d:%d", generation, i)
}

// ParseLastEntryID reads the place up to which a stream of a journal was read. The error has the
// code InvalidArgument.
func ParseLastEntryID(id string) (leadership.Token, leadership.Index, error) {
	generation, index, restored := strings.Cut(id, ":")
	if !restored {
		generation, index = "0", id
	}
	g, err := ParseLastEventID(generation)
	i, err2 := ParseLastEventID(index)
	if err != nil || err2 != nil || EntryID(leadership.Token(g), leadership.Index(i)) != id {
		return 0, 0, malformed(LastEventIDHeader, "%s must be the id of the last entry that was read, not %s; leave it out, and send after, to start elsewhere",
			LastEventIDHeader, Quote(id))
	}
	return leadership.Token(g), leadership.Index(i), nil
}
