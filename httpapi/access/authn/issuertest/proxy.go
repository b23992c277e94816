package issuertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// The address of the keys of Identity-Aware Proxy, over https.
const (
	ProxyKeysHost = "www.gstatic.com"
	PathProxyKeys = "/iap/verify/public_key-jwk"
)

// Proxy signs assertions as Google's Identity-Aware Proxy does. It is reached through its
// Transport, or serves as the handler of a server that stands in for ProxyKeysHost. All methods are
// safe for concurrent use.
type Proxy struct{ keyed }

// NewProxy returns a Proxy with a new key.
func NewProxy() *Proxy {
	p := &Proxy{keyed{names: "proxy-%d", newKey: newProxyKey, answer: serveProxyKeys, asked: map[string]int{}}}
	p.Rotate(0)
	return p
}

func newProxyKey() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func serveProxyKeys(w http.ResponseWriter, r *http.Request, keys map[string]any) {
	if r.Host != ProxyKeysHost || r.URL.Scheme == "http" || r.URL.Path != PathProxyKeys {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	json.NewEncoder(w).Encode(keys)
}

// AccountID returns the id of the Google account with that e-mail. Google's are numbers.
func AccountID(email string) string { return "id-" + strings.ReplaceAll(email, "@", "-") }

// Claims returns the claims of a valid assertion, issued now and valid for ten minutes.
func (p *Proxy) Claims(audience, email string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": "https://cloud.google.com/iap", "sub": "accounts.google.com:" + AccountID(email), "aud": audience,
		"email": email, "hd": "agents.test", "azp": audience,
		"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
	}
}

// Assertion returns a valid assertion.
func (p *Proxy) Assertion(audience, email string) string { return p.Sign(p.Claims(audience, email)) }
