package checker

import (
	"time"

	"regent/leadership"
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
)

// Call is one call on the service, as its caller saw it. A call that a client repeats by itself, after a reply was lost, is several.
type Call struct {
	Caller    string                 `json:"caller"`
	Request   string                 `json:"request,omitempty"` // its id: the events of what it did have it too
	Verb      Verb                   `json:"verb"`
	Election  leadership.Election    `json:"election"`
	Candidate leadership.CandidateID `json:"candidate,omitempty"`
	Key       leadership.KeyHash     `json:"key,omitzero"`   // of the incarnation that asked
	Token     leadership.Token       `json:"token,omitzero"` // renew, release, checkToken: the one that was named
	Lease     time.Duration          `json:"lease,omitzero"` // acquire: what was asked for; 0 as configured
	Config    leadership.Config      `json:"config,omitzero"`
	Force     bool                   `json:"force,omitempty"` // delete

	Asked    time.Duration     `json:"asked"`
	Answered time.Duration     `json:"answered"`         // Forever if the answer was lost
	Code     leadership.Code   `json:"code,omitempty"`   // why it was not done; "" if it was; OutcomeUnknown if nobody knows
	Waited   time.Duration     `json:"waited,omitzero"`  // acquire: in line
	Answer   *leadership.Lease `json:"answer,omitempty"` // the election as the answer shows it, done or refused; nil if it does not
}

// Belief is a time during which somebody believed that it led: from when it was told of the grant to the last moment at which it would have said yes.
type Belief struct {
	Who      string              `json:"who"`
	Election leadership.Election `json:"election"`
	Token    leadership.Token    `json:"token"`
	From     time.Duration       `json:"from"`
	Until    time.Duration       `json:"until"`
}

// Write is a write that a leader made where the token is looked at, or where it is not: what was there shows the newest token that was let in before.
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
