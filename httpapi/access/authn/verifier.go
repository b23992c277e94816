package authn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"
)

// verifier verifies tokens against the keys of issuers. run must be running: without it there are
// no keys, and every caller gets leadership.StoreUnavailable.
type verifier struct {
	by        jose.SignatureAlgorithm // the only one
	apart     time.Duration           // how far the clocks of an issuer and the server may be apart
	audiences []string
	rings     map[string]*keyring // by issuer
	seen      *lru.Cache[[sha256.Size]byte, verified]
	now       func() time.Time
	log       *slog.Logger
	verify    func(*jose.JSONWebSignature, publicKey) error
}

// verified is a token with a good signature: its claims, and the key that it was signed with.
// Tokens are remembered by their hash, so that a leader that renews every few seconds costs one
// verification for each of its tokens. Only a verified token is remembered, so that made-up tokens
// cannot push it out.
type verified struct {
	claims claims
	ring   *keyring
	keyID  string
	key    publicKey
}

// maxSeen bounds how many verified tokens are remembered, each of some 500 bytes: enough for a
// fleet of several thousand agents.
const maxSeen = 8192

// newVerifier returns a verifier that has asked no source yet.
func newVerifier(sources []source, audiences []string, now func() time.Time, log *slog.Logger) (*verifier, error) {
	seen, err := lru.New[[sha256.Size]byte, verified](maxSeen)
	if err != nil {
		return nil, err
	}
	v := &verifier{
		by:        sources[0].by,
		apart:     leeway,
		audiences: slices.Clone(audiences),
		rings:     map[string]*keyring{},
		seen:      seen,
		now:       clock(now),
		log:       cmp.Or(log, slog.New(slog.DiscardHandler)),
		verify:    verify,
	}
	for _, s := range sources {
		v.rings[s.issuer] = newKeyring(s.issuer, s.read, v.now, v.log)
	}
	return v, nil
}

// Run keeps the issuers' keys fresh until ctx ends, and then returns nil. It starts by reading all
// of them. An issuer that does not answer is no error: it is asked again.
func (v *verifier) Run(ctx context.Context) error {
	var rings sync.WaitGroup
	for _, ring := range v.rings {
		rings.Go(func() { ring.run(ctx) })
	}
	rings.Wait()
	return nil
}

// read returns the claims of a valid token. It makes no request to an issuer: if the token's key is
// unknown it waits, 5 s at most, until Run has read the keys.
func (v *verifier) read(ctx context.Context, raw string) (claims, error) {
	hash := sha256.Sum256([]byte(raw))
	if t, ok := v.seen.Get(hash); ok {
		if key := t.ring.current(t.keyID); key != nil && key.Equal(t.key) && t.claims.checkTime(v.now(), v.apart) == nil {
			return t.claims, nil
		}
		v.seen.Remove(hash)
	}
	t, err := v.guarded(ctx, raw)
	if err != nil {
		return claims{}, err
	}
	v.seen.Add(hash, t)
	return t.claims, nil
}

// guarded is check, but refuses the token if check panics: token libraries have had panics that a
// caller could cause. The panic's value is not logged, because it might contain the token.
func (v *verifier) guarded(ctx context.Context, raw string) (t verified, err error) {
	defer func() {
		if recover() != nil {
			v.log.Error("identity: panic while checking a token", "stack", string(debug.Stack()))
			t, err = verified{}, refuse("the token cannot be checked; get a new one")
		}
	}()
	return v.check(ctx, raw)
}

// check verifies a token, the cheap checks first.
func (v *verifier) check(ctx context.Context, raw string) (verified, error) {
	t, err := parse(raw, v.by)
	if err != nil {
		return verified{}, err
	}
	ring, ok := v.rings[t.claims.issuer]
	if !ok {
		return verified{}, refuse("the token is from another issuer; get one from %s", v.issuers())
	}
	if err := t.claims.check(v.now(), v.apart, v.audiences); err != nil {
		return verified{}, err
	}
	signed, err := parseSignature(raw, t.signature, v.by)
	if err != nil {
		return verified{}, err
	}
	key, err := ring.key(ctx, t.keyID)
	if err != nil {
		return verified{}, err
	}
	if v.verify(signed, key) != nil {
		return verified{}, errSignature()
	}
	return verified{t.claims, ring, t.keyID, key}, nil
}

// parseSignature reads a token with that signature. There is one algorithm: the caller must not
// choose how its token is checked. The signature must be in canonical base64url; go-jose would
// accept other forms.
func parseSignature(raw, signature string, by jose.SignatureAlgorithm) (*jose.JSONWebSignature, error) {
	if signature == cutSignature {
		return nil, refuse("Cloud Run has removed the signature of the token; send the token for Cloud Run in %s, and the token for Regent in %s",
			serverlessAuthorization, authorization)
	}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(signature); err != nil {
		return nil, errSignature()
	}
	signed, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{by})
	if err != nil {
		return nil, errSignature()
	}
	return signed, nil
}

func verify(signed *jose.JSONWebSignature, key publicKey) error {
	_, err := signed.Verify(key)
	return err
}

func errSignature() error { return refuse("the signature of the token is wrong; get a new token") }

func (v *verifier) issuers() string {
	return strings.Join(slices.Sorted(maps.Keys(v.rings)), " or ")
}
