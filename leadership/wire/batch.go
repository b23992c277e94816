package wire

import (
	"encoding/json"
	"strconv"

	"regent/leadership"
)

// Entry is one part of a batch. One that is malformed keeps its error and does not spoil the others; of its Value it has what could be
// read.
type Entry[T any] struct {
	Value T
	Err   error
}

// read reads the entry strictly; what is wrong with it is in Err.
func (e *Entry[T]) read(text []byte) { e.Err = decodeObject(text, &e.Value) }

// MarshalJSON writes the value.
func (e Entry[T]) MarshalJSON() ([]byte, error) { return json.Marshal(e.Value) }

// Renewals is the body of a batch of renewals.
type Renewals struct {
	Renewals []Entry[Renewal] `json:"renewals"`
}

// Renewal is one of them.
type Renewal struct {
	Election leadership.Election `json:"election"`
	LeaseRequest
}

// NewRenewals writes a batch.
func NewRenewals(batch []leadership.LeaseRequest) Renewals {
	w := Renewals{Renewals: make([]Entry[Renewal], len(batch))}
	for i, r := range batch {
		w.Renewals[i].Value = Renewal{Election: r.Election, LeaseRequest: NewLeaseRequest(r)}
	}
	return w
}

// Checks is the body of a batch of checks.
type Checks struct {
	Checks []Entry[Check] `json:"checks"`
}

// Check is one of them.
type Check struct {
	Election leadership.Election `json:"election"`
	TokenCheck
}

// NewChecks writes a batch.
func NewChecks(batch []leadership.TokenCheck) Checks {
	w := Checks{Checks: make([]Entry[Check], len(batch))}
	for i, r := range batch {
		w.Checks[i].Value = Check{Election: r.Election, TokenCheck: TokenCheck{FencingToken: r.Token}}
	}
	return w
}

// Results is the reply to a batch, in its order.
type Results struct {
	Results []Result `json:"results"`
}

// Result is the answer to one entry: a lease or a problem.
type Result struct {
	Election leadership.Election `json:"election,omitempty"`
	Lease    *Lease              `json:"lease,omitempty"`
	Error    *Problem            `json:"error,omitempty"`
}

// At is the JSON pointer of an entry of the batch in field.
func At(field string, i int) string { return "/" + field + "/" + strconv.Itoa(i) }

// NewResult writes the answer to the entry at the pointer.
func NewResult(at string, e leadership.Election, r leadership.Result) Result {
	if r.Err != nil {
		return Result{Election: e, Error: new(NewProblem(r.Err).In(at))}
	}
	return Result{Election: e, Lease: new(NewLease(r.Lease))}
}

// Leadership reads the answer to the entry at the pointer. The error is for one that is no answer.
func (w Result) Leadership(at string) (leadership.Result, error) {
	switch {
	case w.Error != nil && w.Error.Code != "":
		return leadership.Result{Err: w.Error.Out(at).Leadership()}, nil
	case w.Lease == nil:
		return leadership.Result{}, malformed(at, "a result without a lease and without a problem")
	}
	l, err := w.Lease.Leadership()
	return leadership.Result{Lease: l}, err
}
