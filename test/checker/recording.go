package checker

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"regent/leadership"
)

// Forever is the end of a call that was never answered.
const Forever time.Duration = math.MaxInt64

// Recording is what happened in one run. All times are on one clock, which never goes back.
type Recording struct {
	// History is the truth: all elections, each from its first revision, in order.
	History   []leadership.Event `json:"history,omitempty"`
	Consumers []Consumer         `json:"consumers,omitempty"`
	Readings  []Reading          `json:"readings,omitempty"`
	Calls     []Call             `json:"calls,omitempty"`
	Beliefs   []Belief           `json:"beliefs,omitempty"`
	Writes    []Write            `json:"writes,omitempty"`
	Faults    []Fault            `json:"faults,omitempty"`
	Willing   []Willing          `json:"willing,omitempty"`
	Present   []Present          `json:"present,omitempty"`
	Effects   []EffectCall       `json:"effects,omitempty"`
	Proposals []ProposalCall     `json:"proposals,omitempty"`
}

// Write writes the recording as one JSON object.
func (r Recording) Write(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// Consumer is told of changes.
type Consumer struct {
	Name string `json:"name"`
	// those that it is to hear of; none for all
	Elections []leadership.Election `json:"elections,omitempty"`
	// what it knew to begin with
	After map[leadership.Election]leadership.Revision `json:"after,omitempty"`
	// those that were deleted then, of which it was not told
	Deleted []leadership.Election `json:"deleted,omitempty"`
	// it has stopped: events after the last that it received may be missing
	Partial bool `json:"partial,omitempty"`
	// in the order of arrival
	Got []leadership.Event `json:"got,omitempty"`
}

// Reading is what a reader was shown of an election.
type Reading struct {
	// whose readings never go back: on one instance, one after the other
	Reader   string                 `json:"reader"`
	Election leadership.Election    `json:"election"`
	Revision leadership.Revision    `json:"revision"`
	State    leadership.State       `json:"state"`
	Leader   leadership.CandidateID `json:"leader,omitempty"`
	Token    leadership.Token       `json:"token"`
	Asked    time.Duration          `json:"asked"`
	Answered time.Duration          `json:"answered"`
	// it was to come from the store, and has no age
	Strong bool `json:"strong,omitempty"`
	// as stated, rounded up by less than AgeUnit
	Age   time.Duration `json:"age,omitempty"`
	Bound time.Duration `json:"bound,omitempty"` // the stated limit of the age
	// the revision that the reader said it had seen
	Known leadership.Revision `json:"known,omitempty"`
	// the whole answer, if it is recorded
	Shown *leadership.Lease `json:"shown,omitempty"`
}

// AgeUnit is the unit of an answer's age in HTTP.
const AgeUnit = time.Second
