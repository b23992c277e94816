package leadership

import (
	"context"
	"time"
)

// EventType says what a change was.
type EventType string

// The types of events.
const (
	EventAcquired   EventType = "acquired"   // LeaderID leads, with Token
	EventUpdated    EventType = "updated"    // the leader changed its metadata or made its lease longer
	EventReleased   EventType = "released"   // PreviousLeaderID has stopped by itself
	EventExpired    EventType = "expired"    // PreviousLeaderID did not renew in time
	EventConfigured EventType = "configured" // an operator created the election or changed its configuration
	EventDeleted    EventType = "deleted"    // an operator deleted the election
	EventRecreated  EventType = "recreated"  // an operator brought a deleted election back
)

// Event is one revision of an election. It is written in the transaction of the change that it tells of, and never changed.
type Event struct {
	Election         Election
	Revision         Revision
	Type             EventType
	At               time.Time   // when the change was committed, by the store's clock; a Store sets it
	LeaderID         CandidateID // who leads after the change; empty if nobody does
	PreviousLeaderID CandidateID // who led until the change, if it ended a lease
	Token            Token       // the election's token after the change
	RequestID        string      // of the call that made the change, as far as it had one
}

// EventID names an event.
type EventID struct {
	Election Election
	Revision Revision
}

// ID returns the event's name.
func (e Event) ID() EventID { return EventID{e.Election, e.Revision} }

// Publisher is told of what a Service has committed.
type Publisher interface {
	// Publish is told of the events of one change, in order, after its commit. It must not block, for whoever made the change waits. It
	// may be called from several goroutines; of two changes of one election it may then be told in the wrong order. A change whose
	// outcome is unknown is not told: the store's outbox has it, if it was made.
	Publish(events ...Event)
}

type requestIDKey struct{}

// WithRequestID returns a context whose changes are recorded as made by the request of that id, so that a person, or a checker that
// looks for the fate of a call whose reply was lost, finds the change in the history.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id that WithRequestID put there, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
