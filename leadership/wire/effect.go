package wire

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// EffectRequest is the body that begins an effect.
type EffectRequest struct {
	Holder
	EffectID leadership.EffectID `json:"effectId"`
}

// NewEffectRequest writes a request.
func NewEffectRequest(r leadership.EffectRequest) EffectRequest {
	return EffectRequest{NewHolder(r.LeaseRequest), r.ID}
}

// Leadership reads a request about the election.
func (w EffectRequest) Leadership(e leadership.Election) (leadership.EffectRequest, error) {
	holder, err := w.Holder.Leadership(e)
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
