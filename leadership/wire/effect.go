package wire

import (
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// EffectRequest is the body that begins an effect.
type EffectRequest struct {
	CandidateID  leadership.CandidateID `json:"candidateId"`
	Key          string                 `json:"key"`
	FencingToken leadership.Token       `json:"fencingToken"`
	EffectID     leadership.EffectID    `json:"effectId"`
}

// NewEffectRequest writes a request.
func NewEffectRequest(r leadership.EffectRequest) EffectRequest {
	return EffectRequest{r.CandidateID, r.Key.Text(), r.Token, r.ID}
}

// Leadership reads a request about the election.
func (w EffectRequest) Leadership(e leadership.Election) (leadership.EffectRequest, error) {
	holder, err := Holder{w.CandidateID, w.Key, w.FencingToken}.Leadership(e)
	return leadership.EffectRequest{LeaseRequest: holder, ID: w.EffectID}, err
}

// FinishRequest is the body that finishes an effect.
type FinishRequest struct {
	EffectRequest
	Result jsontext.Value `json:"result,omitzero"`
}

// NewFinishRequest writes a request.
func NewFinishRequest(r leadership.FinishRequest) FinishRequest {
	return FinishRequest{NewEffectRequest(r.EffectRequest), jsontext.Value(r.Result)}
}

// Leadership reads a request about the election.
func (w FinishRequest) Leadership(e leadership.Election) (leadership.FinishRequest, error) {
	if err := shallow("/result", w.Result); err != nil {
		return leadership.FinishRequest{}, err
	}
	r, err := w.EffectRequest.Leadership(e)
	return leadership.FinishRequest{EffectRequest: r, Result: json.RawMessage(w.Result)}, err
}

// Effect is an effect that a leader has noted before it caused it.
type Effect struct {
	EffectID     leadership.EffectID    `json:"effectId"`
	State        leadership.EffectState `json:"state"`
	FencingToken leadership.Token       `json:"fencingToken"`
	LeaderID     leadership.CandidateID `json:"leaderId"`
	At           time.Time              `json:"at"`
	Result       jsontext.Value         `json:"result,omitzero"`
}

func newEffect(e leadership.Effect) Effect {
	return Effect{e.ID, e.State, e.Token, e.LeaderID, e.At.UTC(), jsontext.Value(e.Result)}
}

func (w Effect) leadership(e leadership.Election) leadership.Effect {
	return leadership.Effect{Election: e, ID: w.EffectID, State: w.State, Token: w.FencingToken, LeaderID: w.LeaderID, At: w.At, Result: json.RawMessage(w.Result)}
}

func newEffects(all []leadership.Effect) (w []Effect) {
	for _, e := range all {
		w = append(w, newEffect(e))
	}
	return w
}

// LeadershipEffects reads effects of the election.
func LeadershipEffects(e leadership.Election, w []Effect) (all []leadership.Effect) {
	for _, one := range w {
		all = append(all, one.leadership(e))
	}
	return all
}

// EffectReply is how an effect stands for the caller.
type EffectReply struct {
	Election leadership.Election `json:"election"`
	Effect
}

// NewEffectReply writes a reply.
func NewEffectReply(e leadership.Effect) EffectReply { return EffectReply{e.Election, newEffect(e)} }

// Leadership reads a reply.
func (w EffectReply) Leadership() leadership.Effect { return w.leadership(w.Election) }

// Effects are the effects of an election.
type Effects struct {
	Election     leadership.Election `json:"election"`
	FencingToken leadership.Token    `json:"fencingToken,omitzero"`
	Effects      []Effect            `json:"effects"`
}

// NewEffects writes the effects of an election.
func NewEffects(e leadership.Effects) Effects {
	return Effects{e.Election, e.Token, append([]Effect{}, newEffects(e.Effects)...)}
}

// Leadership reads the effects of an election.
func (w Effects) Leadership() leadership.Effects {
	return leadership.Effects{Election: w.Election, Token: w.FencingToken, Effects: LeadershipEffects(w.Election, w.Effects)}
}
