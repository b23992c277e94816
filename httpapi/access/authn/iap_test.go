package authn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
	"regent/leadership"
)

const (
	assertion = "X-Goog-IAP-JWT-Assertion"
	byRun     = "/projects/123456789/locations/europe-west1/services/regent"
	account   = "https://accounts.google.com|id-ann-agents.test"
	byBackend = "/projects/123456789/global/backendServices/987654321"
)

// asserting returns an IAP in front of an authenticator. It runs until the test ends.
func asserting(t testing.TB, p *issuertest.Proxy, other authn.Authenticator, change ...func(*authn.IAPConfig)) *authn.IAP {
	t.Helper()
	c := authn.IAPConfig{Audiences: []string{byRun, byBackend}, Other: other, Emails: true, Transport: p.Transport()}
	for _, f := range change {
		f(&c)
	}
	i := must(authn.NewIAP(c))
	running(t, i)
	return i
}

// closed refuses every caller.
type closed struct{ asked int }

func (c *closed) Authenticate(*http.Request) (authn.Principal, error) {
	c.asked++
	return authn.Principal{}, &leadership.Error{Code: "UNAUTHENTICATED", Detail: "closed"}
}

func TestAnAssertionNamesThePersonThatTheIDTokenNames(t *testing.T) {
	t.Parallel()
	issuer, proxy := newIssuer(t), issuertest.NewProxy()
	i := asserting(t, proxy, &closed{})
	pinned := asserting(t, proxy, &closed{}, func(c *authn.IAPConfig) { c.Emails = false })
	for _, c := range []struct {
		name         string
		claims       map[string]any
		who, subject string
	}{
		{"by Cloud Run", nil, ann, account},
		{"by a load balancer", map[string]any{"aud": byBackend}, ann, account},
		{"just expired", map[string]any{"exp": time.Now().Unix() - 20}, ann, account},
		{"without an e-mail", map[string]any{"email": nil}, account, account},
		{"an identity provider of the project's", map[string]any{"sub": "securetoken.google.com/p/tenant:7"}, "https://cloud.google.com/iap|securetoken.google.com/p/tenant:7", "https://cloud.google.com/iap|securetoken.google.com/p/tenant:7"},
		{"a workforce", map[string]any{"sub": "sts.google.com:AAF"}, "https://cloud.google.com/iap|sts.google.com:AAF", "https://cloud.google.com/iap|sts.google.com:AAF"},
		{"a Google account without a number", map[string]any{"sub": "accounts.google.com:"}, "https://cloud.google.com/iap|accounts.google.com:", "https://cloud.google.com/iap|accounts.google.com:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims := proxy.Claims(byRun, ann)
			maps.Copy(claims, c.claims)
			maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
			token := proxy.Sign(claims)
			for range 2 { // the second time from memory
				wantCaller(t, i, request(assertion, token), c.who)
				wantCaller(t, pinned, request(assertion, token), c.subject)
			}
		})
	}

	oidc := verifier(t, issuer)
	person := must(asserting(t, proxy, oidc).Authenticate(request(assertion, proxy.Assertion(byRun, ann))))
	if person.Issuer != "https://accounts.google.com" || person.Subject != "id-ann-agents.test" || person.Email != ann {
		t.Errorf("the person is %+v", person)
	}
}

func TestARequestWithoutAnAssertionIsLeftToTheOther(t *testing.T) {
	t.Parallel()
	issuer, proxy := newIssuer(t), issuertest.NewProxy()
	i := asserting(t, proxy, verifier(t, issuer))
	wantCaller(t, i, with(issuer.Token(audience, ann)), ann)
	wantUnauthenticated(t, i, request(), "has no credential")
	wantUnauthenticated(t, i, with(proxy.Assertion(byRun, ann)), "only tokens signed with RS256")
	wantUnauthenticated(t, i, request("Cookie", "GCP_IAP_UID=7; "+assertion+"="+proxy.Assertion(byRun, ann)), "has no credential")
	wantUnauthenticated(t, i, request("X-Goog-Authenticated-User-Email", "accounts.google.com:"+ann), "has no credential")
}

// The caller must not choose how it is checked: a token beside an assertion is ignored.
func TestAnAssertionIsTheOnlyIdentityOfItsRequest(t *testing.T) {
	t.Parallel()
	issuer, proxy := newIssuer(t), issuertest.NewProxy()
	other := verifier(t, issuer)
	i := asserting(t, proxy, other)
	bob := "Bearer " + issuer.Token(audience, "bob@agents.test")
	good := proxy.Assertion(byRun, ann)
	wantCaller(t, other, request("Authorization", bob), "bob@agents.test")
	wantCaller(t, i, request("Authorization", bob, assertion, good), ann)
	wantCaller(t, i, request(assertion, good, "Authorization", "nonsense"), ann)
	wantCaller(t, i, request(assertion, good, "X-Serverless-Authorization", "Bearer "+issuertest.CutSignature(issuer.Token(audience, "bob@agents.test"))), ann)
	for _, c := range badAssertions(t, proxy) {
		c.request.Header.Set("Authorization", bob)
		wantUnauthenticated(t, i, c.request, c.detail)
	}
	none := &closed{}
	asserting(t, proxy, none).Authenticate(request(assertion, "x"))
	if none.asked != 0 {
		t.Error("a bad assertion was passed over")
	}
}

// badAssertions has every known kind of bad assertion. Unless the signature is the fault, it is
// good.
func badAssertions(t testing.TB, p *issuertest.Proxy) []bad {
	t.Helper()
	key := p.Key()
	good := p.Assertion(byRun, ann)
	part := strings.Split(good, ".")
	claims := func(name string, value any) string {
		c := p.Claims(byRun, ann)
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return issuertest.JSON(c)
	}
	head := func(change map[string]any) string {
		h := map[string]any{"alg": "ES256", "typ": "JWT", "kid": key.ID}
		maps.Copy(h, change)
		maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
		return issuertest.JSON(h)
	}
	of := func(token string) *http.Request { return request(assertion, token) }
	says := func(name string, value any) *http.Request {
		return of(issuertest.SignRaw(key, head(nil), claims(name, value)))
	}
	headed := func(change map[string]any) *http.Request {
		return of(issuertest.SignRaw(key, head(change), claims("hd", nil)))
	}
	signed := func(alg string, sign func(string) []byte) *http.Request {
		s := issuertest.Encode([]byte(head(map[string]any{"alg": alg}))) + "." + part[1]
		return of(s + "." + issuertest.Encode(sign(s)))
	}
	stranger := issuertest.Key{ID: key.ID, Private: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	point := must(key.Private.Public().(*ecdsa.PublicKey).Bytes())
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	const algorithm, shape, audienceText = "only tokens signed with ES256", "three parts of base64url", "another audience"
	return []bad{
		{"empty", of(""), shape},
		{"twice", request(assertion, good, assertion, good), "more than once"},
		{"huge", of(good + strings.Repeat("A", 8<<10)), "more than 8192 bytes"},
		{"without its signature, as Cloud Run hands tokens on", of(issuertest.CutSignature(good)), "removed the signature"},

		{"alg none and no signature", of(issuertest.Encode([]byte(head(map[string]any{"alg": "none"}))) + "." + part[1] + "."), shape},
		{"HS256 with the public key, called ES256", signed("ES256", func(s string) []byte { return hs(point, []byte(s)) }), "signature"},
		{"RS256 called ES256", signed("ES256", func(s string) []byte { return issuertest.Signature(issuertest.Key{Private: shared()}, s) }), "signature"},
		{"ES384", headed(map[string]any{"alg": "ES384"}), algorithm},

		{"forged", of(issuertest.SignRaw(stranger, head(nil), claims("hd", nil))), "signature"},
		{"another person under a good signature", of(part[0] + "." + issuertest.Encode([]byte(claims("email", "bob@agents.test"))) + "." + part[2]), "signature"},
		{"a signature in DER", signed("ES256", func(s string) []byte { return append([]byte{0x30, 0x40}, issuertest.Signature(key, s)...) }), "signature"},
		{"jwk", headed(map[string]any{"jwk": issuertest.JWK(stranger)}), "none of jku"},
		{"an unknown kid", headed(map[string]any{"kid": "../../dev/null"}), "does not know the key"},

		{"expired", says("exp", in(-31*time.Second)), "has expired"},
		{"without an end", says("exp", nil), "no claim exp"},
		{"without a beginning", says("iat", nil), "when it was issued"},

		{"another service", says("aud", strings.Replace(byRun, "regent", "other", 1)), audienceText},
		{"without an audience", says("aud", nil), audienceText},
		{"another issuer", says("iss", "https://accounts.google.com"), "another issuer"},
	}
}

func TestABadAssertionIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	proxy := issuertest.NewProxy()
	i := asserting(t, proxy, authn.None{})
	wantCaller(t, i, request(assertion, proxy.Assertion(byRun, ann)), ann)
	wantCaller(t, i, request(), "anonymous")
	for _, c := range badAssertions(t, proxy) {
		t.Run(c.name, func(t *testing.T) {
			wantUnauthenticated(t, i, c.request, c.detail)
			_, err := i.Authenticate(c.request)
			c.request.Header.Set("Authorization", c.request.Header.Get(assertion))
			leaked(t, c.name, c.request, err.Error())
		})
	}
}

func TestWithoutTheKeysOfTheProxyNoPersonIsLetIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy, issuer := issuertest.NewProxy(), newIssuer(t)
		for name, set := range map[string]any{
			"none":           map[string]any{"keys": []any{}},
			"a key for RSA":  issuertest.KeySet(issuer.Key()),
			"off the curve":  map[string]any{"keys": []any{changed(proxy, "y", issuertest.Encode(make([]byte, 32)))}},
			"a short number": map[string]any{"keys": []any{changed(proxy, "x", "AA")}},
		} {
			proxy.Break(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(issuertest.JSON(set))) }))
			i := asserting(t, proxy, verifier(t, issuer))
			t.Log(name)
			wantUnavailable(t, i, request(assertion, proxy.Assertion(byRun, ann)))
			wantCaller(t, i, with(issuer.Token(audience, ann)), ann) // other callers are not affected
		}
		proxy.Break(down)
		i := asserting(t, proxy, &closed{})
		wantUnavailable(t, i, request(assertion, proxy.Assertion(byRun, ann)))
		proxy.Break(nil)
		time.Sleep(time.Minute)
		wantCaller(t, i, request(assertion, proxy.Assertion(byRun, ann)), ann)
	})
}

func changed(p *issuertest.Proxy, name string, value any) map[string]any {
	key := issuertest.JWK(p.Key())
	key[name] = value
	return key
}

func TestIAPRefusesWrongSettings(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"", "https://regent.test", "/projects/my-project/locations/europe-west1/services/regent", "projects/1/global/backendServices/2", "/projects/1/", "/projects/1/a b", "/projects/1/a,b", byRun + "\n"} {
		if i, err := authn.NewIAP(authn.IAPConfig{Audiences: []string{byRun, a}, Other: authn.None{}}); i != nil || err == nil || !strings.Contains(err.Error(), "is not an audience") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", a, err)
		}
	}
	for _, c := range []authn.IAPConfig{{Other: authn.None{}}, {Audiences: []string{byRun}}} {
		if i, err := authn.NewIAP(c); i != nil || err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := authn.NewIAP(authn.IAPConfig{Audiences: []string{byRun, byBackend}, Other: authn.None{}}); err != nil {
		t.Error(err)
	}
}
