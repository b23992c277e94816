// Package issuertest is an identity provider for tests: it has keys of its own, signs whatever it
// is told to, changes its keys, and fails when asked to. Only tests import it.
package issuertest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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
	tb  testing.TB
	url string

	mu     sync.Mutex // guards what follows
	keys   []Key      // shown; the last one signs
	made   int        // keys so far, for their names
	maxAge time.Duration
	broken http.Handler
	asked  map[string]int // by path
}

// Key is a key with its name.
type Key struct {
	ID      string
	Private *rsa.PrivateKey
}

// New returns an issuer that is reached through its Transport alone, so that it can be used in a
// bubble of testing/synctest. It begins with the given key, which saves the time to make one, or
// else with a key of its own.
func New(tb testing.TB, first ...*rsa.PrivateKey) *Issuer {
	i := &Issuer{tb: tb, url: "https://issuer.test", maxAge: time.Hour, asked: map[string]int{}}
	if len(first) > 0 {
		i.show(first[0], 0)
	} else {
		i.Rotate(0)
	}
	return i
}

// Start returns an issuer that listens on loopback until the test ends. It begins with a key as
// New's does.
func Start(tb testing.TB, first ...*rsa.PrivateKey) *Issuer {
	i := New(tb, first...)
	server := httptest.NewServer(i)
	tb.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// URL is the issuer's name, as its tokens have it in iss.
func (i *Issuer) URL() string { return i.url }

// Key returns the key that signs now.
func (i *Issuer) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Rotate makes a new key that signs from now on, and goes on showing the last so many of the old
// ones.
func (i *Issuer) Rotate(keep int) { i.show(NewKey(i.tb), keep) }

func (i *Issuer) show(key *rsa.PrivateKey, keep int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	old := i.keys[max(0, len(i.keys)-keep):]
	i.keys = append(slices.Clone(old), Key{fmt.Sprintf("key-%d", i.made), key})
}

// NewKey makes a key. It takes a tenth of a second or more.
func NewKey(tb testing.TB) *rsa.PrivateKey {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// Break has every request answered by h; nil mends it. A handler that panics with
// http.ErrAbortHandler is a connection that breaks.
func (i *Issuer) Break(h http.Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.broken = h
}

// SetMaxAge says how long the keys may be kept: an hour unless it is called.
func (i *Issuer) SetMaxAge(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.maxAge = d
}

// Asked returns how often a path was asked for, also while the issuer was broken.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// ServeHTTP answers what an identity provider is asked for.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	broken, keys, maxAge := i.broken, i.keys, i.maxAge
	i.mu.Unlock()
	switch {
	case broken != nil:
		broken.ServeHTTP(w, r)
	case r.URL.Path == PathDiscovery:
		json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + PathKeys})
	case r.URL.Path == PathKeys:
		w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d, must-revalidate", int(maxAge.Seconds())))
		json.NewEncoder(w).Encode(KeySet(keys...))
	default:
		http.NotFound(w, r)
	}
}

// Transport reaches the issuer without a network, whatever its URL says.
func (i *Issuer) Transport() http.RoundTripper { return transport{i} }

type transport struct{ http.Handler }

// RoundTrip has the handler answer at once.
func (t transport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			response, err = nil, fmt.Errorf("the connection broke: %v", v)
		}
	}()
	w := httptest.NewRecorder()
	t.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response = w.Result()
	response.Request = r
	return response, nil
}

// KeySet is the document that shows the keys.
func KeySet(keys ...Key) map[string]any {
	set := []map[string]any{}
	for _, k := range keys {
		set = append(set, JWK(k))
	}
	return map[string]any{"keys": set}
}

// JWK is a key in a document.
func JWK(k Key) map[string]any {
	return map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": k.ID,
		"n": Encode(k.Private.N.Bytes()), "e": Encode(big.NewInt(int64(k.Private.E)).Bytes()),
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

// Sign returns a token with these claims, signed with the present key.
func (i *Issuer) Sign(claims any) string { return SignWith(i.Key(), claims) }

// SignWith returns a token with these claims, signed with the key.
func SignWith(k Key, claims any) string {
	return SignRaw(k, JSON(map[string]any{"alg": "RS256", "typ": "JWT", "kid": k.ID}), JSON(claims))
}

// SignRaw signs a header and claims as they are, sound or not.
func SignRaw(k Key, header, claims string) string {
	signed := Encode([]byte(header)) + "." + Encode([]byte(claims))
	return signed + "." + Encode(Signature(k, signed))
}

// Signature is that of RS256.
func Signature(k Key, signed string) []byte {
	hashed := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, k.Private, crypto.SHA256, hashed[:])
	if err != nil {
		panic(err)
	}
	return signature
}

// CutSignature is the token as Cloud Run hands it on after it has checked it.
func CutSignature(token string) string {
	return token[:strings.LastIndexByte(token, '.')+1] + "SIGNATURE_REMOVED_BY_GOOGLE"
}

// Encode is base64url without padding.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// JSON writes a document that can be written.
func JSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
