package issuertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// Key is a key of RSA or ECDSA with its name.
type Key struct {
	ID      string
	Private crypto.Signer
}

// keyed is the common part of an Issuer and a Proxy: signing keys, their publication, and failures.
type keyed struct {
	names  string // of keys, for Sprintf with their number
	newKey func() crypto.Signer
	answer func(w http.ResponseWriter, r *http.Request, keys map[string]any)

	mu     sync.Mutex // guards the fields below
	keys   []Key      // published; the last one signs
	made   int        // number of keys so far
	broken http.Handler
	asked  map[string]int // by path
}

// Key returns the present signing key.
func (i *keyed) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Rotate generates a new signing key, and still publishes the last keep of the old ones.
func (i *keyed) Rotate(keep int) { i.show(i.newKey(), keep) }

func (i *keyed) show(key crypto.Signer, keep int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	old := i.keys[max(0, len(i.keys)-keep):]
	i.keys = append(slices.Clone(old), Key{fmt.Sprintf(i.names, i.made), key})
}

// Break makes h answer every request; nil ends that. A handler that panics with
// http.ErrAbortHandler breaks the connection.
func (i *keyed) Break(h http.Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.broken = h
}

// Asked returns the number of requests for a path, also while the issuer was broken.
func (i *keyed) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// ServeHTTP publishes the keys.
func (i *keyed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	broken, keys := i.broken, i.keys
	i.mu.Unlock()
	if broken != nil {
		broken.ServeHTTP(w, r)
		return
	}
	i.answer(w, r, KeySet(keys...))
}

// Transport reaches the issuer without a network, whatever its URL says.
func (i *keyed) Transport() http.RoundTripper { return transport{i} }

type transport struct{ http.Handler }

// RoundTrip calls the handler.
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

// KeySet returns the document that publishes the keys.
func KeySet(keys ...Key) map[string]any {
	set := []map[string]any{}
	for _, k := range keys {
		set = append(set, JWK(k))
	}
	return map[string]any{"keys": set}
}

// JWK returns a key as a member of a KeySet.
func JWK(k Key) map[string]any {
	switch public := k.Private.Public().(type) {
	case *rsa.PublicKey:
		return map[string]any{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": k.ID,
			"n": Encode(public.N.Bytes()), "e": Encode(big.NewInt(int64(public.E)).Bytes()),
		}
	case *ecdsa.PublicKey:
		point := must(public.Bytes())
		return map[string]any{
			"kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": k.ID,
			"x": Encode(point[1:33]), "y": Encode(point[33:]),
		}
	}
	panic("a key of neither RSA nor ECDSA")
}

// Sign returns a token with these claims, signed with the present key.
func (i *keyed) Sign(claims any) string { return SignWith(i.Key(), claims) }

// SignWith returns a token with these claims, signed with the key.
func SignWith(k Key, claims any) string {
	return SignRaw(k, JSON(map[string]any{"alg": JWK(k)["alg"], "typ": "JWT", "kid": k.ID}), JSON(claims))
}

// SignRaw signs a header and claims unchanged, valid or not.
func SignRaw(k Key, header, claims string) string {
	signed := Encode([]byte(header)) + "." + Encode([]byte(claims))
	return signed + "." + Encode(Signature(k, signed))
}

// Signature returns a signature by RS256 or ES256.
func Signature(k Key, signed string) []byte {
	hashed := sha256.Sum256([]byte(signed))
	if private, is := k.Private.(*ecdsa.PrivateKey); is { // whose Sign writes DER
		r, s, err := ecdsa.Sign(rand.Reader, private, hashed[:])
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	return must(k.Private.Sign(nil, hashed[:], crypto.SHA256))
}
