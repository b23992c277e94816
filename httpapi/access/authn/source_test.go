package authn_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"regent/httpapi/access/authn/issuertest"
)

// untrustworthy returns issuers that misbehave, by a description.
func untrustworthy(t *testing.T) map[string]func(*issuertest.Issuer) http.Handler {
	t.Helper()
	small := issuertest.Key{ID: "key-1", Private: must(rsa.GenerateKey(rand.Reader, 1024))}
	return map[string]func(*issuertest.Issuer) http.Handler{
		"a discovery document of another issuer": instead(issuertest.PathDiscovery, func(i *issuertest.Issuer) any {
			return map[string]any{"issuer": i.URL() + "/", "jwks_uri": i.URL() + issuertest.PathKeys}
		}),
		"keys without TLS": instead(issuertest.PathDiscovery, func(i *issuertest.Issuer) any {
			return map[string]any{"issuer": i.URL(), "jwks_uri": "http://issuer.test" + issuertest.PathKeys}
		}),
		"keys on loopback of an issuer that is not there": instead(issuertest.PathDiscovery, func(i *issuertest.Issuer) any {
			return map[string]any{"issuer": i.URL(), "jwks_uri": "http://127.0.0.1" + issuertest.PathKeys}
		}),
		"a redirect of the discovery document": redirect(issuertest.PathDiscovery),
		"a redirect of the keys":               redirect(issuertest.PathKeys),
		"no keys":                              instead(issuertest.PathKeys, func(*issuertest.Issuer) any { return issuertest.KeySet() }),
		"small keys":                           instead(issuertest.PathKeys, func(*issuertest.Issuer) any { return issuertest.KeySet(small) }),
		"too many keys": instead(issuertest.PathKeys, func(i *issuertest.Issuer) any {
			keys := make([]issuertest.Key, 65)
			for n := range keys {
				keys[n] = i.Key()
			}
			return issuertest.KeySet(keys...)
		}),
		"endless keys": instead(issuertest.PathKeys, func(i *issuertest.Issuer) any {
			set := issuertest.KeySet(i.Key())
			set["x"] = strings.Repeat("x", 256<<10)
			return set
		}),
		"keys that are no keys":      instead(issuertest.PathKeys, func(*issuertest.Issuer) any { return "keys" }),
		"an even modulus":            altered(map[string]any{"n": issuertest.Encode(append([]byte{0xff}, make([]byte, 255)...))}),
		"a huge modulus":             altered(map[string]any{"n": strings.Repeat("_", 1400)}),
		"an even exponent":           altered(map[string]any{"e": "AQAC"}),
		"a key to encrypt with":      altered(map[string]any{"use": "enc"}),
		"a key with an endless name": altered(map[string]any{"kid": strings.Repeat("k", 129)}),
		"an answer that breaks off": func(*issuertest.Issuer) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		},
	}
}

// instead answers the path with another document.
func instead(path string, document func(*issuertest.Issuer) any) func(*issuertest.Issuer) http.Handler {
	return func(i *issuertest.Issuer) http.Handler {
		return at(i, path, func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(document(i)) })
	}
}

// altered publishes the issuer's key with changes.
func altered(change map[string]any) func(*issuertest.Issuer) http.Handler {
	return instead(issuertest.PathKeys, func(i *issuertest.Issuer) any {
		key := issuertest.JWK(i.Key())
		maps.Copy(key, change)
		return map[string]any{"keys": []any{key}}
	})
}

// redirect redirects the caller to the right document.
func redirect(path string) func(*issuertest.Issuer) http.Handler {
	return func(i *issuertest.Issuer) http.Handler {
		return at(i, path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" {
				well(i).ServeHTTP(w, r)
				return
			}
			http.Redirect(w, r, path+"?again", http.StatusFound)
		})
	}
}

// at answers the path with h, and all others like a working issuer.
func at(i *issuertest.Issuer, path string, h http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(path, h)
	mux.Handle("/", well(i))
	return mux
}

func well(i *issuertest.Issuer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(issuertest.PathDiscovery, func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL(), "jwks_uri": i.URL() + issuertest.PathKeys})
	})
	mux.HandleFunc(issuertest.PathKeys, func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(issuertest.KeySet(i.Key()))
	})
	return mux
}

func TestKeysOfAGoodIssuerAreUsed(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*issuertest.Issuer) http.Handler{
		"as it is":       well,
		"with more keys": instead(issuertest.PathKeys, func(i *issuertest.Issuer) any { return mixed(i) }),
		"a bare key":     altered(map[string]any{"use": nil, "alg": nil}),
	} {
		synctest.Test(t, func(t *testing.T) {
			issuer := newIssuer(t)
			issuer.Break(answer(issuer))
			if p, err := verifier(t, issuer).Authenticate(with(issuer.Token(audience, ann))); err != nil || p.Email != ann {
				t.Errorf("%s: %v, %v", name, p, err)
			}
		})
	}
}

// mixed returns a set with one usable key among others.
func mixed(i *issuertest.Issuer) map[string]any {
	return map[string]any{"keys": []any{
		map[string]any{"kty": "EC", "crv": "P-256", "kid": "curve", "x": "AA", "y": "AA"},
		map[string]any{},
		issuertest.JWK(i.Key()),
		map[string]any{"kty": "oct", "kid": i.Key().ID, "k": "AA"},
	}}
}
