package authn_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
)

func platform(t *testing.T) *authn.Platform {
	t.Helper()
	p, err := authn.NewPlatform(authn.PlatformConfig{Service: "regent", Audiences: []string{audience}})
	require.NoError(t, err)
	return p
}

const serverless, authorization = "X-Serverless-Authorization", "Authorization"

func TestPlatformBelievesWhatCloudRunHasChecked(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	google := func(change map[string]any) map[string]any {
		c := issuer.Claims(audience, ann)
		c["iss"] = "https://accounts.google.com"
		maps.Copy(c, change)
		return c
	}
	whole := issuer.Sign(google(nil))
	checked := func(change map[string]any) string { return issuertest.CutSignature(issuer.Sign(google(change))) }
	bearer := func(token string) string { return "Bearer " + token }
	bob := map[string]any{"email": "bob@agents.test"}
	cut := bearer(checked(nil))
	now := time.Now().Unix()
	for _, c := range []struct {
		name    string
		headers []string
		says    string // "" if ann is let in
	}{
		{"Authorization", []string{authorization, cut}, ""},
		{"X-Serverless-Authorization", []string{serverless, cut}, ""},
		{"both, and the other is for another audience", []string{serverless, cut, authorization, bearer("opaque")}, ""},
		{"both, and the other has its signature", []string{serverless, cut, authorization, bearer(issuer.Sign(google(bob)))}, ""},
		{"Google's other name", []string{authorization, bearer(checked(map[string]any{"iss": "accounts.google.com"}))}, ""},
		{"just expired", []string{authorization, bearer(checked(map[string]any{"exp": now - 50}))}, ""},

		{"nothing", nil, "the request has no credential"},
		{"through Identity-Aware Proxy, whose own token Cloud Run has checked", []string{serverless, cut, assertion, "a.b.c"}, "came through Identity-Aware Proxy"},
		{"a real signature", []string{authorization, bearer(whole)}, "not checked by the platform"},
		{"a real signature in the header of Cloud Run", []string{serverless, bearer(whole)}, "not checked by the platform"},
		{"a real signature where Cloud Run looks, and a forged one where not", []string{serverless, bearer(whole), authorization, cut}, "not checked by the platform"},
		{"the marker in both", []string{serverless, cut, authorization, cut}, "only one was checked"},
		{"an empty header of Cloud Run", []string{serverless, "", authorization, bearer("opaque")}, serverless + " must be"},
		{"the header of Cloud Run twice", []string{serverless, cut, serverless, cut}, serverless + " is there more than once"},
		{"Authorization twice", []string{authorization, cut, authorization, cut}, "more than once"},
		{"names in headers", []string{"X-Goog-Authenticated-User-Email", "accounts.google.com:" + ann, "X-Forwarded-User", ann, "X-Forwarded-Email", ann, "X-Forwarded-For", "127.0.0.1"}, "the request has no credential"},
		{"more than a marker", []string{authorization, cut + "A"}, "not checked by the platform"},
		{"alg none", []string{authorization, bearer(issuertest.Encode([]byte(`{"alg":"none"}`)) + "." + strings.Split(whole, ".")[1] + ".SIGNATURE_REMOVED_BY_GOOGLE")}, "RS256"},
		{"another issuer", []string{authorization, bearer(checked(map[string]any{"iss": issuer.URL()}))}, "issuer of the token must be https://accounts.google.com"},
		{"another audience", []string{authorization, bearer(checked(map[string]any{"aud": audience + "/"}))}, "another audience"},
		{"expired", []string{authorization, bearer(checked(map[string]any{"exp": now - 61}))}, "has expired"},
		{"an e-mail that is not verified", []string{authorization, bearer(checked(map[string]any{"email_verified": false}))}, "no verified e-mail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(c.headers...)
			if c.says == "" {
				wantCaller(t, platform(t), r, ann)
				return
			}
			wantUnauthenticated(t, platform(t), r, c.says)
			_, err := platform(t).Authenticate(r)
			leaked(t, c.name, r, err.Error())
		})
	}
}

func TestPlatformNeedsCloudRunAndAnAudience(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config authn.PlatformConfig
		says   string
	}{
		{authn.PlatformConfig{Audiences: []string{audience}}, "K_SERVICE is not set"},
		{authn.PlatformConfig{Service: "regent"}, "an audience is missing"},
		{authn.PlatformConfig{Service: "regent", Audiences: []string{""}}, "an audience is missing"},
	} {
		p, err := authn.NewPlatform(c.config)
		if p != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.says)
		}
	}
}
