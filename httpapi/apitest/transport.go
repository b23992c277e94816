package apitest

import (
	"bytes"
	"io"
	"net/http"

	"regent/leadership/wire"
)

// RoundTrip is a transport that is a function of a test.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Transport returns a transport that checks every exchange that passes through it. base nil means
// http.DefaultTransport.
func (c *Contract) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{c, base}
}

type transport struct {
	contract *Contract
	base     http.RoundTripper
}

// RoundTrip sends the request and checks the exchange, if there is a reply.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := Exchange{Request: r}
	if r.Body != nil {
		var err error
		if x.RequestBody, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(x.RequestBody))
	}
	response, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	x.Status, x.Header = response.StatusCode, response.Header
	if response.Header.Get("Content-Type") == wire.StreamType {
		t.contract.Check(x)
		response.Body = t.contract.stream(r, response.Body)
		return response, nil
	}
	defer response.Body.Close()
	if x.Body, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(x.Body))
	t.contract.Check(x)
	return response, nil
}
