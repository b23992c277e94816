package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"regent/leadership/wire"
)

const (
	readTimeout = 5 * time.Second // for both documents
	maxDocument = 256 << 10       // bytes
	maxKeys     = 64
	maxURL      = 2 << 10 // bytes
	minLasts    = 5 * time.Minute
	maxLasts    = 24 * time.Hour
)

// source reads the public keys of an issuer, with little trust: bodies and numbers are limited,
// redirects are not followed, and only an issuer on loopback may use http.
type source struct {
	issuer string
	keysAt string                  // "" if the issuer says where (OpenID Connect Discovery 1.0 §4)
	by     jose.SignatureAlgorithm // that the keys are for
	client *http.Client
}

func newSource(issuer string, by jose.SignatureAlgorithm, transport http.RoundTripper) source {
	return source{issuer: issuer, by: by, client: &http.Client{Transport: transport, CheckRedirect: noRedirect}}
}

// validateIssuer refuses an issuer whose keys cannot be read, or that cannot be in a Principal.
func validateIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || !speakable(u, true) || len(issuer) > maxURL || !printable(issuer) || strings.ContainsAny(issuer, " |?#") {
		return fmt.Errorf("%q is not an issuer: set its https URL, exactly as its tokens have it in iss", issuer)
	}
	return nil
}

// speakable reports whether a URL may be read: https, or http on loopback.
func speakable(u *url.URL, loopback bool) bool {
	if u.Host == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s source) read(ctx context.Context) (keys, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at := s.keysAt
	if at == "" {
		var err error
		if at, err = s.discover(ctx); err != nil {
			return keys{}, fmt.Errorf("discovery document: %w", err)
		}
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	header, err := s.get(ctx, at, &set)
	if err != nil {
		return keys{}, fmt.Errorf("key set: %w", err)
	}
	byID, err := usable(set.Keys, s.by)
	return keys{byID, lasts(header)}, err
}

func (s source) discover(ctx context.Context) (string, error) {
	var doc struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if _, err := s.get(ctx, strings.TrimSuffix(s.issuer, "/")+"/.well-known/openid-configuration", &doc); err != nil {
		return "", err
	}
	u, err := url.Parse(doc.JWKSURI)
	switch {
	case doc.Issuer != s.issuer:
		return "", fmt.Errorf("it is of the issuer %s", wire.Quote(doc.Issuer))
	case err != nil || len(doc.JWKSURI) > maxURL || !speakable(u, strings.HasPrefix(s.issuer, "http:")):
		return "", fmt.Errorf("its jwks_uri must be an https URL, not %s", wire.Quote(doc.JWKSURI))
	}
	return doc.JWKSURI, nil
}

func (s source) get(ctx context.Context, from string, into any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxDocument:
		return nil, fmt.Errorf("it has more than the %d bytes that are read", maxDocument)
	}
	return response.Header, json.Unmarshal(body, into)
}

// jwk is a key of a set (RFC 7517), as far as RS256 and ES256 need it.
type jwk struct {
	Kind      string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
}

// usable returns the keys of the set that fit the algorithm. A set without any is an error, so that
// it does not replace a good set.
//
// The keys are not read by go-jose: it fails on a whole set for one malformed key, and refuses RSA
// keys of more than 4096 bits.
func usable(set []jwk, by jose.SignatureAlgorithm) (map[string]publicKey, error) {
	if len(set) > maxKeys {
		return nil, fmt.Errorf("key set: it has %d keys, and %d are the most", len(set), maxKeys)
	}
	kind, read := "RSA key of 2048 to 8192 bits", jwk.rsa
	if by == jose.ES256 {
		kind, read = "P-256 key", jwk.p256
	}
	byID := map[string]publicKey{}
	for _, j := range set {
		if j.isFor(by) {
			if key := read(j); key != nil {
				byID[j.ID] = key
			}
		}
	}
	if len(byID) == 0 {
		return nil, fmt.Errorf("key set: it has no %s with a kid", kind)
	}
	return byID, nil
}

// isFor reports whether the key's type, use and algorithm fit; its numbers may still be bad.
func (j jwk) isFor(by jose.SignatureAlgorithm) bool {
	return (j.Use == "" || j.Use == "sig") && (j.Algorithm == "" || j.Algorithm == string(by)) && j.ID != "" && len(j.ID) <= maxKeyID
}

// rsa returns nil for a key that is too weak, or so large that checking a signature with it would
// cost too much.
func (j jwk) rsa() publicKey {
	const minBits, maxBits, minExponent, maxExponent = 2048, 8192, 65537, 1<<31 - 1
	if j.Kind != "RSA" {
		return nil
	}
	n, badN := integer(j.Modulus)
	e, badE := integer(j.Exponent)
	if badN != nil || badE != nil || n.BitLen() < minBits || n.BitLen() > maxBits || n.Bit(0) == 0 {
		return nil
	}
	if !e.IsInt64() || e.Int64() < minExponent || e.Int64() > maxExponent || e.Bit(0) == 0 {
		return nil
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}
}

// p256 returns nil unless the numbers are a point of the curve P-256, each in 32 bytes.
func (j jwk) p256() publicKey {
	x, badX := base64.RawURLEncoding.DecodeString(j.X)
	y, badY := base64.RawURLEncoding.DecodeString(j.Y)
	if j.Kind != "EC" || j.Curve != "P-256" || badX != nil || badY != nil || len(x) != 32 || len(y) != 32 {
		return nil
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	if err != nil {
		return nil
	}
	return key
}

func integer(s string) (*big.Int, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return new(big.Int).SetBytes(b), err
}

// lasts reads how long a document may be kept (Cache-Control's max-age less Age), within bounds.
func lasts(h http.Header) time.Duration {
	var age time.Duration
	for directive := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		if value, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(directive)), "max-age="); ok {
			age = seconds(value)
		}
	}
	return min(max(age-seconds(h.Get("Age")), minLasts), maxLasts)
}

// seconds reads a number of seconds, at most a year.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(n, 365*24*60*60)) * time.Second
}
