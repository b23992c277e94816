package authn

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"
)

// OIDCConfig says whose tokens are accepted. Issuers and Audiences are required.
type OIDCConfig struct {
	// Issuers are the URLs of identity providers, exactly as their tokens have them in iss: https,
	// or http on loopback for development.
	Issuers []string
	// Audiences are the accepted values of aud. One audience of a token must be exactly one of
	// these.
	Audiences []string
	// EmailIssuers are the issuers whose verified e-mails name principals. Nil means the issuer if
	// there is one, and none if there are several: each of several could claim to have verified the
	// e-mail of a user of another.
	EmailIssuers []string
	// Transport reads the issuers' documents: http.DefaultTransport if it is nil.
	Transport http.RoundTripper
	// Now is the wall clock: time.Now if it is nil.
	Now func() time.Time
	// Log gets a warning each time that an issuer's keys cannot be read. Nil logs nothing.
	Log *slog.Logger
}

// OIDC verifies tokens against the keys of the configured issuers. Run must be running: without it
// there are no keys, and every caller gets leadership.StoreUnavailable.
type OIDC struct {
	audiences []string
	emails    []string
	rings     map[string]*keyring // by issuer
	seen      *lru.Cache[[sha256.Size]byte, verified]
	now       func() time.Time
	log       *slog.Logger
	verify    func(*jose.JSONWebSignature, *rsa.PublicKey) error
}

// verified is a token with a good signature: its claims, and the key that it was signed with.
// Tokens are remembered by their hash, so that a leader that renews every few seconds costs one RSA
// operation for each of its tokens. Only a verified token is remembered, so that made-up tokens
// cannot push it out.
type verified struct {
	claims claims
	ring   *keyring
	keyID  string
	key    *rsa.PublicKey
}

// maxSeen bounds how many verified tokens are remembered, each of some 500 bytes: enough for a
// fleet of several thousand agents.
const maxSeen = 8192

// NewOIDC returns an OIDC that has asked no issuer yet. The error says which setting is wrong, and
// what to set.
func NewOIDC(c OIDCConfig) (*OIDC, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	seen, err := lru.New[[sha256.Size]byte, verified](maxSeen)
	if err != nil {
		return nil, err
	}
	o := &OIDC{
		audiences: slices.Clone(c.Audiences),
		emails:    slices.Clone(c.EmailIssuers),
		rings:     map[string]*keyring{},
		seen:      seen,
		now:       clock(c.Now),
		log:       cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		verify:    verify,
	}
	if c.EmailIssuers == nil && len(c.Issuers) == 1 {
		o.emails = slices.Clone(c.Issuers)
	}
	for _, issuer := range c.Issuers {
		o.rings[issuer] = newKeyring(issuer, newSource(issuer, c.Transport).read, o.now, o.log)
	}
	return o, nil
}

func (c OIDCConfig) validate() error {
	if len(c.Issuers) == 0 {
		return errors.New("an issuer is missing: set the URL of the identity provider, such as https://accounts.google.com")
	}
	for _, issuer := range c.Issuers {
		if err := validateIssuer(issuer); err != nil {
			return err
		}
	}
	for _, issuer := range c.EmailIssuers {
		if !slices.Contains(c.Issuers, issuer) {
			return fmt.Errorf("%q is to name principals by e-mail, and is none of the issuers: add it to them, or leave it out", issuer)
		}
	}
	return validateAudiences(c.Audiences)
}

// Run keeps the issuers' keys fresh until ctx ends, and then returns nil. It starts by reading all
// of them. An issuer that does not answer is no error: it is asked again.
func (o *OIDC) Run(ctx context.Context) error {
	var rings sync.WaitGroup
	for _, ring := range o.rings {
		rings.Go(func() { ring.run(ctx) })
	}
	rings.Wait()
	return nil
}

// Authenticate verifies the token in the header Authorization. It asks no issuer itself: if the
// token's key is not known it waits, 5 s at most, until Run has asked.
func (o *OIDC) Authenticate(r *http.Request) (Principal, error) {
	raw, err := bearer(r.Header, authorization)
	if err != nil {
		return Principal{}, err
	}
	hash := sha256.Sum256([]byte(raw))
	if v, ok := o.seen.Get(hash); ok {
		if key := v.ring.current(v.keyID); key != nil && key.Equal(v.key) && v.claims.checkTime(o.now()) == nil {
			return o.principal(v.claims), nil
		}
		o.seen.Remove(hash)
	}
	v, err := o.guarded(r.Context(), raw)
	if err != nil {
		return Principal{}, err
	}
	o.seen.Add(hash, v)
	return o.principal(v.claims), nil
}

// guarded is check with a panic as a refusal: verifiers of tokens have had panics that a caller
// could cause. The panic's value is not logged, because it might repeat the token.
func (o *OIDC) guarded(ctx context.Context, raw string) (v verified, err error) {
	defer func() {
		if recover() != nil {
			o.log.Error("identity: panic while checking a token", "stack", string(debug.Stack()))
			v, err = verified{}, refuse("the token cannot be checked; get a new one")
		}
	}()
	return o.check(ctx, raw)
}

// check verifies a token, the cheap checks first.
func (o *OIDC) check(ctx context.Context, raw string) (verified, error) {
	t, err := parse(raw)
	if err != nil {
		return verified{}, err
	}
	ring, ok := o.rings[t.claims.issuer]
	if !ok {
		return verified{}, refuse("the token is from another issuer; get one from %s", o.issuers())
	}
	if err := t.claims.check(o.now(), o.audiences); err != nil {
		return verified{}, err
	}
	signed, err := parseSignature(raw, t.signature)
	if err != nil {
		return verified{}, err
	}
	key, err := ring.key(ctx, t.keyID)
	if err != nil {
		return verified{}, err
	}
	if o.verify(signed, key) != nil {
		return verified{}, errSignature()
	}
	return verified{t.claims, ring, t.keyID, key}, nil
}

// parseSignature reads a token with that signature. RS256 is the only algorithm: the caller does
// not choose how its token is checked. The signature must be written in the one canonical way, so
// that a token cannot be written in two ways; go-jose would accept more.
func parseSignature(raw, signature string) (*jose.JSONWebSignature, error) {
	if signature == cutSignature {
		return nil, refuse("Cloud Run has removed the signature of the token; send the token for Cloud Run in %s, and the token for Regent in %s",
			serverlessAuthorization, authorization)
	}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(signature); err != nil {
		return nil, errSignature()
	}
	signed, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return nil, errSignature()
	}
	return signed, nil
}

func verify(signed *jose.JSONWebSignature, key *rsa.PublicKey) error {
	_, err := signed.Verify(key)
	return err
}

func errSignature() error { return refuse("the signature of the token is wrong; get a new token") }

// issuers lists the accepted issuers.
func (o *OIDC) issuers() string {
	return strings.Join(slices.Sorted(maps.Keys(o.rings)), " or ")
}

func (o *OIDC) principal(c claims) Principal {
	p := Principal{Issuer: c.issuer, Subject: c.subject}
	if slices.Contains(o.emails, c.issuer) {
		p.Email = c.email
	}
	return p
}
