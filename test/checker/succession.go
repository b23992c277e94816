package checker

import (
	"time"

	"regent/leadership"
)

// byLeader reports whether a leader has named its successor itself.
func byLeader(e leadership.Event) bool {
	return e.Type == leadership.EventHandingOver && e.ReadDetail().Because == string(leadership.EndsHandOver)
}

// readyOf is the candidate that is ready.
func readyOf(e leadership.Event) leadership.CandidateID {
	if e.Type != leadership.EventReady {
		return ""
	}
	return standingOf(e).CandidateID
}

// endsByOf is the end that a hand-over sets.
func endsByOf(e leadership.Event) time.Time { return e.ReadDetail().EndsBy }
