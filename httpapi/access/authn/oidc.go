package authn

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// OIDCConfig says whose tokens are taken. Issuers and Audiences are required.
type OIDCConfig struct {
	// Issuers are the URLs of identity providers, exactly as their tokens have them in iss: https, or http on loopback for development.
	Issuers []string
	// Audiences are whom tokens must be for. One of a token's must be exactly one of these.
	Audiences []string
	// EmailIssuers are those of the issuers whose verified e-mails name principals. Nil means the issuer if there is but one, and none if there
	// are several: each of these could claim to have verified the e-mail of anybody whom another one vouches for.
	EmailIssuers []string
	// Transport reads the issuers' documents: http.DefaultTransport if it is nil.
	Transport http.RoundTripper
	// Now is the wall clock: time.Now if it is nil.
	Now func() time.Time
	// Log gets a Warn for each look at an issuer that failed. Nil logs nothing.
	Log *slog.Logger
}

// OIDC verifies tokens against the keys of the configured issuers. It needs Run to be running: without it there are no keys, and all
// callers hear that they cannot be had.
type OIDC struct {
	audiences []string
	emails    []string
	rings     map[string]*keyring // by issuer
	seen      *seen
	now       func() time.Time
	log       *slog.Logger
	verify    func(key *rsa.PublicKey, hash crypto.Hash, hashed, signature []byte) error
}

// maxSeen bounds how many verified tokens are remembered: each has its 500 bytes or so, and a fleet of some thousands finds room.
const maxSeen = 8192

// NewOIDC returns an OIDC that has asked no issuer yet. The error says in a sentence which setting is wrong, and what to set.
func NewOIDC(c OIDCConfig) (*OIDC, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	o := &OIDC{
		audiences: slices.Clone(c.Audiences),
		emails:    slices.Clone(c.EmailIssuers),
		rings:     map[string]*keyring{},
		seen:      newSeen(maxSeen),
		now:       clock(c.Now),
		log:       cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		verify:    rsa.VerifyPKCS1v15,
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
			return fmt.Errorf("e-mails of %q are to be believed, which is none of the issuers: add it to them, or leave it out", issuer)
		}
	}
	return validateAudiences(c.Audiences)
}

// Run keeps the issuers' keys fresh until ctx ends, and then returns nil. It begins by reading all of them; that an issuer does not answer is
// no error, for it may later.
func (o *OIDC) Run(ctx context.Context) error {
	var rings sync.WaitGroup
	for _, ring := range o.rings {
		rings.Go(func() { ring.run(ctx) })
	}
	rings.Wait()
	return nil
}

// Authenticate verifies the token in the header Authorization. It asks no issuer itself; if the token's key is not known it waits for Run to
// ask, 5 s at most.
func (o *OIDC) Authenticate(r *http.Request) (Principal, error) {
	raw, err := bearer(r.Header, authorization)
	if err != nil {
		return Principal{}, err
	}
	hash := sha256.Sum256([]byte(raw))
	if v, ok := o.seen.get(hash); ok {
		if key := v.ring.current(v.keyID); key != nil && key.Equal(v.key) && v.claims.checkTime(o.now()) == nil {
			return o.principal(v.claims), nil
		}
		o.seen.drop(hash)
	}
	v, err := o.guarded(r.Context(), raw)
	if err != nil {
		return Principal{}, err
	}
	o.seen.put(hash, v)
	return o.principal(v.claims), nil
}

// guarded is check with a panic as a refusal: verifiers of tokens have had panics that a caller could cause. Nothing of the value is logged, for
// it might repeat the token.
func (o *OIDC) guarded(ctx context.Context, raw string) (v verified, err error) {
	defer func() {
		if recover() != nil {
			o.log.Error("identity: a panic while a token was checked", "stack", string(debug.Stack()))
			v, err = verified{}, refuse("the token cannot be checked; get a new one")
		}
	}()
	return o.check(ctx, raw)
}

// check verifies a token, what is cheap first.
func (o *OIDC) check(ctx context.Context, raw string) (verified, error) {
	t, err := parse(raw)
	if err != nil {
		return verified{}, err
	}
	ring, ok := o.rings[t.claims.issuer]
	if !ok {
		return verified{}, refuse("the token is of another issuer than %s; get one there", o.issuers())
	}
	if err := t.claims.check(o.now(), o.audiences); err != nil {
		return verified{}, err
	}
	signature, err := decodeSignature(t.signature)
	if err != nil {
		return verified{}, err
	}
	key, err := ring.key(ctx, t.keyID)
	if err != nil {
		return verified{}, err
	}
	hashed := sha256.Sum256([]byte(t.signed))
	if o.verify(key, crypto.SHA256, hashed[:], signature) != nil {
		return verified{}, errSignature()
	}
	return verified{t.claims, ring, t.keyID, key}, nil
}

func decodeSignature(part string) ([]byte, error) {
	if part == cutSignature {
		return nil, refuse("Cloud Run has taken the signature off the token; send the one that is for Cloud Run in %s, and another in %s", serverlessAuthorization, authorization)
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return nil, errSignature()
	}
	return signature, nil
}

func errSignature() error { return refuse("the signature of the token is wrong; get a new one") }

// issuers are those whose tokens are taken, for a sentence.
func (o *OIDC) issuers() string {
	names := make([]string, 0, len(o.rings))
	for name := range o.rings {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

func (o *OIDC) principal(c claims) Principal {
	p := Principal{Issuer: c.issuer, Subject: c.subject}
	if slices.Contains(o.emails, c.issuer) {
		p.Email = c.email
	}
	return p
}
