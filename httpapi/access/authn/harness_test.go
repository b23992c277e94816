package authn_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
	"regent/leadership"
	"regent/leadership/wire"
)

const (
	audience = "https://regent.test"
	ann      = "ann@agents.test"
)

// shared returns the key of most issuers, so that not every test generates one.
var shared = sync.OnceValue(issuertest.NewKey)

func newIssuer(t testing.TB) *issuertest.Issuer {
	t.Helper()
	return issuertest.New(shared())
}

// bubble runs a test beside others, in a synctest bubble of its own.
func bubble(t *testing.T, test func(*testing.T, *issuertest.Issuer)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newIssuer(t)) })
}

// verifier returns an OIDC for the issuer. It runs until the test ends.
func verifier(t testing.TB, issuer *issuertest.Issuer, change ...func(*authn.OIDCConfig)) *authn.OIDC {
	t.Helper()
	o := stopped(t, issuer, change...)
	running(t, o)
	return o
}

// stopped returns a verifier whose Run has not begun.
func stopped(t testing.TB, issuer *issuertest.Issuer, change ...func(*authn.OIDCConfig)) *authn.OIDC {
	t.Helper()
	c := authn.OIDCConfig{Issuers: []string{issuer.URL()}, Audiences: []string{audience}, Transport: issuer.Transport()}
	for _, f := range change {
		f(&c)
	}
	return must(authn.NewOIDC(c))
}

func running(t testing.TB, o interface{ Run(context.Context) error }) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// with returns a request with that token.
func with(token string) *http.Request { return request("Authorization", "Bearer "+token) }

// request returns a request with the headers, given as names and values in turn.
func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/elections/planner:acquire", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func wantCaller(t testing.TB, a authn.Authenticator, r *http.Request, who string) {
	t.Helper()
	p, err := a.Authenticate(r)
	if err != nil || p.String() != who {
		t.Errorf("%v, %v; want %s", p, err, who)
	}
}

func wantRefusal(t testing.TB, a authn.Authenticator, r *http.Request, code leadership.Code, detail string) *leadership.Error {
	t.Helper()
	p, err := a.Authenticate(r)
	e, ok := errors.AsType[*leadership.Error](err)
	if !ok || e.Code != code || p != (authn.Principal{}) {
		t.Errorf("%v, %v; want %s", p, err, code)
		return &leadership.Error{}
	}
	if !strings.Contains(e.Detail, detail) {
		t.Errorf("detail %q does not contain %q", e.Detail, detail)
	}
	return e
}

func wantUnauthenticated(t testing.TB, a authn.Authenticator, r *http.Request, detail string) {
	t.Helper()
	wantRefusal(t, a, r, wire.Unauthenticated, detail)
}

func wantUnavailable(t testing.TB, a authn.Authenticator, r *http.Request) *leadership.Error {
	t.Helper()
	return wantRefusal(t, a, r, leadership.StoreUnavailable, "cannot be read at the moment")
}
