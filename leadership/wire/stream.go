package wire

import "regent/leadership"

// The names of what stands in a stream beside events, which have none.
const (
	StreamSnapshot = "snapshot" // an election as it was when the stream began: a Lease
	StreamReady    = "ready"    // there is nothing more to tell of how things were; see StreamStart
	StreamEnd      = "end"      // the stream ends here, and another one goes on from its id: a StreamStop
)

// StreamStart is told once a stream of all elections has told of each.
type StreamStart struct {
	Elections int `json:"elections"`
}

// StreamStop says why a stream ends.
type StreamStop struct {
	Reason StopReason `json:"reason"`
}

// StopReason is why a stream ends though nothing is wrong with its reader. Resume it with the header Last-Event-ID.
type StopReason string

// The reasons.
const (
	StopLimit     StopReason = "limit"     // it has lasted for as long as a stream may
	StopDraining  StopReason = "draining"  // this instance is shutting down; resume with another
	StopSlow      StopReason = "slow"      // it was read more slowly than things happened
	StopCompacted StopReason = "compacted" // so much has happened that not all of it can be told; begin without a cursor
)

// ParseLastEventID reads up to where a stream of one election was read. The error has the code InvalidArgument.
func ParseLastEventID(id string) (leadership.Revision, error) {
	if id == "0" {
		return 0, nil
	}
	if r, ok := revisionOf(`"` + id + `"`); ok {
		return r, nil
	}
	return 0, &leadership.Error{Code: leadership.InvalidArgument, Field: LastEventIDHeader, Detail: LastEventIDHeader +
		" is the id of the last event that was read, a revision, not " + Quote(id) + "; leave it out to begin with how things are"}
}
