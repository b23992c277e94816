package leadership

import (
	"context"
	"time"
)

// EventType names what a change did. Later versions add types; readers ignore those that they do
// not know.
type EventType string

const (
	EventAcquired   EventType = "acquired"   // LeaderID leads, with Token
	EventUpdated    EventType = "updated"    // the leader changed its metadata or made its lease longer
	EventReleased   EventType = "released"   // PreviousLeaderID gave the lease back
	EventExpired    EventType = "expired"    // PreviousLeaderID did not renew in time
	EventConfigured EventType = "configured" // an operator created the election or changed its configuration
	EventDeleted    EventType = "deleted"    // an operator deleted the election
	EventRecreated  EventType = "recreated"  // an operator brought a deleted election back
	EventUnlocked   EventType = "unlocked"   // an operator ended a lease or a lock before its time

	EventAssigned EventType = "assigned" // an operator allows grants to one candidate only
	EventEvicted  EventType = "evicted"  // an operator ends the term, at the end already promised
	EventPaused   EventType = "paused"   // an operator allows no grant
	EventResumed  EventType = "resumed"  // an operator has ended the pause
	EventBanned   EventType = "banned"   // an operator bars a candidate, a pattern of ids, or a principal
	EventLifted   EventType = "lifted"   // an operator has ended a standing order
	EventApproved EventType = "approved" // an operator has approved of the leader
	EventHalted   EventType = "halted"   // an operator allows no grant in the elections of a pattern; only in HaltsElection

	EventApprovalRequested EventType = "approvalRequested" // the leader asks for an approval
	EventEpoch             EventType = "epoch"             // LeaderID goes on with the next token, Token
	EventJudged            EventType = "judged"            // a verifier has judged the leader's work
	EventTripped           EventType = "tripped"           // the leader has exceeded a limit of its policy, and goes on
	EventDeposed           EventType = "deposed"           // the policy has ended PreviousLeaderID's term
	EventParked            EventType = "parked"            // the last terms have exceeded SeriesPolicy: no grant before an approval

	EventHandingOver EventType = "handingOver" // the term of LeaderID ends at the end already promised, for a successor
	EventGoesOn      EventType = "goesOn"      // the successor has gone, and LeaderID goes on
	EventReady       EventType = "ready"       // the successor is ready
	EventServing     EventType = "serving"     // the leader serves, where Config.Promotion requires it to say so
	EventYielded     EventType = "yielded"     // LeaderID has stopped, and only its successor can take the lease
	EventDelegated   EventType = "delegated"   // LeaderID has made an election for a part of its task
)

// Event is one revision of an election. It is written in the transaction of its change, and never
// changed.
type Event struct {
	Election         Election
	Revision         Revision
	Type             EventType
	At               time.Time   // when the change was committed, by the store's clock; a Store sets it
	LeaderID         CandidateID // the leader after the change; empty if there is none
	PreviousLeaderID CandidateID // the leader until the change, if the change ended a lease
	Token            Token       // the election's token after the change
	RequestID        string      // of the call that made the change; empty if it had none
	Actor            string      // the verified principal that made the call; empty if unknown
	Reason           string      // why, in a person's words: at most MaxReasonBytes of UTF-8
	Detail           string      // more about the change: a canonical JSON object, at most MaxDetailBytes
}

// Limits of an event.
const (
	MaxReasonBytes = 256
	MaxDetailBytes = 2 << 10
)

// EventID names an event.
type EventID struct {
	Election Election
	Revision Revision
}

// ID returns the event's name.
func (e Event) ID() EventID { return EventID{e.Election, e.Revision} }

type requestIDKey struct{}

// WithRequestID returns a context whose changes are recorded with the request id. If the reply to a
// call was lost, its change can be found in the history by that id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id set by WithRequestID, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

type actorKey struct{}

// WithActor returns a context whose changes are recorded as made by the verified principal actor.
// Bans match its other names, too. The last name must be the one that never changes: records note
// the leader's principal by it.
func WithActor(ctx context.Context, actor string, others ...string) context.Context {
	return context.WithValue(ctx, actorKey{}, append([]string{actor}, others...))
}

// Actor returns the principal set by WithActor, or "".
func Actor(ctx context.Context) string {
	if names := Principal(ctx); len(names) > 0 {
		return names[0]
	}
	return ""
}

// Principal returns all names of the verified principal; none if the caller is not verified.
func Principal(ctx context.Context) []string {
	names, _ := ctx.Value(actorKey{}).([]string)
	return names
}
