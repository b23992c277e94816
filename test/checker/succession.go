package checker

import (
	"encoding/json"
	"time"

	"regent/leadership"
)

// byLeader reports whether a leader has named its successor itself.
func byLeader(e leadership.Event) bool {
	var detail struct{ Because leadership.EndReason }
	return e.Type == leadership.EventHandingOver && json.Unmarshal([]byte(e.Detail), &detail) == nil && detail.Because == leadership.EndsHandOver
}

// readyOf is the candidate that is ready.
func readyOf(e leadership.Event) leadership.CandidateID {
	if e.Type != leadership.EventReady {
		return ""
	}
	return standingOf(e).CandidateID
}

// endsByOf is the end that a hand-over sets.
func endsByOf(e leadership.Event) time.Time {
	var detail struct{ EndsBy time.Time }
	_ = json.Unmarshal([]byte(e.Detail), &detail) // zero if it says none
	return detail.EndsBy
}
