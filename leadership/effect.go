package leadership

import (
	"cmp"
	"encoding/json"
	"time"
)

// Limits of the effects of an election.
const (
	MaxEffects      = 1000      // that are kept, the newest; fewer if they have more than
	MaxEffectsBytes = 512 << 10 // together, encoded: at least 370
	MaxOpenEffects  = 100       // that are begun and not finished
	MaxEffectLength = 128
	MaxResultBytes  = 1 << 10
)

// EffectID names an effect of a task, such as "invoice-2026-11": 1 to 128 of A-Z, a-z, 0-9 and
// "._@:-", unique within the election.
type EffectID string

// Validate returns an error that says why the id is invalid, or nil.
func (id EffectID) Validate() error { return validateID("an effect", string(id), MaxEffectLength) }

// EffectState says how far an effect has come.
type EffectState string

const (
	EffectNew     EffectState = "new"     // the answer to BeginEffect: the caller may cause it
	EffectBegun   EffectState = "begun"   // the leader of the mark has begun it and not finished it
	EffectDone    EffectState = "done"    // it is finished: it must not be caused again
	EffectInDoubt EffectState = "inDoubt" // an earlier leader, or another attempt, has begun it and not finished it
)

// Effect is an effect that a leader has noted before it caused it.
type Effect struct {
	Election Election        `json:"election,omitzero"`
	ID       EffectID        `json:"effectId"`
	State    EffectState     `json:"state"`
	Token    Token           `json:"fencingToken"` // of the leader that began it or, if it is done, of the one that finished it
	LeaderID CandidateID     `json:"leaderId"`
	At       time.Time       `json:"at,omitzero"`        // when that was, by the store's clock
	Attempt  string          `json:"attemptId,omitzero"` // that began it, until it is done
	Result   json.RawMessage `json:"result,omitzero"`    // if it is done; may be empty
}

// Effects are the effects of an election.
type Effects struct {
	Election Election `json:"election"`
	Token    Token    `json:"fencingToken,omitzero"` // the highest that has begun or finished one, or inherited them; 0: none
	Effects  []Effect `json:"effects"`               // those that were changed last at the end
}

// EffectRequest begins an effect.
type EffectRequest struct {
	LeaseRequest
	ID EffectID
	// Attempt, if it is not empty, is drawn anew by each attempt to cause the effect, in the form
	// of an EffectID, and sent again with a repeated call: the effect is new to one attempt.
	// Without one it is new whenever its leader begins it again.
	Attempt string
}

// Validate returns what is wrong with the request, with the code InvalidArgument.
func (r EffectRequest) Validate() error {
	err := cmp.Or(r.LeaseRequest.Validate(), fields("effectId", r.ID.Validate()))
	if err == nil && r.Attempt != "" {
		err = fields("attemptId", validateID("an attempt", r.Attempt, MaxEffectLength))
	}
	return err
}

// FinishRequest finishes an effect.
type FinishRequest struct {
	EffectRequest
	Result json.RawMessage // any JSON, of at most MaxResultBytes bytes; may be empty
}
