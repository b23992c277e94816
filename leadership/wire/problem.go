package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
)

// ProblemType is the content type of an error.
const ProblemType = "application/problem+json"

// Problem is an error on the wire (RFC 9457). If the error tells of an election, the members of Lease stand beside those of the problem.
type Problem struct {
	Type         string            `json:"type"`
	Title        string            `json:"title"`
	Status       int               `json:"status"`
	Detail       string            `json:"detail"`
	Code         leadership.Code   `json:"code"`
	RequestID    string            `json:"requestId,omitempty"`
	Reason       leadership.Reason `json:"reason,omitempty"`
	RetryAfterMs int64             `json:"retryAfterMs,omitempty"` // rounded up
	Errors       []FieldError      `json:"errors,omitempty"`
	// OldestRevision is the first that can still be read, of an election whose older history is no longer kept.
	OldestRevision leadership.Revision `json:"oldestRevision,omitempty"`
	*Lease
}

// FieldError says which part of a request is wrong: a place in the body, or a parameter of the path, the query or the header.
type FieldError struct {
	Pointer   string `json:"pointer,omitempty"` // RFC 6901
	Parameter string `json:"parameter,omitempty"`
	Detail    string `json:"detail"`
}

// defaultRetryAfter is when a caller should try again if the server could do nothing for it and knows no better.
const defaultRetryAfter = 500 * time.Millisecond

// NewProblem turns an error into what a caller may know of it: all of a *leadership.Error, only the code of an error that has one, and of
// any other only that the fault is the server's.
func NewProblem(err error) Problem {
	var e *leadership.Error
	if !errors.As(err, &e) {
		e = &leadership.Error{Code: Internal}
		errors.As(err, &e.Code) // a Code is an error too
	}
	m := MeaningOf(e.Code)
	if m.Code != e.Code {
		e = &leadership.Error{Code: m.Code}
	}
	p := Problem{
		Type:         "urn:regent:problem:" + string(m.Code),
		Title:        m.Title,
		Status:       m.Status,
		Detail:       e.Detail,
		Code:         m.Code,
		Reason:       e.Reason,
		RetryAfterMs: millisUp(retryAfter(e)),

		OldestRevision: e.Oldest,
	}
	if p.Detail == "" {
		p.Detail = m.Advice
	}
	if e.Lease != nil {
		p.Lease = new(NewLease(*e.Lease))
	}
	if e.Field != "" {
		p.Errors = []FieldError{newFieldError(e.Field, p.Detail)}
	}
	return p
}

func retryAfter(e *leadership.Error) time.Duration {
	switch e.Code {
	case leadership.RecordTooNew, leadership.StoreUnavailable, leadership.OutcomeUnknown, Draining:
		if e.RetryAfter == 0 {
			return defaultRetryAfter
		}
	}
	return e.RetryAfter
}

// Leadership makes the error again that the problem was made from, as far as it was let out.
func (p Problem) Leadership() *leadership.Error {
	e := &leadership.Error{Code: p.Code, Detail: p.Detail, Reason: p.Reason, RetryAfter: fromMillis(p.RetryAfterMs), Oldest: p.OldestRevision}
	if len(p.Errors) > 0 {
		e.Field = p.Errors[0].field()
	}
	if p.Lease != nil {
		if l, err := p.Lease.Leadership(); err == nil {
			e.Lease = &l
		}
	}
	return e
}

// DecodeProblem reads a problem document. The error is for a document that is none.
func DecodeProblem(body []byte) (Problem, error) {
	var p Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return Problem{}, err
	}
	if p.Code == "" {
		return Problem{}, errors.New("a problem without a code")
	}
	return p, nil
}

// The names of what is wrong outside of a body.
func isParameter(field string) bool {
	switch field {
	case "election", "prefix", "pageSize", "pageToken", "after", "limit", "consistency", "minRevision", "wait", "force", LastEventIDHeader, "If-Match", "If-None-Match":
		return true
	}
	return false
}

// newFieldError places a field. One that the decoder has found is a pointer already.
func newFieldError(field, detail string) FieldError {
	switch {
	case strings.HasPrefix(field, "/"):
		return FieldError{Pointer: field, Detail: detail}
	case isParameter(field):
		return FieldError{Parameter: field, Detail: detail}
	}
	return FieldError{Pointer: "/" + field, Detail: detail}
}

func (f FieldError) field() string {
	if f.Parameter != "" {
		return f.Parameter
	}
	return strings.TrimPrefix(f.Pointer, "/")
}

// In places the problem of an entry at the entry's pointer in its batch.
func (p Problem) In(at string) Problem {
	errs := make([]FieldError, len(p.Errors))
	for i, f := range p.Errors {
		pointer := f.Pointer
		if f.Parameter != "" {
			pointer = "/" + f.Parameter
		}
		errs[i] = FieldError{Pointer: at + strings.TrimSuffix(pointer, "/"), Detail: f.Detail}
	}
	p.Errors = errs
	return p
}

// Out is the reverse of In.
func (p Problem) Out(at string) Problem {
	errs := make([]FieldError, len(p.Errors))
	for i, f := range p.Errors {
		f.Pointer = strings.TrimPrefix(f.Pointer, at)
		errs[i] = f
	}
	p.Errors = errs
	return p
}

// malformed refuses a document; the pointer says where.
func malformed(pointer, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: pointer, Detail: fmt.Sprintf(format, args...)}
}
