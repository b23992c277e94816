package checker

import (
	"cmp"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Verb is what a call asks for.
type Verb string

// The calls that are recorded: those that change something, and those that ask the store how it is.
const (
	Acquire   Verb = "acquire"
	Renew     Verb = "renew"
	Release   Verb = "release"
	Check     Verb = "checkToken"
	Get       Verb = "get" // strong
	Configure Verb = "configure"
	Delete    Verb = "delete"
	Unlock    Verb = "unlock"

	Order           Verb = "order"
	Judge           Verb = "judge"
	StepDown        Verb = "stepDown"
	RequestApproval Verb = "requestApproval"

	HandOver Verb = "handOver"
	Ready    Verb = "ready"
	Serving  Verb = "serving"
	Yield    Verb = "yield"
	Delegate Verb = "delegate" // as the parent's election sees it
)

// Call is one call of the service, as its caller saw it. A call that a client repeats by itself,
// after a lost reply, is several.
type Call struct {
	Caller string `json:"caller"`
	// its id, which the events of what it did have too
	Request   string                 `json:"request,omitempty"`
	Verb      Verb                   `json:"verb"`
	Election  leadership.Election    `json:"election"`
	Candidate leadership.CandidateID `json:"candidate,omitempty"`
	Key       leadership.KeyHash     `json:"key,omitzero"` // of the incarnation that asked
	// renew, release, checkToken, handOver, yield, delegate: the one that was named
	Token leadership.Token `json:"token,omitzero"`
	// acquire: what was asked for; 0 as configured
	Lease    time.Duration       `json:"lease,omitzero"`
	Metadata leadership.Metadata `json:"metadata,omitempty"`
	// acquire: what the candidate said of itself
	Candidacy leadership.Candidacy `json:"candidacy,omitzero"`
	// acquire: the lease on which the other one shall stand
	Via leadership.Via `json:"via,omitzero"`
	// checkToken: for a write
	Write bool `json:"write,omitempty"`
	// handOver: the successor, and within which time
	To     leadership.CandidateID `json:"to,omitempty"`
	Within time.Duration          `json:"within,omitzero"`
	Chosen leadership.CandidateID `json:"-"` // where it names none: the one that the answer or the event names
	// delegate
	Child  leadership.Election `json:"child,omitempty"`
	Limits leadership.Limits   `json:"limits,omitzero"`
	Config leadership.Config   `json:"config,omitzero"`
	If     leadership.Revision `json:"if,omitzero"`     // configure, delete: the condition
	Force  bool                `json:"force,omitempty"` // delete
	// unlock: what the operator acknowledged
	Acknowledge string `json:"acknowledge,omitempty"`
	// renew: what the leader says of its work
	Report leadership.ReportText `json:"report,omitempty"`
	// order
	Order leadership.Order `json:"order,omitzero"`
	// judge; its token is Token
	Verdict leadership.Verdict `json:"verdict,omitempty"`
	Actor   string             `json:"actor,omitempty"`
	// judge: the evidence; stepDown; handOver; requestApproval: the note
	Reason string        `json:"reason,omitempty"`
	For    time.Duration `json:"for,omitzero"` // stepDown
	// release
	Outcome leadership.Outcome `json:"outcome,omitempty"`

	Asked    time.Duration `json:"asked"`
	Answered time.Duration `json:"answered"` // Forever if the answer was lost
	// why it was not done; "" if it was; OutcomeUnknown if that is unknown
	Code leadership.Code `json:"code,omitempty"`
	// why it was refused, in more detail
	Because leadership.Reason `json:"because,omitempty"`
	// in how long the caller was told to ask again
	Again time.Duration `json:"again,omitzero"`
	// acquire: in the queue; if it was refused, for how long it was ready to wait
	Waited time.Duration `json:"waited,omitzero"`
	// the election as the answer shows it, done or refused; nil if it does not
	Answer *leadership.Lease `json:"answer,omitempty"`
}

// Belief is a time during which a candidate believed that it led: from when it learned of the grant
// to the last moment at which it would have said so.
type Belief struct {
	Who      string              `json:"who"`
	Election leadership.Election `json:"election"`
	Token    leadership.Token    `json:"token"`
	From     time.Duration       `json:"from"`
	Until    time.Duration       `json:"until"`
}

// Write is a write of a leader where the token is checked, or where it is not. Newest is the newest
// token admitted before.
type Write struct {
	Who      string              `json:"who"`
	Election leadership.Election `json:"election"`
	Token    leadership.Token    `json:"token"`
	Newest   leadership.Token    `json:"newest"` // that the place had seen
	Admitted bool                `json:"admitted"`
	At       time.Duration       `json:"at"`
}

// Fault is something that was done to the parts of the system, on purpose.
type Fault struct {
	Name  string        `json:"name"`
	From  time.Duration `json:"from"`
	Until time.Duration `json:"until"` // when it was healed; Forever if never
}

// Willing is a time during which a candidate wanted to lead, was able to, and asked for it.
type Willing struct {
	Who      string              `json:"who"` // as in Event.LeaderID
	Election leadership.Election `json:"election"`
	From     time.Duration       `json:"from"`
	Until    time.Duration       `json:"until"` // Forever if to the end
}

// Present is a time during which a member of an election may count as present: until the last
// instance that had heard of it has forgotten it. If there is one for an election, all of the
// election's members are recorded.
type Present struct {
	Member   leadership.CandidateID `json:"member"`
	Election leadership.Election    `json:"election"`
	From     time.Duration          `json:"from"`
	Until    time.Duration          `json:"until"`
}

// done reports whether the caller was told that it was done.
func (c Call) done() bool { return c.Code == "" && c.Answered != Forever }

// refused reports whether the caller was told that nothing was done.
func (c Call) refused() bool {
	switch c.Code {
	case leadership.InvalidArgument, leadership.NotFound, leadership.LeaseHeld, leadership.LeaseLost, leadership.TokenStale, leadership.ElectionDeleted,
		leadership.RevisionMismatch, leadership.LimitExceeded, leadership.RecordCorrupt, leadership.StoreUnavailable, leadership.NotEligible, leadership.ReadOnly,
		leadership.NotReady, leadership.DepthExceeded,
		wire.Unauthenticated, wire.PermissionDenied, wire.RateLimited, wire.Draining:
		return c.Answered != Forever
	}
	return false
}

// unknown reports whether the outcome is unknown.
func (c Call) unknown() bool { return !c.done() && !c.refused() }

// shows reports whether the answer tells how the election was at some moment of the call. A waiting
// candidate that is refused is told an earlier state.
func (c Call) shows() bool {
	return c.Answer != nil && c.Answered != Forever && (c.done() || c.Verb != Acquire || c.Waited == 0)
}

// beat reports whether the answer is that of a lease which started anew.
func (c Call) beat() bool {
	return c.done() && c.Answer != nil && (c.Verb == Acquire || c.Verb == Renew)
}

// mayBeat reports whether the candidate's lease with the token may have started anew by the call
// without an answer.
func (c Call) mayBeat(who leadership.CandidateID, t leadership.Token) bool {
	told := c.refused() || c.done() && c.Answer != nil
	return !told && c.Candidate == who && (c.Verb == Acquire || c.Verb == Renew && c.Token == t)
}

// at is the store's time of what the answer shows.
func (c Call) at() time.Time {
	if c.beat() {
		return c.Answer.LastHeartbeat
	}
	return c.Answer.ReadAt
}

// String is what a reader of a report needs to find the call.
func (c Call) String() string {
	text := fmt.Sprintf("%s of %q by %s", c.Verb, c.Election, cmp.Or(string(c.Candidate), c.Caller))
	if c.Order.Kind != "" {
		text += fmt.Sprintf(", %s %s", c.Order.Kind, cmp.Or(string(c.Order.CandidateID), string(c.Order.Override)))
	}
	if c.Token > 0 {
		text += fmt.Sprintf(" with token %d", c.Token)
	}
	if c.Request != "" {
		text += " (" + c.Request + ")"
	}
	switch {
	case c.unknown():
		return fmt.Sprintf("%s, asked at %v, outcome unknown", text, c.Asked)
	case c.refused():
		text += ", refused with " + string(c.Code)
	}
	text += fmt.Sprintf(", %v to %v", c.Asked, c.Answered)
	if a := c.Answer; a != nil {
		text += fmt.Sprintf(", which shows revision %d, token %d, %s %s at %s", a.Revision, a.Token, a.State, a.LeaderID, a.ReadAt.Format(time.RFC3339Nano))
	}
	return text
}
