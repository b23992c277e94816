package httpfence

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

// problem is wire's document without an election's state except its newest token, which is all that
// a Gate knows for certain.
type problem struct {
	wire.Problem
	Election     leadership.Election `json:"election,omitempty"`
	FencingToken leadership.Token    `json:"fencingToken,omitempty"`
}

// answer writes why a request was refused.
func answer(w http.ResponseWriter, err error) {
	p := newProblem(presentable(err))
	p.Write(w, p)
}

// presentable returns the error that the caller may see. A cause that is not about the request
// means that the Gate could not find out: the caller must not be blamed for the service's own
// credentials, for example.
func presentable(err error) error {
	for _, code := range []leadership.Code{leadership.TokenStale, leadership.ReadOnly, leadership.NotReady, leadership.InvalidArgument, leadership.NotFound} {
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
		headers := map[string]string{"election": ElectionHeader, "fencingToken": TokenHeader}
		p.Errors = []wire.FieldError{{Parameter: cmp.Or(headers[e.Field], e.Field), Detail: p.Detail}}
	}
	return p
}

// maxProblem limits how much of a reply Refusal reads.
const maxProblem = 64 << 10

// Refusal returns the error that a Gate answered with, and nil for any other reply. The body can
// still be read from its beginning, and the caller must still close it.
//
// The error is a *leadership.Error. With the code TokenStale its Lease, if present, has only the
// newest token that the service knows; unless a renewal brings a newer token (see fence), the
// caller must stop acting as leader. With ReadOnly, NotReady or StoreUnavailable nothing was done,
// and the caller may retry after RetryAfter, until its own deadline.
func Refusal(reply *http.Response) error {
	if reply.StatusCode < 400 || !wire.IsProblem(reply.Header) {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxProblem))
	reply.Body = struct { // the same body, from its beginning
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), reply.Body), reply.Body}
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
