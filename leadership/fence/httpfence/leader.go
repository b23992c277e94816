package httpfence

import (
	"cmp"
	"fmt"
	"net/http"

	"regent/leadership"
	"regent/leadership/fence"
)

// Leader is the sender of a command: a *client.Lease.
type Leader interface {
	Election() leadership.Election
	Token() leadership.Token
	// Valid reports whether the lease is valid now, on the leader's own clock.
	Valid() bool
}

// Transport sends requests as a leader, as long as it leads:
//
//	commands := &http.Client{Transport: &httpfence.Transport{Leader: lease}}
//
// The lease is checked when a request is sent, and again when a redirect sends it elsewhere; after
// that only the token protects. The token is read then, too: a command that was decided on before a
// new epoch, and is sent after the renewal that brought the epoch's token, carries that one and is
// admitted. A leader that must not send such commands remembers the token with each piece of work,
// and compares it with Lease.Token before it sends. A Transport belongs to one lease.
type Transport struct {
	Leader Leader
	Base   http.RoundTripper // nil for http.DefaultTransport
}

// RoundTrip sends the request with the leader's headers. If the lease is over it sends nothing and
// returns LeaseLost, which errors.Is also finds in the error of the http.Client.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	if err := SetHeaders(sent.Header, t.Leader); err != nil {
		if r.Body != nil {
			r.Body.Close() // a RoundTripper must, even if it sends nothing
		}
		return nil, err
	}
	return cmp.Or(t.Base, http.DefaultTransport).RoundTrip(sent)
}

// SetHeaders sets the headers of a request that is about to be sent, for callers without a
// Transport. If the lease is over it sets none and returns a *leadership.Error with the code
// LeaseLost: do not send.
func SetHeaders(h http.Header, l Leader) error {
	m := fence.Mark{Election: l.Election(), Token: l.Token()}
	if !l.Valid() {
		return &leadership.Error{Code: leadership.LeaseLost, Detail: fmt.Sprintf(
			"the lease of election %q with fencing token %d is over, so nothing was sent; stop acting as leader", m.Election, m.Token)}
	}
	h.Set(ElectionHeader, string(m.Election))
	h.Set(TokenHeader, fmt.Sprint(m.Token))
	return nil
}
