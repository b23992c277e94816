package authn

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// OIDCConfig configures an OIDC. Issuers and Audiences are required.
type OIDCConfig struct {
	// Issuers are the URLs of identity providers, exactly as their tokens have them in iss: https,
	// or http on loopback for development.
	Issuers []string
	// Audiences are the accepted values of aud. One audience of a token must be exactly one of
	// these.
	Audiences []string
	// EmailIssuers are the issuers whose verified e-mails name principals. Nil means the only
	// issuer or, if there are several, none: one issuer could claim to have verified the e-mail of
	// another issuer's user.
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
	*verifier
	emails []string // issuers whose e-mails name principals
}

// NewOIDC returns an OIDC that has asked no issuer yet. The error says which setting is wrong, and
// what to set.
func NewOIDC(c OIDCConfig) (*OIDC, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	var sources []source
	for _, issuer := range c.Issuers {
		sources = append(sources, newSource(issuer, jose.RS256, c.Transport))
	}
	v, err := newVerifier(sources, c.Audiences, c.Now, c.Log)
	if err != nil {
		return nil, err
	}
	o := &OIDC{v, slices.Clone(c.EmailIssuers)}
	if c.EmailIssuers == nil && len(c.Issuers) == 1 {
		o.emails = slices.Clone(c.Issuers)
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

// Authenticate verifies the token in the header Authorization. It asks no issuer itself: if the
// token's key is not known it waits, 5 s at most, until Run has asked.
func (o *OIDC) Authenticate(r *http.Request) (Principal, error) {
	raw, err := bearer(r.Header, authorization)
	if err != nil {
		return Principal{}, err
	}
	c, err := o.read(r.Context(), raw)
	if err != nil {
		return Principal{}, err
	}
	p := Principal{Issuer: c.issuer, Subject: c.subject}
	if slices.Contains(o.emails, c.issuer) {
		p.Email = c.verifiedEmail()
	}
	return p, nil
}
