package authn_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
)

// FuzzAuthenticate sends arbitrary headers. Only the exact bytes that the issuer signed identify a
// caller: a token has only one form.
func FuzzAuthenticate(f *testing.F) {
	issuer := newIssuer(f)
	o := verifier(f, issuer)
	f.Add("Bearer "+issuer.Token(audience, ann), "Bearer "+issuertest.CutSignature(issuer.Token(audience, ann)))
	for _, c := range badTokens(issuer) {
		f.Add(c.request.Header.Get(authorization), c.request.Header.Get(serverless))
	}
	p, err := authn.NewPlatform(authn.PlatformConfig{Service: "regent", Audiences: []string{audience}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, header, own string) {
		r := &http.Request{Header: http.Header{authorization: {header}}}
		_, token, _ := strings.Cut(header, " ")
		if who, err := o.Authenticate(r); err == nil && !isSigned(issuer.Key(), token) {
			t.Errorf("%q names %v", header, who)
		}
		r.Header[serverless] = []string{own}
		if who, err := p.Authenticate(r); err == nil && (who.Email == "" || strings.Contains(header, "SIGNATURE_REMOVED_BY_GOOGLE")) {
			t.Errorf("%q and %q name %v", header, own, who)
		}
	})
}

// FuzzToken signs an arbitrary header and arbitrary claims, and compares the accepted claims with
// what encoding/json reads. With any other signature the token must be refused.
func FuzzToken(f *testing.F) {
	issuer := newIssuer(f)
	key := issuer.Key()
	o := verifier(f, issuer)
	good := issuer.Claims(audience, ann)
	good["exp"] = 4102444800
	f.Add(header(key, nil), issuertest.JSON(good), []byte{1})
	for _, c := range badTokens(issuer) {
		parts := strings.Split(strings.TrimPrefix(c.request.Header.Get(authorization), "Bearer "), ".")
		if len(parts) == 3 {
			f.Add(decode(parts[0]), decode(parts[1]), []byte(decode(parts[2])))
		}
	}
	f.Fuzz(func(t *testing.T, header, claims string, signature []byte) {
		signed := issuertest.Encode([]byte(header)) + "." + issuertest.Encode([]byte(claims))
		token := signed + "." + issuertest.Encode(signature)
		if who, err := o.Authenticate(with(token)); err == nil && !isSigned(key, token) {
			t.Errorf("a made-up signature of %q names %v", claims, who)
		}
		who, err := o.Authenticate(with(signed + "." + issuertest.Encode(issuertest.Signature(key, signed))))
		if err != nil {
			return
		}
		var head, says map[string]any
		if json.Unmarshal([]byte(header), &head) != nil || json.Unmarshal([]byte(claims), &says) != nil {
			t.Fatalf("%q and %q name %v", header, claims, who)
		}
		expires, _ := says["exp"].(float64)
		if head["alg"] != "RS256" || head["kid"] != key.ID || says["iss"] != issuer.URL() || says["sub"] != who.Subject || expires < float64(time.Now().Unix()-60) {
			t.Errorf("%q and %q name %v", header, claims, who)
		}
		if who.Email != "" && (who.Email != says["email"] || says["email_verified"] != true) {
			t.Errorf("%q has the e-mail %v", claims, who.Email)
		}
	})
}

// isSigned reports whether the token ends in the signature of the key.
func isSigned(k issuertest.Key, token string) bool {
	at := max(strings.LastIndexByte(token, '.'), 0)
	return strings.TrimPrefix(token[at:], ".") == issuertest.Encode(issuertest.Signature(k, token[:at]))
}
