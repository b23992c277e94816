// Package issuertest is an identity provider for tests: it has keys of its own, signs whatever it
// is told to, changes its keys, and fails when asked to. Only tests import it.
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

// Issuer is an identity provider. All methods may be called at the same time.
type Issuer struct {
	keyed
	url    string
	maxAge atomic.Int64 // seconds
}

// New returns an issuer that is reached through its Transport alone, so that it can be used in a
// bubble of testing/synctest. It begins with the given key, which saves the time to make one, or
// else with a key of its own.
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

// Start returns an issuer that listens on loopback until the test ends. It begins with a key as
// New's does.
func Start(tb testing.TB, first ...crypto.Signer) *Issuer {
	i := New(first...)
	server := httptest.NewServer(i)
	tb.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// URL is the issuer's name, as its tokens have it in iss.
func (i *Issuer) URL() string { return i.url }

// NewKey makes a key. It takes a tenth of a second or more.
func NewKey() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) }

// SetMaxAge says how long the keys may be kept: an hour unless it is called.
func (i *Issuer) SetMaxAge(d time.Duration) { i.maxAge.Store(int64(d.Seconds())) }

// serve answers what an identity provider is asked for.
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

// Claims are those of a good token, issued now and valid for an hour. A caller may change them.
func (i *Issuer) Claims(audience, email string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": i.url, "sub": "subject of " + email, "aud": audience,
		"email": email, "email_verified": true,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// Token returns a good token.
func (i *Issuer) Token(audience, email string) string { return i.Sign(i.Claims(audience, email)) }

// CutSignature is the token as Cloud Run hands it on after it has checked it.
func CutSignature(token string) string {
	return token[:strings.LastIndexByte(token, '.')+1] + "SIGNATURE_REMOVED_BY_GOOGLE"
}

// Encode is base64url without padding.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// JSON writes a document that can be written.
func JSON(v any) string { return string(must(json.Marshal(v))) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
