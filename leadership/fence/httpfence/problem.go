package httpfence

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// problem is wire's document with no more of an election than its newest token: that is all that a Gate knows for certain.
type problem struct {
	wire.Problem
	Election     leadership.Election `json:"election,omitempty"`
	FencingToken leadership.Token    `json:"fencingToken,omitempty"`
}

// answer writes why a request was not let in.
func answer(w http.ResponseWriter, err error) {
	p := newProblem(presentable(err))
	body, err := wire.Marshal(p)
	if err != nil {
		panic(err) // it has only strings and integers
	}
	h := w.Header()
	if p.RetryAfterMs > 0 {
		const second = int64(time.Second / time.Millisecond)
		h.Set("Retry-After", strconv.FormatInt((p.RetryAfterMs+second-1)/second, 10))
	}
	h.Set("Content-Type", wire.ProblemType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n')) // it fails when the caller is gone, and then there is nobody to tell
}

// presentable is what the caller is told. A cause that is not about the request means that nobody could find out, whatever it is: the
// caller is not to blame for the credentials that the service asks with.
func presentable(err error) error {
	for _, code := range []leadership.Code{leadership.TokenStale, leadership.InvalidArgument, leadership.NotFound} {
		if errors.Is(err, code) {
			return err
		}
	}
	return leadership.StoreUnavailable
}

func newProblem(err error) problem {
	p := problem{Problem: wire.NewProblem(err)}
	p.Lease = nil
	if e, ok := errors.AsType[*leadership.Error](err); ok && e.Lease != nil {
		p.Election, p.FencingToken = e.Lease.Election, e.Lease.Token
	}
	if e, ok := errors.AsType[*leadership.Error](err); ok && e.Field != "" {
		p.Errors = []wire.FieldError{{Parameter: parameter(e.Field), Detail: p.Detail}}
	}
	return p
}

// parameter is the header that a field came in.
func parameter(field string) string {
	switch field {
	case "election":
		return ElectionHeader
	case "fencingToken":
		return TokenHeader
	}
	return field
}

// maxProblem bounds what Refusal reads of a reply.
const maxProblem = 64 << 10

// Refusal returns the error that a Gate answered with, and nil for any other reply. The body can still be read from its beginning, and stays the
// caller's to close.
//
// The error is a *leadership.Error. With the code TokenStale its Lease, if there is one, has the newest token that the service knows of and
// nothing else; the caller leads no more, and stops. With StoreUnavailable nothing was done, and the caller may try again after
// RetryAfter, until its own deadline.
func Refusal(reply *http.Response) error {
	if reply.StatusCode < 400 || !wire.IsProblem(reply.Header) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxProblem))
	reply.Body = rest(body, reply.Body)
	p, ok := wire.ReadProblem(reply.Header, body)
	if err != nil || !ok || p.Type != wire.NewProblem(p.Code).Type {
		return nil
	}
	e := p.Leadership()
	if p.Lease != nil && p.FencingToken > 0 {
		e.Lease = &leadership.Lease{Election: p.Election, Token: p.FencingToken}
	}
	return e
}

// reread is a body from its beginning.
type reread struct {
	io.Reader
	io.Closer
}

func rest(begun []byte, body io.ReadCloser) io.ReadCloser {
	return reread{io.MultiReader(bytes.NewReader(begun), body), body}
}
