package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Where the keys of Identity-Aware Proxy are, over https.
const (
	ProxyKeysHost = "www.gstatic.com"
	PathProxyKeys = "/iap/verify/public_key-jwk"
)

// Proxy signs assertions as Google's Identity-Aware Proxy does. It is reached through its
// Transport, or serves as the handler of a server that stands in for ProxyKeysHost. All methods may
// be called at the same time.
type Proxy struct {
	tb testing.TB

	mu     sync.Mutex // guards what follows
	keys   []ProxyKey // shown; the last one signs
	made   int        // keys so far, for their names
	broken http.Handler
	asked  int
}

// ProxyKey is a key with its name.
type ProxyKey struct {
	ID      string
	Private *ecdsa.PrivateKey
}

// NewProxy returns a Proxy with a key of its own.
func NewProxy(tb testing.TB) *Proxy {
	p := &Proxy{tb: tb}
	p.Rotate(0)
	return p
}

// Rotate makes a new key that signs from now on, and goes on showing the last so many of the old
// ones.
func (p *Proxy) Rotate(keep int) {
	p.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	old := p.keys[max(0, len(p.keys)-keep):]
	p.keys = append(slices.Clone(old), ProxyKey{fmt.Sprintf("proxy-%d", p.made), key})
}

// Key returns the key that signs now.
func (p *Proxy) Key() ProxyKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1]
}

// Break has every request answered by h; nil mends it.
func (p *Proxy) Break(h http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = h
}

// Asked returns how often the keys were asked for.
func (p *Proxy) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// ServeHTTP shows the keys.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked++
	broken, keys := p.broken, p.keys
	p.mu.Unlock()
	switch {
	case broken != nil:
		broken.ServeHTTP(w, r)
	case r.Host == ProxyKeysHost && r.URL.Scheme != "http" && r.URL.Path == PathProxyKeys:
		w.Header().Set("Cache-Control", "public, max-age=3600")
		set := []map[string]any{}
		for _, k := range keys {
			set = append(set, ProxyJWK(k))
		}
		json.NewEncoder(w).Encode(map[string]any{"keys": set})
	default:
		http.NotFound(w, r)
	}
}

// Transport reaches the keys without a network.
func (p *Proxy) Transport() http.RoundTripper { return transport{p} }

// ProxyJWK is a key in a document.
func ProxyJWK(k ProxyKey) map[string]any {
	point, err := k.Private.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": k.ID,
		"x": Encode(point[1:33]), "y": Encode(point[33:]),
	}
}

// AccountID returns the id of the Google account with that e-mail. Google's are numbers.
func AccountID(email string) string { return "id-" + strings.ReplaceAll(email, "@", "-") }

// Claims are those of a good assertion, issued now and valid for ten minutes.
func (p *Proxy) Claims(audience, email string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": "https://cloud.google.com/iap", "sub": "accounts.google.com:" + AccountID(email), "aud": audience,
		"email": email, "hd": "agents.test", "azp": audience,
		"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
	}
}

// Assertion returns a good assertion.
func (p *Proxy) Assertion(audience, email string) string { return p.Sign(p.Claims(audience, email)) }

// Sign returns an assertion with these claims, signed with the present key.
func (p *Proxy) Sign(claims any) string {
	k := p.Key()
	return SignProxy(k, JSON(map[string]any{"alg": "ES256", "typ": "JWT", "kid": k.ID}), JSON(claims))
}

// SignProxy signs a header and claims as they are, sound or not.
func SignProxy(k ProxyKey, header, claims string) string {
	signed := Encode([]byte(header)) + "." + Encode([]byte(claims))
	return signed + "." + Encode(ProxySignature(k, signed))
}

// ProxySignature is that of ES256.
func ProxySignature(k ProxyKey, signed string) []byte {
	hashed := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, k.Private, hashed[:])
	if err != nil {
		panic(err)
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}
