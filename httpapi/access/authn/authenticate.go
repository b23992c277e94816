package authn

import (
	"fmt"
	"net/http"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// Authenticator identifies the caller of a request. It reads only headers, is safe for concurrent
// use, and returns soon after the request's context ends.
//
// Its errors are a *leadership.Error: wire.Unauthenticated with a sentence that says what to do, or
// leadership.StoreUnavailable while the keys of the token's issuer cannot be read. No error repeats
// anything of the token.
type Authenticator interface {
	Authenticate(*http.Request) (Principal, error)
}

// None treats every caller as the anonymous principal, whatever token it sends. Every program that
// can reach the port may do everything: use it only on loopback and for development.
type None struct{}

// Authenticate returns the anonymous principal.
func (None) Authenticate(*http.Request) (Principal, error) { return Principal{}, nil }

// The headers that a token comes in.
const (
	authorization = "Authorization"
	// Cloud Run's own header, for callers that need Authorization for another service.
	serverlessAuthorization = "X-Serverless-Authorization"
)

// maxToken limits the size of a token, in bytes. Google's have about 800.
const maxToken = 8 << 10

// bearer returns the token in the header of that name.
func bearer(h http.Header, name string) (string, error) {
	values := h.Values(name)
	switch len(values) {
	case 0:
		return "", refuse("the request has no credential: send an ID token in the header %s: Bearer TOKEN", name)
	case 1:
	default:
		return "", refuse("the header %s is there more than once; send it once", name)
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

// refuse tells a caller why its token is refused. The arguments must not come from the token.
func refuse(format string, args ...any) error {
	return &leadership.Error{Code: wire.Unauthenticated, Detail: fmt.Sprintf(format, args...)}
}
