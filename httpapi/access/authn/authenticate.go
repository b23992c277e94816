package authn

import (
	"fmt"
	"net/http"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// Authenticator finds out who sent a request. It reads headers and nothing else, may be called by many at once, and returns soon after the
// request's context ends.
//
// Its errors are a *leadership.Error: wire.Unauthenticated with a sentence that says what to do, or leadership.StoreUnavailable if it cannot
// be found out at the moment, because the keys of the token's issuer cannot be had. No error repeats any of the token.
type Authenticator interface {
	Authenticate(*http.Request) (Principal, error)
}

// None takes everybody for the anonymous principal, whatever token they bring. Whoever reaches the port may do all, so that it is for loopback
// and for development; whoever chooses it has to see to that.
type None struct{}

// Authenticate returns the anonymous principal.
func (None) Authenticate(*http.Request) (Principal, error) { return Principal{}, nil }

// The headers that a token comes in.
const (
	authorization           = "Authorization"
	serverlessAuthorization = "X-Serverless-Authorization" // Cloud Run's own, for callers whose Authorization is for somebody else
)

// maxToken bounds a token, in bytes. Google's have some 800.
const maxToken = 8 << 10

// bearer returns the token in the header of that name.
func bearer(h http.Header, name string) (string, error) {
	values := h.Values(name)
	switch len(values) {
	case 0:
		return "", refuse("say who you are: send an ID token in the header %s: Bearer TOKEN", name)
	case 1:
	default:
		return "", refuse("the header %s is there more than once; send one", name)
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	switch {
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return "", refuse("the header %s must be: Bearer TOKEN, with one space", name)
	case len(token) > maxToken:
		return "", refuse("a token has at most %d bytes; send the ID token of your identity provider", maxToken)
	}
	return token, nil
}

// refuse tells a caller what is wrong with its token. What is formatted must not come from the token.
func refuse(format string, args ...any) error {
	return &leadership.Error{Code: wire.Unauthenticated, Detail: fmt.Sprintf(format, args...)}
}
