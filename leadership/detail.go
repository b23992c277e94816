package leadership

import (
	"encoding/json"
	"time"
)

// Detail is what Event.Detail says, of each event a few members. They are in the order of their
// names, which is how they are stored. A member that may be 0 and is written then is a pointer.
type Detail struct {
	Bad                *int        `json:"bad,omitzero"`
	BadVerdicts        int         `json:"badVerdicts,omitzero"`
	Because            string      `json:"because,omitzero"` // EndsHandOver or BecausePreempt
	Bids               int         `json:"bids,omitzero"`    // of candidates
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
	Failures           int         `json:"failures,omitzero"` // of terms, within WithinMS
	From               Token       `json:"from,omitzero"`     // of the epoch before
	Good               *int        `json:"good,omitzero"`
	Have               int         `json:"have,omitzero"` // approvals
	Last               CandidateID `json:"last,omitzero"` // the last leader
	LeaseDurationMS    int64       `json:"leaseDurationMs,omitzero"`
	Mode               PauseMode   `json:"mode,omitzero"`
	Need               int         `json:"need,omitzero"`
	NewEpoch           bool        `json:"newEpoch,omitzero"` // is asked for
	Others             []ShownBid  `json:"others,omitzero"`   // the best of them
	Outcome            Outcome     `json:"outcome,omitzero"`
	Override           OverrideID  `json:"override,omitzero"`
	Place              int         `json:"place,omitzero"`   // the winner's among all bids, from 1
	Present            int         `json:"present,omitzero"` // members of the electorate
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
	Verdicts           int         `json:"verdicts,omitzero"` // bad ones that trip
	Winner             *ShownBid   `json:"winner,omitzero"`
	WithinMS           int64       `json:"withinMs,omitzero"`
}

// ShownBid is a bid as the event of a grant shows it: what the strategy counts.
type ShownBid struct {
	CandidateID CandidateID `json:"candidateId"`
	Draw        string      `json:"draw,omitzero"` // its first eight bytes
	Load        *int64      `json:"load,omitzero"`
	Preferred   *int        `json:"preferred,omitzero"`
	Priority    *int64      `json:"priority,omitzero"`
	Since       *time.Time  `json:"since,omitzero"`
}

// ReadDetail returns what the event's detail says, as far as this program knows its members.
func (e Event) ReadDetail() Detail {
	if e.Detail == "" {
		return Detail{}
	}
	var d Detail
	_ = json.Unmarshal([]byte(e.Detail), &d) // what cannot be read says nothing
	return d
}
