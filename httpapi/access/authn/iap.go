package authn

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"regent/leadership"
	"regent/leadership/wire"
)

// IAPConfig configures an IAP. Audiences and Other are required.
type IAPConfig struct {
	// Audiences are the accepted values of aud, exactly as Identity-Aware Proxy writes them:
	// /projects/NUMBER/locations/REGION/services/SERVICE for the proxy of Cloud Run itself, and
	// /projects/NUMBER/global/backendServices/ID for that of a load balancer.
	Audiences []string
	// Other authenticates the requests that did not come through Identity-Aware Proxy.
	Other Authenticator
	// Emails says that the e-mail of a Google account names a principal. Leave it false if Other
	// lets an issuer that is not Google name principals by e-mail: each could claim the e-mail of a
	// user of the other.
	Emails bool
	// Transport reads Google's keys: http.DefaultTransport if it is nil.
	Transport http.RoundTripper
	// Now is the wall clock: time.Now if it is nil.
	Now func() time.Time
	// Log gets a warning each time that the keys cannot be read. Nil logs nothing.
	Log *slog.Logger
}

// IAP authenticates people whose browsers come through Google's Identity-Aware Proxy, which signs
// them in and adds an assertion to each request: a token of ten minutes, signed with ES256, in a
// header of its own. Requests without that header are left to another Authenticator.
//
// A request with the header is authenticated by it alone, however malformed it is, and whatever
// other token the request has. The other token is not verified: behind the proxy it may be one that
// was meant for the proxy, or be that of the proxy's own account.
//
// Run must be running: without it there are no keys, and every caller with an assertion gets
// leadership.StoreUnavailable.
type IAP struct {
	*verifier
	other  Authenticator
	emails bool
}

const (
	// iapAssertion is the header of an assertion. Identity-Aware Proxy removes it from a browser's
	// request. Its unsigned companions, X-Goog-Authenticated-User-…, are ignored.
	iapAssertion = "X-Goog-Iap-Jwt-Assertion"
	iapIssuer    = "https://cloud.google.com/iap"
	iapKeys      = "https://www.gstatic.com/iap/verify/public_key-jwk"
	// iapApart is the clock difference that Google says to allow.
	iapApart = 30 * time.Second
	// iapGoogle begins the subjects of Google accounts. Other subjects are of other identity
	// providers of the proxy.
	iapGoogle = "accounts.google.com:"
)

// NewIAP returns an IAP that has not asked for keys yet. The error says which setting is wrong, and
// what to set.
func NewIAP(c IAPConfig) (*IAP, error) {
	if c.Other == nil {
		return nil, errors.New("an Authenticator of other requests is missing")
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	keys := newSource(iapIssuer, jose.ES256, c.Transport)
	keys.keysAt = iapKeys
	v, err := newVerifier([]source{keys}, c.Audiences, c.Now, c.Log)
	if err != nil {
		return nil, err
	}
	v.apart = iapApart
	return &IAP{v, c.Other, c.Emails}, nil
}

// iapAudience is the form of all audiences of Identity-Aware Proxy.
var iapAudience = regexp.MustCompile(`^/projects/[0-9]+/[!-+\--~]+$`)

func (c IAPConfig) validate() error {
	if len(c.Audiences) == 0 {
		return errors.New("an audience of Identity-Aware Proxy is missing: set /projects/NUMBER/locations/REGION/services/SERVICE")
	}
	for _, a := range c.Audiences {
		if !iapAudience.MatchString(a) {
			return fmt.Errorf("%q is not an audience of Identity-Aware Proxy: write /projects/NUMBER/locations/REGION/services/SERVICE for Cloud Run's own, or /projects/NUMBER/global/backendServices/ID for a load balancer's, with the number of the project and not its name", a)
		}
	}
	return nil
}

// Authenticate verifies the assertion. Without one it asks the other Authenticator.
func (i *IAP) Authenticate(r *http.Request) (Principal, error) {
	values := r.Header.Values(iapAssertion)
	switch {
	case len(values) == 0:
		return i.other.Authenticate(r)
	case len(values) > 1:
		return Principal{}, refuse("the header %s is there more than once, and Identity-Aware Proxy sends one", iapAssertion)
	case len(values[0]) > maxToken:
		return Principal{}, refuse("the header %s has more than %d bytes, and Identity-Aware Proxy sends fewer", iapAssertion, maxToken)
	}
	c, err := i.read(r.Context(), values[0])
	if err == nil && c.issuedAt.IsZero() {
		err = refuse("the token does not say when it was issued")
	}
	if err != nil {
		return Principal{}, ofAssertion(err)
	}
	return i.principal(c), nil
}

// ofAssertion adds to err that the assertion was refused, and not the token.
func ofAssertion(err error) error {
	if e := (*leadership.Error)(nil); errors.As(err, &e) && e.Code == wire.Unauthenticated {
		refused := *e
		refused.Detail = "the assertion of Identity-Aware Proxy is refused: " + e.Detail
		return &refused
	}
	return err
}

// principal returns the caller. A Google account is the same principal as with an ID token of
// Google's.
func (i *IAP) principal(c claims) Principal {
	account, ok := strings.CutPrefix(c.subject, iapGoogle)
	if !ok || account == "" {
		return Principal{Issuer: iapIssuer, Subject: c.subject}
	}
	p := Principal{Issuer: google[0], Subject: account}
	if i.emails {
		p.Email = c.email
	}
	return p
}
