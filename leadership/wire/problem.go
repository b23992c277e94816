package wire

import (
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"regent/leadership"
)

// ProblemType is the content type of an error.
const ProblemType = "application/problem+json"

// Problem is an error on the wire (RFC 9457). If the error is about an election, the document also
// has the fields of Lease.
type Problem struct {
	Type         string            `json:"type"`
	Title        string            `json:"title"`
	Status       int               `json:"status"`
	Detail       string            `json:"detail"`
	Code         leadership.Code   `json:"code"`
	RequestID    string            `json:"requestId,omitzero"`
	Reason       leadership.Reason `json:"reason,omitzero"`
	RetryAfterMs int64             `json:"retryAfterMs,omitzero"` // rounded up
	Errors       []FieldError      `json:"errors,omitempty"`
	// OldestRevision is the first revision that can still be read, if older history was asked for.
	OldestRevision leadership.Revision `json:"oldestRevision,omitzero"`
	// Index is the index of the journal's last entry (INDEX_MISMATCH) or of its snapshot
	// (HISTORY_COMPACTED).
	Index      leadership.Index `json:"index,omitzero"`
	Generation leadership.Token `json:"generation,omitzero"` // with HISTORY_COMPACTED of a journal
	Cause      *Cause           `json:"cause,omitzero"`      // the order or policy behind the reason, if there is one
	*Lease
}

// FieldError says which part of a request is wrong: a place in the body, or a parameter of the
// path, the query or the header.
type FieldError struct {
	Pointer   string `json:"pointer,omitzero"` // RFC 6901
	Parameter string `json:"parameter,omitzero"`
	Detail    string `json:"detail"`
}

// defaultRetryAfter is the pause before a retry if the server could not serve the call and does not
// know when it can.
const defaultRetryAfter = 500 * time.Millisecond

// NewProblem returns the problem that a caller may see: everything of a *leadership.Error, only the
// code of another error that has one, and Internal for any other error.
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
		Index:          e.Index,
		Generation:     e.Generation,
	}
	if p.Detail == "" {
		p.Detail = m.Advice
	}
	if e.Cause != nil {
		p.Cause = new(newCause(*e.Cause))
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

// Leadership returns the error that the problem was made from, without the parts hidden from the
// caller.
func (p Problem) Leadership() *leadership.Error {
	e := &leadership.Error{
		Code:       p.Code,
		Detail:     p.Detail,
		Reason:     p.Reason,
		RetryAfter: fromMillis(p.RetryAfterMs),
		Oldest:     p.OldestRevision,
		Index:      p.Index,
		Generation: p.Generation,
	}
	if len(p.Errors) > 0 {
		e.Field = p.Errors[0].field()
	}
	if p.Cause != nil {
		e.Cause = new(p.Cause.leadership())
	}
	if p.Lease != nil {
		if l, err := p.Lease.Leadership(); err == nil {
			e.Lease = &l
		}
	}
	return e
}

// Write answers with the problem. document is p, or a struct that embeds it.
func (p Problem) Write(w http.ResponseWriter, document any) {
	body, err := Marshal(document)
	if err != nil {
		panic(err) // a problem can always be encoded
	}
	h := w.Header()
	if p.RetryAfterMs > 0 {
		const second = 1000
		h.Set("Retry-After", strconv.FormatInt((p.RetryAfterMs+second-1)/second, 10))
	}
	h.Set("Content-Type", ProblemType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n')) // an error means that the caller has disconnected
}

// IsProblem reports whether the body of a reply with this header is a problem document.
func IsProblem(h http.Header) bool {
	contentType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return contentType == ProblemType
}

// ReadProblem reads the body of a reply with this header. It reports whether it is a problem
// document with a code.
func ReadProblem(h http.Header, body []byte) (Problem, bool) {
	if !IsProblem(h) {
		return Problem{}, false
	}
	p, err := DecodeProblem(body)
	return p, err == nil
}

// DecodeProblem reads a problem document. It returns an error for a document without a code.
func DecodeProblem(body []byte) (Problem, error) {
	var p Problem
	if err := Unmarshal(body, &p); err != nil {
		return Problem{}, err
	}
	if p.Code == "" {
		return Problem{}, errors.New("a problem without a code")
	}
	return p, nil
}

// isParameter reports whether a field of that name is a parameter, not part of the body.
func isParameter(field string) bool {
	switch field {
	case "election", "prefix", "pageSize", "pageToken", "after", "limit", "consistency", "minRevision", "wait", "force", "member", "applied",
		LastEventIDHeader, "If-Match", "If-None-Match":
		return true
	}
	return false
}

// newFieldError returns the error of a field, such as policy.maxTerm. A field that Decode refused
// is already a pointer.
func newFieldError(field, detail string) FieldError {
	switch {
	case strings.HasPrefix(field, "/"):
		return FieldError{Pointer: field, Detail: detail}
	case isParameter(field):
		return FieldError{Parameter: field, Detail: detail}
	}
	return FieldError{Pointer: "/" + strings.ReplaceAll(field, ".", "/"), Detail: detail}
}

func (f FieldError) field() string {
	if f.Parameter != "" {
		return f.Parameter
	}
	return strings.ReplaceAll(strings.TrimPrefix(f.Pointer, "/"), "/", ".")
}

// In returns the problem of a batch entry with its pointers relative to the whole batch. at is the
// pointer of the entry.
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
