package wire

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// Event is one revision of an election.
type Event struct {
	Election         leadership.Election    `json:"election"`
	Revision         leadership.Revision    `json:"revision"`
	Type             leadership.EventType   `json:"type"`
	At               time.Time              `json:"at"`
	LeaderID         leadership.CandidateID `json:"leaderId,omitzero"`
	PreviousLeaderID leadership.CandidateID `json:"previousLeaderId,omitzero"`
	FencingToken     leadership.Token       `json:"fencingToken"`
	RequestID        string                 `json:"requestId,omitzero"`
	Actor            string                 `json:"actor,omitzero"`
	Reason           string                 `json:"reason,omitzero"`
	Detail           jsontext.Value         `json:"detail,omitzero"` // an object
}

// NewEvent writes an event.
func NewEvent(e leadership.Event) Event {
	return Event{
		Election:         e.Election,
		Revision:         e.Revision,
		Type:             e.Type,
		At:               e.At.UTC(),
		LeaderID:         e.LeaderID,
		PreviousLeaderID: e.PreviousLeaderID,
		FencingToken:     e.Token,
		RequestID:        e.RequestID,
		Actor:            e.Actor,
		Reason:           e.Reason,
		Detail:           rawObject([]byte(e.Detail)),
	}
}

// Leadership reads an event.
func (w Event) Leadership() leadership.Event {
	return leadership.Event{
		Election:         w.Election,
		Revision:         w.Revision,
		Type:             w.Type,
		At:               w.At,
		LeaderID:         w.LeaderID,
		PreviousLeaderID: w.PreviousLeaderID,
		Token:            w.FencingToken,
		RequestID:        w.RequestID,
		Actor:            w.Actor,
		Reason:           w.Reason,
		Detail:           string(w.Detail),
	}
}

// History is a part of the events of an election, oldest first.
type History struct {
	Events []Event `json:"events"`
	// NextAfter is the value of after that asks for the next part.
	NextAfter leadership.Revision `json:"nextAfter"`
}

// NewHistory writes the events that follow a revision.
func NewHistory(after leadership.Revision, events []leadership.Event) History {
	h := History{Events: make([]Event, len(events)), NextAfter: after}
	for i, e := range events {
		h.Events[i], h.NextAfter = NewEvent(e), e.Revision
	}
	return h
}

// Leadership reads the events. It returns an error for a document that is not a history.
func (h History) Leadership() ([]leadership.Event, error) {
	if h.Events == nil {
		return nil, errors.New("a history without events")
	}
	return appended(nil, h.Events, Event.Leadership), nil
}
