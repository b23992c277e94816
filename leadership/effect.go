package leadership

import (
	"cmp"
	"encoding/json"
	"time"
)

// Limits of the effects of an election.
const (
	MaxEffects      = 1000      // the newest are kept; fewer if together they exceed
	MaxEffectsBytes = 512 << 10 // encoded, which has room for at least 370
	MaxOpenEffects  = 100       // begun and not finished
	MaxEffectLength = 128
	MaxResultBytes  = 1 << 10
)

// EffectID names an effect of a task, such as "invoice-2026-11": 1 to 128 of A-Z, a-z, 0-9 and
// "._@:-", unique within the election.
type EffectID string

// Validate returns an error that says why the id is invalid, or nil.
func (id EffectID) Validate() error { return validateID("an effect", string(id), MaxEffectLength) }

// EffectState is the progress of an effect.
type EffectState string

const (
	EffectNew     EffectState = "new"     // the answer to BeginEffect: the caller may cause it
	EffectBegun   EffectState = "begun"   // the leader of the mark has begun the effect and not finished it
	EffectDone    EffectState = "done"    // finished: it must not be caused again
	EffectInDoubt EffectState = "inDoubt" // an earlier leader, or another attempt, has begun the effect and not finished it
)

// Effect is an effect that a leader notes before it causes it.
type Effect struct {
	Election Election        `json:"election,omitzero"`
	ID       EffectID        `json:"effectId"`
	State    EffectState     `json:"state"`
	Token    Token           `json:"fencingToken"` // of the leader that began the effect or, if it is done, finished it
	LeaderID CandidateID     `json:"leaderId"`
	At       time.Time       `json:"at,omitzero"`        // when that was, by the store's clock
	Attempt  string          `json:"attemptId,omitzero"` // the attempt that began it; dropped once it is done
	Result   json.RawMessage `json:"result,omitzero"`    // once it is done; may be empty
}

// Effects are the effects of an election.
type Effects struct {
	Election Election `json:"election"`
	Token    Token    `json:"fencingToken,omitzero"` // the highest that has begun, finished or inherited effects; 0: none
	Effects  []Effect `json:"effects"`               // the last changed at the end
}

// EffectRequest begins an effect.
type EffectRequest struct {
	LeaseRequest
	ID EffectID
	// Attempt, if not empty, names one attempt to cause the effect, in the form of an EffectID.
	// Each attempt draws a new one and repeats it if it repeats the call: the effect is new to one
	// attempt only. Without it the effect is new whenever its leader begins it again.
	Attempt string
}

// Validate returns an InvalidArgument error unless the request is valid.
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
