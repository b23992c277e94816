package authn_test

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
)

// bad is a request that must be refused.
type bad struct {
	name    string
	request *http.Request
	detail  string
}

// badTokens has every known kind of bad token. Unless the signature is the fault, it is valid.
func badTokens(i *issuertest.Issuer) []bad {
	key := i.Key()
	good := i.Token(audience, ann)
	part := strings.Split(good, ".")
	claims := func(change map[string]any) string {
		c := i.Claims(audience, ann)
		for name, value := range change {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
		return issuertest.JSON(c)
	}
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	says := func(name string, value any) *http.Request {
		return with(issuertest.SignRaw(key, header(key, nil), claims(map[string]any{name: value})))
	}
	// raw has a claim in words that encoding/json would not write.
	raw := func(name, text string) *http.Request {
		c := claims(map[string]any{name: nil})
		return with(issuertest.SignRaw(key, header(key, nil), `{"`+name+`":`+text+`,`+c[1:]))
	}
	headed := func(change map[string]any) *http.Request {
		return with(issuertest.SignRaw(key, header(key, change), claims(nil)))
	}
	signed := func(alg string, sign func([]byte) []byte) *http.Request {
		s := issuertest.Encode([]byte(header(key, map[string]any{"alg": alg}))) + "." + part[1]
		return with(s + "." + issuertest.Encode(sign([]byte(s))))
	}
	const algorithm, time_, malformed, shape = "only tokens signed with RS256", "whole seconds since 1970", "is malformed", "three parts of base64url"
	return append(badHeaders(good), []bad{
		{"expired", says("exp", in(-61*time.Second)), "has expired"},
		{"without an end", says("exp", nil), "no claim exp"},
		{"not yet valid", says("nbf", in(2*time.Minute)), "not valid yet"},
		{"issued in the future", says("iat", in(2*time.Minute)), "not valid yet"},
		{"exp a string", says("exp", "4102444800"), time_},
		{"exp beyond the year 9999", raw("exp", "253402300800"), time_},
		{"exp null", raw("exp", "null"), time_},

		{"another audience", says("aud", "https://elsewhere.test"), "another audience; ask the identity provider for one whose audience is " + audience},
		{"no audiences", says("aud", []string{}), "another audience"},
		{"without an audience", says("aud", nil), "another audience"},
		{"an audience that is a number", says("aud", 7), malformed},

		{"another issuer", says("iss", "https://elsewhere.test"), "another issuer; get one from " + i.URL()},
		{"an issuer that is a list", says("iss", []string{i.URL()}), malformed},
		{"a claim in capitals", raw("ISS", `"`+i.URL()+`","iss":"https://elsewhere.test"`), "each name once"},

		{"without a subject", says("sub", nil), "claim sub"},
		{"a subject of several lines", says("sub", "ann\nbob"), "claim sub"},
		{"a subject that is half a character", raw("sub", `"\ud800"`), "each name once"},
		{"an endless subject", says("sub", strings.Repeat("a", 256)), "claim sub"},

		{"a claim twice", raw("sub", `"bob","sub":"ann"`), "each name once"},
		{"a claim twice, once escaped", raw("sub", `"bob","s\u0075b":"ann"`), "each name once"},
		{"claims that are not UTF-8", with(issuertest.SignRaw(key, header(key, nil), strings.Replace(claims(nil), ann, "ann\xff", 1))), "each name once"},
		{"claims that are no JSON", with(issuertest.SignRaw(key, header(key, nil), "iss=me")), "each name once"},
		{"claims as deep as can be", with(issuertest.SignRaw(key, header(key, nil), strings.Repeat("[", 5000))), "each name once"},
		{"a header name twice", with(issuertest.SignRaw(key, `{"alg":"none",`+header(key, nil)[1:], claims(nil))), "each name once"},

		{"alg none", headed(map[string]any{"alg": "none"}), algorithm},
		{"alg none without a signature", with(issuertest.Encode([]byte(header(key, map[string]any{"alg": "none"}))) + "." + part[1] + "."), shape},
		{"RS256 in name, RS384 in truth", signed("RS256", func(s []byte) []byte { return rs(key, crypto.SHA384, s) }), "signature"},
		{"PS256 called RS256", signed("RS256", func(s []byte) []byte { return ps(key, s) }), "signature"},
		{"HS256 with the public key as its secret", signed("HS256", func(s []byte) []byte { return hs(publicPEM(key), s) }), algorithm},
		{"HS256 with the public key, called RS256", signed("RS256", func(s []byte) []byte { return hs(publicPEM(key), s) }), "signature"},

		{"a signature with a zero in front", with(part[0] + "." + part[1] + "." + issuertest.Encode(append([]byte{0}, issuertest.Signature(key, part[0]+"."+part[1])...))), "signature"},
		{"a signature with its spare bits set", with(good[:len(good)-1] + string(good[len(good)-1]+1)), "signature"},
		{"a signature that was cut", with(issuertest.CutSignature(good)), "Cloud Run has removed the signature"},
		{"another token's signature", with(part[0] + "." + issuertest.Encode([]byte(claims(map[string]any{"email": "bob@agents.test"}))) + "." + part[2]), "signature"},
		{"another issuer's key", with(issuertest.SignRaw(issuertest.Key{ID: key.ID, Private: issuertest.NewKey()}, header(key, nil), claims(nil))), "signature"},

		{"without a kid", headed(map[string]any{"kid": nil}), "in kid"},
		{"an endless kid", headed(map[string]any{"kid": strings.Repeat("k", 129)}), "in kid"},
		{"a kid that is a path", headed(map[string]any{"kid": "../../../../dev/null"}), "does not know the key"},
		{"jwk", headed(map[string]any{"jwk": issuertest.JWK(key)}), "none of jku"},
		{"crit", headed(map[string]any{"crit": []string{"exp"}}), "none of jku"},
		{"a token to log out with", headed(map[string]any{"typ": "logout+jwt"}), "typ"},

		{"huge", with(issuertest.SignRaw(key, header(key, nil), claims(map[string]any{"x": strings.Repeat("x", 8<<10)}))), "at most 8192 bytes"},
		{"encrypted", with(good + "." + part[0] + "." + part[1]), shape},
		{"padding", with(part[0] + "==." + part[1] + "." + part[2]), shape},
		{"a line break in it", with(part[0] + "." + part[1][:8] + "\r\n" + part[1][8:] + "." + part[2]), shape},
		{"a NUL in it", with(good + "\x00"), shape},
	}...)
}

// badHeaders have a good token in a place where it does not count.
func badHeaders(good string) []bad {
	const shape = "must be: Bearer TOKEN, with one space"
	query := request()
	query.URL.RawQuery = "access_token=" + good + "&id_token=" + good
	return []bad{
		{"nothing", request(), "the request has no credential: send an ID token"},
		{"in the query", query, "the request has no credential"},
		{"in another header", request("X-Serverless-Authorization", "Bearer "+good), "the request has no credential"},
		{"twice", request("Authorization", "Bearer "+good, "Authorization", "Bearer "+good), "more than once"},
		{"an empty header", request("Authorization", ""), shape},
		{"no scheme", request("Authorization", good), shape},
		{"Basic", request("Authorization", "Basic "+good), shape},
		{"a space in front", request("Authorization", " Bearer "+good), shape},
	}
}

func header(k issuertest.Key, change map[string]any) string {
	h := map[string]any{"alg": "RS256", "typ": "JWT", "kid": k.ID}
	maps.Copy(h, change)
	maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
	return issuertest.JSON(h)
}

func decode(part string) string {
	text, _ := base64.RawURLEncoding.DecodeString(part)
	return string(text)
}

func rs(k issuertest.Key, hash crypto.Hash, signed []byte) []byte {
	h := hash.New()
	h.Write(signed)
	return must(k.Private.Sign(nil, h.Sum(nil), hash))
}

func ps(k issuertest.Key, signed []byte) []byte {
	hashed := sha256.Sum256(signed)
	return must(k.Private.Sign(rand.Reader, hashed[:], &rsa.PSSOptions{Hash: crypto.SHA256}))
}

func hs(secret, signed []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(signed)
	return h.Sum(nil)
}

func publicPEM(k issuertest.Key) []byte {
	der := must(x509.MarshalPKIXPublicKey(k.Private.Public()))
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestABadTokenIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	_ = sha512.New // RS384 needs it
	issuer := newIssuer(t)
	o := verifier(t, issuer)
	wantCaller(t, o, with(issuer.Token(audience, ann)), ann)
	for _, c := range badTokens(issuer) {
		t.Run(c.name, func(t *testing.T) {
			wantUnauthenticated(t, o, c.request, c.detail)
		})
	}
}

func TestNoErrorAndNoLogHoldsAPartOfAToken(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	issuer := newIssuer(t)
	o := verifier(t, issuer, func(c *authn.OIDCConfig) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, c := range badTokens(issuer) {
		_, err := o.Authenticate(c.request)
		leaked(t, c.name, c.request, err.Error())
		leaked(t, c.name, c.request, log.String())
	}
}

// leaked looks for parts of the token that are too long to be there by chance.
func leaked(t *testing.T, name string, r *http.Request, told string) {
	t.Helper()
	const window = 9
	value := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	for i := range len(value) - window {
		if strings.Contains(told, value[i:i+window]) {
			t.Errorf("%s: %q repeats %q of the token", name, told, value[i:i+window])
			return
		}
	}
	for _, claim := range []string{ann, "elsewhere", "dev/null", "UNION", "logout", "subject of"} {
		if strings.Contains(told, claim) {
			t.Errorf("%s: %q repeats %q of the token", name, told, claim)
		}
	}
}
