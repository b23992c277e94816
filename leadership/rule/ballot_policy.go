package rule

import (
	"encoding/json"
	"math/bits"
	"time"

	"regent/leadership"
)

// count is how many members are in such a set.
func count(present uint32) int { return bits.OnesCount32(present) }

// ballotMembers are the members of a policy that say who should lead, bound to the fields of p.
func ballotMembers(p *leadership.BallotPolicy) []member {
	return []member{
		{name: "strategy", field: (*text)(&p.Strategy)},
		{name: "require", field: value(&p.Require)},
		{name: "prefer", field: value(&p.Prefer)},
		{name: "windowMs", field: (*window)(&p.Window)},
		{name: "preempt", field: value(&p.Preempt)},
		{name: "minTermMs", field: (*longMilliseconds)(&p.MinTerm)},
		{name: "electorate", field: value(&p.Quorum.Electorate)},
		{name: "quorumNeed", field: value(&p.Quorum.Need)},
		{name: "quorumGraceMs", field: (*milliseconds)(&p.Quorum.Grace)},
	}
}

// window is a window in milliseconds; NoWindow is -1.
type window time.Duration

func (w *window) encode() json.RawMessage { return (*milliseconds)(w).encode() }

func (w *window) decode(value json.RawMessage) error {
	if string(value) == "-1" {
		*w = window(leadership.NoWindow)
		return nil
	}
	return decodeMilliseconds(value, leadership.MaxWindow, (*time.Duration)(w))
}
