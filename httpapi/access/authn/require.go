package authn

import (
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

// Require passes on the requests that the authenticator accepts, with the principal in the
// request's context. Their changes are recorded with the principal as their actor, unless it is
// anonymous. It answers all others with a problem document: 401 with a challenge (RFC 6750), or
// 503.
//
// refused, if it is not nil, is called before each refusal. Its request has the id of the problem
// (leadership.RequestID). It must not pass on any header of the request: the token is among them.
func Require(a Authenticator, refused func(*http.Request, error)) func(http.Handler) http.Handler {
	return RequireAs(a, refused, func(w http.ResponseWriter, err error) {
		p := wire.NewProblem(err)
		p.RequestID = w.Header().Get(wire.RequestIDHeader)
		p.Write(w, p)
	})
}

// RequireAs is Require for a door whose errors have another form: write answers with the error,
// after the headers were set.
func RequireAs(a Authenticator, refused func(*http.Request, error), write func(http.ResponseWriter, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, err := a.Authenticate(r)
			if err == nil {
				ctx := With(r.Context(), p)
				if p != (Principal{}) {
					ctx = leadership.WithActor(ctx, p.String(), p.Pinned())
				}
				next.ServeHTTP(w, r.WithContext(ctx))
				return
			}
			r = r.WithContext(leadership.WithRequestID(r.Context(), requestID(r)))
			if refused != nil {
				refused(r, err)
			}
			setHeaders(w.Header(), r, err)
			write(w, err)
		})
	}
}

// requestID returns the id that the request has already, or else that of its headers.
func requestID(r *http.Request) string {
	if id := leadership.RequestID(r.Context()); id != "" {
		return id
	}
	return wire.RequestID(r.Header)
}

// setHeaders sets the headers of a refusal.
func setHeaders(h http.Header, r *http.Request, err error) {
	if wire.NewProblem(err).Code == wire.Unauthenticated {
		h.Set("WWW-Authenticate", challenge(r.Header))
	}
	h.Set(wire.RequestIDHeader, leadership.RequestID(r.Context()))
	h.Set("Cache-Control", "no-store")
}

// challenge returns the header that asks for a token. It says that the token was wrong only if
// there was one (RFC 6750 §3.1).
func challenge(h http.Header) string {
	const realm = `Bearer realm="regent"`
	if len(h.Values(authorization))+len(h.Values(serverlessAuthorization))+len(h.Values(iapAssertion)) == 0 {
		return realm
	}
	return realm + `, error="invalid_token"`
}
