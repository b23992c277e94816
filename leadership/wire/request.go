package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// A field of a request without omitzero is required; see Decode.

// AcquireRequest is the body of an acquire.
type AcquireRequest struct {
	CandidateID   leadership.CandidateID `json:"candidateId"`
	Key           *string                `json:"key,omitzero"`
	LeaseDuration *Duration              `json:"leaseDuration,omitzero"`
	Metadata      jsontext.Value         `json:"metadata,omitzero"` // see leadership.ParseMetadata
	Note          string                 `json:"note,omitzero"`
	Wait          Duration               `json:"wait,omitzero"`
	Role          *leadership.Role       `json:"role,omitzero"`
	Priority      int64                  `json:"priority,omitzero"`
	Capabilities  []string               `json:"capabilities,omitzero"`
	Load          int64                  `json:"load,omitzero"`
	Via           *Via                   `json:"via,omitzero"`
	Inherit       bool                   `json:"inherit,omitzero"`
	Statement     bool                   `json:"statement,omitzero"`
}

// NewAcquireRequest writes a request.
func NewAcquireRequest(r leadership.AcquireRequest) AcquireRequest {
	w := AcquireRequest{
		CandidateID:   r.CandidateID,
		LeaseDuration: optional(Duration(r.LeaseDuration)),
		Metadata:      rawObject(r.Metadata),
		Note:          r.Note,
		Wait:          Duration(r.Wait),
		Role:          optional(r.Role),
		Priority:      r.Priority,
		Capabilities:  r.Capabilities.List(),
		Load:          r.Load,
		Via:           newVia(r.Via.Peer, r.Via.Election, r.Via.Token),
		Inherit:       r.Inherit,
		Statement:     r.Statement,
	}
	if r.Key != nil {
		w.Key = new(r.Key.Text())
	}
	return w
}

// Leadership reads a request about the election.
func (w AcquireRequest) Leadership(e leadership.Election) (leadership.AcquireRequest, error) {
	r := leadership.AcquireRequest{
		Election:    e,
		CandidateID: w.CandidateID,
		Metadata:    []byte(w.Metadata),
		Note:        w.Note,
		Wait:        time.Duration(w.Wait),
		Candidacy:   leadership.Candidacy{Role: given(w.Role), Priority: w.Priority, Load: w.Load},
		Inherit:     w.Inherit,
		Statement:   w.Statement,
	}
	if isEmpty(w.Role) {
		return leadership.AcquireRequest{}, malformed("/role", "role is empty; it is %q or %q, or left out", leadership.RoleCandidate, leadership.RoleWitness)
	}
	var err error
	if r.Via, err = w.Via.leadership(); err != nil {
		return leadership.AcquireRequest{}, err
	}
	if r.Capabilities, err = names("/capabilities", leadership.MaxCapabilityLength, w.Capabilities); err != nil {
		return leadership.AcquireRequest{}, err
	}
	if r.LeaseDuration, err = leaseDuration(w.LeaseDuration); err != nil {
		return leadership.AcquireRequest{}, err
	}
	if err := validateWait(w.Wait); err != nil {
		return leadership.AcquireRequest{}, err
	}
	if w.Key != nil {
		key, err := parseKey(*w.Key)
		if err != nil {
			return leadership.AcquireRequest{}, err
		}
		r.Key = &key
	}
	return r, nil
}

// LeaseRequest is the body of a renewal.
type LeaseRequest struct {
	CandidateID  leadership.CandidateID `json:"candidateId"`
	Key          string                 `json:"key"`
	FencingToken leadership.Token       `json:"fencingToken"`
	Ticket       leadership.Ticket      `json:"ticket,omitzero"`
	Report       jsontext.Value         `json:"report,omitzero"`    // of a renewal; see leadership.ParseReport
	Statement    bool                   `json:"statement,omitzero"` // of a renewal that is no part of a batch
}

// NewLeaseRequest writes a request.
func NewLeaseRequest(r leadership.LeaseRequest) LeaseRequest {
	return LeaseRequest{CandidateID: r.CandidateID, Key: r.Key.Text(), FencingToken: r.Token, Ticket: r.Ticket, Report: rawObject(r.Report), Statement: r.Statement}
}

// Leadership reads a request about the election.
func (w LeaseRequest) Leadership(e leadership.Election) (leadership.LeaseRequest, error) {
	key, err := parseKey(w.Key)
	if err != nil {
		return leadership.LeaseRequest{}, err
	}
	return leadership.LeaseRequest{Election: e, CandidateID: w.CandidateID, Key: key, Token: w.FencingToken, Ticket: w.Ticket, Report: []byte(w.Report), Statement: w.Statement}, nil
}

// TokenCheck is the body of a check.
type TokenCheck struct {
	FencingToken leadership.Token `json:"fencingToken"`
	Use          *string          `json:"use,omitzero"` // UseRead, which is the default, or UseWrite
}

// The values of TokenCheck.Use.
const (
	UseRead  = "read"
	UseWrite = "write" // also refused while the election is read-only
)

// NewTokenCheck writes a check.
func NewTokenCheck(c leadership.TokenCheck) TokenCheck {
	w := TokenCheck{FencingToken: c.Token}
	if c.Write {
		w.Use = new(UseWrite)
	}
	return w
}

// Leadership reads a check about the election.
func (w TokenCheck) Leadership(e leadership.Election) (leadership.TokenCheck, error) {
	use := given(w.Use)
	if w.Use != nil && use != UseRead && use != UseWrite {
		return leadership.TokenCheck{}, malformed("/use", "use is %q or %q, or left out, not %s", UseRead, UseWrite, Quote(use))
	}
	return leadership.TokenCheck{Election: e, Token: w.FencingToken, Write: use == UseWrite}, nil
}

// validateWait checks the wait in a body. It returns a pointer as the field, unlike package
// leadership, in which "wait" is the parameter of a read.
func validateWait(d Duration) error {
	if d < 0 || time.Duration(d) > leadership.MaxWait || time.Duration(d)%time.Millisecond != 0 {
		return malformed("/wait", "wait is from 0s to %v in whole milliseconds, not %v; to wait for longer, ask again", Duration(leadership.MaxWait), d)
	}
	return nil
}

// leaseDuration returns 0 for a field that was left out. "0s" is refused: it does not mean the
// default.
func leaseDuration(d *Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if *d == 0 {
		return 0, malformed("/leaseDuration",
			"%v; leave it out for the duration that the election is configured for", leadership.LeaseBounds.Check("leaseDuration", 0))
	}
	return time.Duration(*d), nil
}

func parseKey(text string) (leadership.Key, error) {
	key, err := leadership.ParseKey(text)
	if err != nil {
		return leadership.Key{}, malformed("/key", "%v", err)
	}
	return key, nil
}
