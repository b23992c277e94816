package dashboard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
	"regent/httpapi/dashboard"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// all may do everything.
type all struct{}

func (all) May(context.Context, wire.Verb, leadership.Election) bool { return true }

func (all) Covered(context.Context, wire.Verb) []leadership.Election {
	return []leadership.Election{"*"}
}

var _ dashboard.Rights = (*instance.Guarded)(nil)

// However callers are verified, the page itself is shown, and the refusal of its question says what
// is missing.
func TestAVisitorWithoutACredentialGetsThePageAndIsToldToSignIn(t *testing.T) {
	t.Parallel()
	issuer, proxy := issuertest.New(), issuertest.NewProxy()
	const audience, forProxy = "https://regent.test", "/projects/1/locations/europe-west1/services/regent"
	oidc, err := authn.NewOIDC(authn.OIDCConfig{Issuers: []string{issuer.URL()}, Audiences: []string{audience}, Transport: issuer.Transport()})
	require.NoError(t, err)
	platform, err := authn.NewPlatform(authn.PlatformConfig{Service: "regent", Audiences: []string{audience}})
	require.NoError(t, err)
	go oidc.Run(t.Context())
	google := issuer.Claims(audience, "ann@example.com")
	google["iss"] = "https://accounts.google.com"
	for name, c := range map[string]struct {
		who   authn.Authenticator
		token string
	}{
		"oidc":     {oidc, issuer.Token(audience, "ann@example.com")},
		"platform": {platform, issuertest.CutSignature(issuer.Sign(google))},
	} {
		behind, err := authn.NewIAP(authn.IAPConfig{Audiences: []string{forProxy}, Other: c.who, Emails: true, Transport: proxy.Transport()})
		require.NoError(t, err)
		go behind.Run(t.Context())
		page := dashboard.New(authn.Require(behind, nil)(dashboard.Visitor(all{})))
		for _, ask := range []struct {
			path, header, value string
			status              int
			says                string
		}{
			{"/ui/", "", "", http.StatusOK, "/ui/assets/app.js"},
			{"/ui/visitor", "", "", http.StatusUnauthorized, "the request has no credential"},
			{"/ui/visitor", "Authorization", "Bearer nonsense", http.StatusUnauthorized, "not an ID token"},
			{"/ui/visitor", "X-Goog-IAP-JWT-Assertion", c.token, http.StatusUnauthorized, "assertion of Identity-Aware Proxy is refused"},
			{"/ui/visitor", "Authorization", "Bearer " + c.token, http.StatusOK, `"principal":"ann@example.com"`},
			{"/ui/visitor", "X-Goog-IAP-JWT-Assertion", proxy.Assertion(forProxy, "bob@example.com"), http.StatusOK, `"principal":"bob@example.com"`},
		} {
			r := httptest.NewRequest(http.MethodGet, ask.path, nil)
			if ask.header != "" {
				r.Header.Set(ask.header, ask.value)
			}
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			body, _ := io.ReadAll(w.Result().Body)
			if w.Code != ask.status || !strings.Contains(string(body), ask.says) {
				t.Errorf("%s: %s with %s: %d %s; want %d and %q", name, ask.path, ask.header, w.Code, body, ask.status, ask.says)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (challenge != "") != (ask.status == http.StatusUnauthorized) {
				t.Errorf("%s: %s with %s: challenge %q", name, ask.path, ask.header, challenge)
			}
		}
	}
}
