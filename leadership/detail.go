package leadership

import (
	"encoding/json"
	"time"
)

// Detail is the decoded Event.Detail; each event uses a few of its members. The members must stay
// in the order of their names, in which they are stored. A member is a pointer if its 0 is written.
type Detail struct {
	Bad                *int        `json:"bad,omitzero"`
	BadVerdicts        int         `json:"badVerdicts,omitzero"`
	Because            string      `json:"because,omitzero"` // EndsHandOver or BecausePreempt
	Bids               int         `json:"bids,omitzero"`    // how many candidates have bid
	Budget             *int64      `json:"budget,omitzero"`
	Calls              int64       `json:"calls,omitzero"`
	CandidateID        CandidateID `json:"candidateId,omitzero"`
	Child              Election    `json:"child,omitzero"`
	Children           *int        `json:"children,omitzero"`
	Counter            string      `json:"counter,omitzero"`
	Depth              *int        `json:"depth,omitzero"`
	Elections          Election    `json:"elections,omitzero"` // of a halt
	EndsBecause        EndReason   `json:"endsBecause,omitzero"`
	EndsBy             time.Time   `json:"endsBy,omitzero"`
	ErrorRate          json.Number `json:"errorRate,omitzero"`
	Errors             int64       `json:"errors,omitzero"`
	Failures           int         `json:"failures,omitzero"` // failed terms within WithinMS
	From               Token       `json:"from,omitzero"`     // of the epoch before
	Good               *int        `json:"good,omitzero"`
	Have               int         `json:"have,omitzero"` // approvals
	Last               CandidateID `json:"last,omitzero"` // the last leader
	LeaseDurationMS    int64       `json:"leaseDurationMs,omitzero"`
	Mode               PauseMode   `json:"mode,omitzero"`
	Need               int         `json:"need,omitzero"`
	NewEpoch           bool        `json:"newEpoch,omitzero"` // the leader asks for a new epoch
	Others             []ShownBid  `json:"others,omitzero"`   // the best of the other bids
	Outcome            Outcome     `json:"outcome,omitzero"`
	Override           OverrideID  `json:"override,omitzero"`
	Place              int         `json:"place,omitzero"`   // the winner's among all bids, from 1
	Present            int         `json:"present,omitzero"` // members of the electorate that are present
	Principal          string      `json:"principal,omitzero"`
	Progress           *int64      `json:"progress,omitzero"`
	RetireAfterMS      int64       `json:"retireAfterMs,omitzero"`
	Secret             string      `json:"secret,omitzero"` // of the draw
	Strategy           Strategy    `json:"strategy,omitzero"`
	StuckAfterMS       int64       `json:"stuckAfterMs,omitzero"`
	To                 CandidateID `json:"to,omitzero"` // the successor
	TwoMayBelieveUntil time.Time   `json:"twoMayBelieveUntil,omitzero"`
	Until              time.Time   `json:"until,omitzero"` // the end of the order, or of the cooldown
	Value              int64       `json:"value,omitzero"`
	Verdict            Verdict     `json:"verdict,omitzero"`
	Verdicts           int         `json:"verdicts,omitzero"` // how many bad verdicts trip
	Winner             *ShownBid   `json:"winner,omitzero"`
	WithinMS           int64       `json:"withinMs,omitzero"`
}

// ShownBid is a bid as the event of a grant shows it: the values that the strategy compares.
type ShownBid struct {
	CandidateID CandidateID `json:"candidateId"`
	Draw        string      `json:"draw,omitzero"` // its first eight bytes
	Load        *int64      `json:"load,omitzero"`
	Preferred   *int        `json:"preferred,omitzero"`
	Priority    *int64      `json:"priority,omitzero"`
	Since       *time.Time  `json:"since,omitzero"`
}

// ReadDetail decodes the event's detail. It ignores members that this version does not know.
func (e Event) ReadDetail() Detail {
	if e.Detail == "" {
		return Detail{}
	}
	var d Detail
	_ = json.Unmarshal([]byte(e.Detail), &d) // a member that cannot be decoded stays empty
	return d
}
