package authn_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
)

func TestGoodTokenNamesItsCaller(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	o := verifier(t, issuer)
	key := issuer.Key()
	nameless := issuer.URL() + "|subject of " + ann
	now := time.Now().Unix()
	for _, c := range []struct {
		name   string
		header map[string]any
		claims map[string]any
		who    string
	}{
		{"plain", nil, nil, ann},
		{"one of several audiences", nil, map[string]any{"aud": []string{"x", audience}}, ann},
		{"just expired", nil, map[string]any{"exp": now - 50}, ann},
		{"about to be valid", nil, map[string]any{"nbf": now + 50, "iat": now + 50}, ann},
		{"without iat", nil, map[string]any{"iat": nil}, ann},
		{"an access token in JWT", map[string]any{"typ": "at+jwt"}, nil, ann},
		{"without an e-mail", nil, map[string]any{"email": nil}, nameless},
		{"an e-mail that is not verified", nil, map[string]any{"email_verified": false}, nameless},
		{"an e-mail that looks like another principal", nil, map[string]any{"email": "https://issuer.test|bob@x"}, nameless},
		{"an e-mail that is a pattern", nil, map[string]any{"email": "*@agents.test"}, nameless},
		{"an endless e-mail", nil, map[string]any{"email": "ann@" + strings.Repeat("a", 251)}, nameless},
		{"the longest subject", nil, map[string]any{"sub": strings.Repeat("a", 255), "email": nil}, issuer.URL() + "|" + strings.Repeat("a", 255)},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims := issuer.Claims(audience, ann)
			maps.Copy(claims, c.claims)
			maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
			token := issuertest.SignRaw(key, header(key, c.header), issuertest.JSON(claims))
			wantCaller(t, o, with(token), c.who)
			wantCaller(t, o, with(token), c.who) // from memory
		})
	}
}

func TestTheSchemeIsTakenInAnyCase(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	o := verifier(t, issuer)
	for _, scheme := range []string{"Bearer", "bearer", "BEARER", "bEaReR"} {
		wantCaller(t, o, request("Authorization", scheme+" "+issuer.Token(audience, ann)), ann)
	}
}

func TestAnIssuerIsReadOverTheNetwork(t *testing.T) {
	t.Parallel()
	issuer := issuertest.Start(t)
	o := verifier(t, issuer, func(c *authn.OIDCConfig) { c.Transport = nil })
	wantCaller(t, o, with(issuer.Token(audience, ann)), ann)
	wantUnauthenticated(t, o, with(issuer.Token("https://elsewhere.test", ann)), "another audience")
}

func TestIssuerVouchesOnlyForItsOwnTokens(t *testing.T) {
	t.Parallel()
	one, two := issuertest.Start(t), issuertest.Start(t)
	both := func(c *authn.OIDCConfig) { c.Issuers, c.Transport = []string{one.URL(), two.URL()}, nil }
	o := verifier(t, one, both)
	wantCaller(t, o, with(one.Token(audience, ann)), one.URL()+"|subject of "+ann)
	wantCaller(t, o, with(two.Token(audience, ann)), two.URL()+"|subject of "+ann)

	o = verifier(t, one, both, func(c *authn.OIDCConfig) { c.EmailIssuers = []string{two.URL()} })
	wantCaller(t, o, with(one.Token(audience, ann)), one.URL()+"|subject of "+ann)
	wantCaller(t, o, with(two.Token(audience, ann)), ann)

	// Both call their key alike: a token of one that is signed by the other must not pass.
	claims := one.Claims(audience, ann)
	wantUnauthenticated(t, o, with(two.Sign(claims)), "signature")

	o = verifier(t, one, func(c *authn.OIDCConfig) { c.EmailIssuers, c.Transport = []string{}, nil })
	wantCaller(t, o, with(one.Token(audience, ann)), one.URL()+"|subject of "+ann)
}

func TestATokenIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	o := stopped(t, issuer)
	var verified atomic.Int32
	authn.OnVerify(o, func() { verified.Add(1) })
	running(t, o)
	token := issuer.Token(audience, ann)
	for range 100 {
		wantCaller(t, o, with(token), ann)
	}
	if n := verified.Load(); n != 1 {
		t.Errorf("%d verifications of one token", n)
	}
}

func TestNumberOfRememberedTokensIsBounded(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	o := stopped(t, issuer)
	authn.Remember(o, 3)
	var verified int
	authn.OnVerify(o, func() { verified++ })
	running(t, o)
	tokens := make([]string, 5)
	for i := range tokens {
		tokens[i] = issuer.Token(audience, fmt.Sprintf("agent-%d@agents.test", i))
		wantCaller(t, o, with(tokens[i]), fmt.Sprintf("agent-%d@agents.test", i))
		wantCaller(t, o, with(tokens[0]), "agent-0@agents.test") // it stays, for it is used
	}
	if n := authn.Remembered(o); n != 3 || verified != 5 {
		t.Errorf("%d are remembered after %d verifications, want 3 and 5", n, verified)
	}
	wantCaller(t, o, with(tokens[1]), "agent-1@agents.test")
	if verified != 6 {
		t.Errorf("%d verifications: the one that was not used for longest should be forgotten", verified)
	}
	for _, c := range badTokens(issuer) {
		o.Authenticate(c.request)
	}
	before := verified
	wantCaller(t, o, with(tokens[0]), "agent-0@agents.test")
	if verified != before {
		t.Error("tokens that are not good pushed out one that is")
	}
}

func TestARememberedTokenEndsWhenItExpires(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		o := verifier(t, issuer)
		token := issuer.Token(audience, ann) // for an hour
		wantCaller(t, o, with(token), ann)
		time.Sleep(time.Hour + 59*time.Second)
		wantCaller(t, o, with(token), ann)
		time.Sleep(time.Second)
		wantUnauthenticated(t, o, with(token), "has expired")
		if n := authn.Remembered(o); n != 0 {
			t.Errorf("%d tokens are remembered, and the only one has expired", n)
		}
	})
}

func TestPanicIsARefusalWithoutTheToken(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	issuer := newIssuer(t)
	token := issuer.Token(audience, ann)
	o := stopped(t, issuer, func(c *authn.OIDCConfig) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	authn.OnVerify(o, func() { panic(token) })
	running(t, o)
	wantUnauthenticated(t, o, with(token), "cannot be checked")
	leaked(t, "a panic", with(token), log.String())
	if !strings.Contains(log.String(), "TestPanicIsARefusal") {
		t.Errorf("the log does not say where: %s", log.String())
	}
	if n := authn.Remembered(o); n != 0 {
		t.Errorf("%d tokens are remembered", n)
	}
}

func TestManyCallersAtOnceWhileKeysChange(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	var ahead atomic.Int64
	o := stopped(t, issuer, func(c *authn.OIDCConfig) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	authn.Remember(o, 8) // fewer than there are tokens
	running(t, o)
	var tokens []string
	for i := range 16 {
		tokens = append(tokens, issuer.Token(audience, fmt.Sprintf("agent-%d@agents.test", i)))
	}
	madeUp := issuertest.SignWith(issuertest.Key{ID: "made-up", Private: shared()}, issuer.Claims(audience, ann))
	issuer.Rotate(1)
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := range 64 {
				n := (c + i) % len(tokens)
				wantCaller(t, o, with(tokens[n]), fmt.Sprintf("agent-%d@agents.test", n))
				if i%8 == c { // so that there is another look every minute of half an hour
					ahead.Add(int64(30 * time.Second))
					wantUnauthenticated(t, o, with(madeUp), "does not know the key")
				}
			}
		})
	}
	callers.Wait()
	if n := issuer.Asked(issuertest.PathKeys); n < 2 || n > 34 {
		t.Errorf("the issuer was asked %d times in 32 minutes", n)
	}
	wantCaller(t, o, with(issuer.Token(audience, ann)), ann)
}

func TestVerifierRefusesWrongSettings(t *testing.T) {
	t.Parallel()
	const good = "https://issuer.test"
	for _, c := range []struct {
		name   string
		config authn.OIDCConfig
		says   string
	}{
		{"no issuer", authn.OIDCConfig{Audiences: []string{audience}}, "an issuer is missing"},
		{"no audience", authn.OIDCConfig{Issuers: []string{good}}, "an audience is missing"},
		{"an empty audience", authn.OIDCConfig{Issuers: []string{good}, Audiences: []string{audience, ""}}, "an audience is missing"},
		{"an e-mail issuer that is none", authn.OIDCConfig{Issuers: []string{good}, Audiences: []string{audience}, EmailIssuers: []string{good + "/"}}, "none of the issuers"},
	} {
		wantMistake(t, c.name, c.config, c.says)
	}
	for _, issuer := range []string{
		"", "accounts.google.com", "http://issuer.test", "http://10.0.0.1", "ftp://issuer.test", "https://", "https:issuer", "https://ann:pw@issuer.test",
		"https://issuer.test?x=1", "https://issuer.test#x", "https://issuer.test/a|b", "https://issuer.test/a b", "https://issuer.test\n", "http://localhost.issuer.test",
		"https://issuer.test/" + strings.Repeat("a", 2048), "https://issuer.test?", "https://issuer.test/é",
	} {
		wantMistake(t, issuer, authn.OIDCConfig{Issuers: []string{good, issuer}, Audiences: []string{audience}}, "is not an issuer: set its https URL")
	}
	for _, issuer := range []string{good, good + "/", good + ":8443/realms/x", "http://localhost:80", "http://127.0.0.1:1", "http://[::1]:1"} {
		if _, err := authn.NewOIDC(authn.OIDCConfig{Issuers: []string{issuer}, Audiences: []string{audience}}); err != nil {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}

func wantMistake(t *testing.T, name string, c authn.OIDCConfig, says string) {
	t.Helper()
	o, err := authn.NewOIDC(c)
	if o != nil || err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q: %v, want one line with %q", name, err, says)
	}
}
