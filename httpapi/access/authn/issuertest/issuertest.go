// Package issuertest is an identity provider for tests: it has its own keys, signs any claims,
// rotates its keys, and fails on request. Only tests import it.
package issuertest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The paths that an issuer answers.
const (
	PathDiscovery = "/.well-known/openid-configuration"
	PathKeys      = "/keys"
)

// Issuer is an identity provider. All methods are safe for concurrent use.
type Issuer struct {
	keyed
	url    string
	maxAge atomic.Int64 // seconds
}

// New returns an issuer that is reached only through its Transport, so that it can be used in a
// bubble of testing/synctest. It begins with the given key, which saves the time to generate one,
// or else with a new key.
func New(first ...crypto.Signer) *Issuer {
	i := &Issuer{url: "https://issuer.test", keyed: keyed{names: "key-%d", newKey: NewKey, asked: map[string]int{}}}
	i.answer = i.serve
	i.SetMaxAge(time.Hour)
	if len(first) > 0 {
		i.show(first[0], 0)
	} else {
		i.Rotate(0)
	}
	return i
}

// Start returns an issuer that listens on loopback until the test ends. Its key is as for New.
func Start(tb testing.TB, first ...crypto.Signer) *Issuer {
	i := New(first...)
	server := httptest.NewServer(i)
	tb.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// URL returns the issuer's name, which its tokens have in iss.
func (i *Issuer) URL() string { return i.url }

// NewKey generates a key, which takes a tenth of a second or more.
func NewKey() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) }

// SetMaxAge sets how long the keys may be cached, by default an hour.
func (i *Issuer) SetMaxAge(d time.Duration) { i.maxAge.Store(int64(d.Seconds())) }

// serve answers the requests to an identity provider.
func (i *Issuer) serve(w http.ResponseWriter, r *http.Request, keys map[string]any) {
	switch r.URL.Path {
	case PathDiscovery:
		json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + PathKeys})
	case PathKeys:
		w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d, must-revalidate", i.maxAge.Load()))
		json.NewEncoder(w).Encode(keys)
	default:
		http.NotFound(w, r)
	}
}

// Claims returns the claims of a valid token, issued now and valid for an hour. The caller may
// change them.
func (i *Issuer) Claims(audience, email string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": i.url, "sub": "subject of " + email, "aud": audience,
		"email": email, "email_verified": true,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// Token returns a valid token.
func (i *Issuer) Token(audience, email string) string { return i.Sign(i.Claims(audience, email)) }

// CutSignature returns the token as Cloud Run passes it on after its check.
func CutSignature(token string) string {
	return token[:strings.LastIndexByte(token, '.')+1] + "SIGNATURE_REMOVED_BY_GOOGLE"
}

// Encode returns b in base64url without padding.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// JSON encodes v, and panics if it cannot.
func JSON(v any) string { return string(must(json.Marshal(v))) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
