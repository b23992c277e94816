package authn

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// PlatformConfig configures a Platform. Only Service and Audiences are required.
type PlatformConfig struct {
	// Service is the name of the Cloud Run service, from the variable K_SERVICE.
	Service string
	// Audiences are the accepted values of aud: the service's URL, and its custom audiences. At
	// least one.
	Audiences []string
	// URL is the service's own URL, for the probe whether the platform admits callers without a
	// token. By default it is the URL that Cloud Run gives to each service.
	URL string
	// Required refuses every call until a probe has found that the platform refuses callers without
	// a token. Without it, calls are also answered while no probe gets an answer.
	Required bool
	// MetadataHost is the metadata server, as the variable GCE_METADATA_HOST names it.
	MetadataHost string
	// Transport reaches the metadata server and the URL: http.DefaultTransport if it is nil.
	Transport http.RoundTripper
	// Now is the wall clock: time.Now if it is nil.
	Now func() time.Time
	// Log gets a line when the latch closes and opens. Nil logs nothing.
	Log *slog.Logger
}

// Platform accepts the tokens that Cloud Run's IAM has checked.
//
// Cloud Run checks the signature of a caller's token, replaces it by a marker, and passes on the
// rest, so that it cannot be checked again. Platform refuses what cannot have come that way:
//
//   - A token with a signature is refused, even a good one. With IAM on, Cloud Run always removes
//     the signature, so this token came another way, and a process that accepts both would let the
//     caller choose the weaker check.
//   - If both headers are there, X-Serverless-Authorization counts, because Cloud Run checks that
//     one. It counts even if it is malformed, because Google does not document what Cloud Run does
//     then.
//   - If the marker is in both headers, the caller wrote one of them, and the request is refused.
//   - A request with an assertion of Identity-Aware Proxy is refused: its token is of the proxy's
//     own account. Put an IAP in front.
//
// A caller that reaches a service whose IAM is off (it lets in allUsers, or checks no invoker) can
// write the marker itself. So there is a latch, which closes on proof that the platform does not do
// its part. Then every call is refused with leadership.StoreUnavailable, until a probe is refused
// by the platform. The proofs are:
//
//   - A probe without a token comes through (Run). Until the first probe has a verdict, after 10 s
//     at most, every call is refused, too: a forged token must not count meanwhile.
//   - A Google token arrives with its signature, as the only token of its call. With IAM on no
//     caller can cause this: Cloud Run cuts the token that it checks, and an intact one passes only
//     beside that.
//
// A service that cannot reach its own URL, because of its ingress, has only the second proof: then
// the operator must check the invokers, give a URL that the service can reach, or require a probe.
type Platform struct {
	service      string
	audiences    []string
	url          string
	required     bool
	metadataHost string
	client       *http.Client
	retry        time.Duration // between two questions to the metadata server
	now          func() time.Time
	latch        latch
}

// NewPlatform returns a Platform. The error says which setting is wrong, and what to set. Call
// Start and Run.
func NewPlatform(c PlatformConfig) (*Platform, error) {
	if c.Service == "" {
		return nil, errors.New("the platform checks tokens only on Cloud Run, and K_SERVICE is not set: deploy there, or verify tokens with oidc")
	}
	if err := validateAudiences(c.Audiences); err != nil {
		return nil, err
	}
	if c.URL != "" {
		if err := validateURL(c.URL); err != nil {
			return nil, err
		}
	}
	return &Platform{
		service:      c.Service,
		audiences:    slices.Clone(c.Audiences),
		url:          strings.TrimSuffix(c.URL, "/"),
		required:     c.Required,
		metadataHost: cmp.Or(c.MetadataHost, metadataHost),
		client: &http.Client{
			Transport:     c.Transport,
			CheckRedirect: noRedirect,
		},
		retry: time.Second,
		now:   clock(c.Now),
		latch: latch{log: cmp.Or(c.Log, slog.New(slog.DiscardHandler))},
	}, nil
}

// cutSignature is the marker by which Cloud Run replaces a signature that it has checked.
const cutSignature = "SIGNATURE_REMOVED_BY_GOOGLE"

// google lists the two names of Google as an issuer.
var google = []string{"https://accounts.google.com", "accounts.google.com"}

// Authenticate returns the caller that Cloud Run admitted. A Principal of Platform always has an
// e-mail.
func (p *Platform) Authenticate(r *http.Request) (Principal, error) {
	if err := p.latch.refuse(); err != nil {
		return Principal{}, err
	}
	if len(r.Header.Values(iapAssertion)) > 0 {
		// Cloud Run has checked the token of the proxy's own account, which does not identify the
		// person.
		return Principal{}, refuse("the call came through Identity-Aware Proxy, whose assertions this server was not told to accept; its operator sets the audience of Identity-Aware Proxy")
	}
	header := authorization
	if len(r.Header.Values(serverlessAuthorization)) > 0 {
		header = serverlessAuthorization
	}
	raw, err := bearer(r.Header, header)
	if err != nil {
		return Principal{}, err
	}
	t, err := parse(raw, jose.RS256)
	if err != nil {
		return Principal{}, err
	}
	if t.signature != cutSignature {
		if alone(r.Header) && slices.Contains(google, t.claims.issuer) {
			p.latch.close("a token arrived with its signature, which Cloud Run removes from every token that it checks")
		}
		return Principal{}, refuse("the token was not checked by the platform; call the service by its public URL")
	}
	if header == serverlessAuthorization && slices.ContainsFunc(r.Header.Values(authorization), isCut) {
		return Principal{}, refuse("%s and %s both have a token without a signature, and only one was checked; send one", authorization, serverlessAuthorization)
	}
	return p.principal(t.claims)
}

// alone reports whether the request has exactly one authorization, in the header that the platform
// checks. Google does not fully document how Cloud Run treats several.
func alone(h http.Header) bool {
	return len(h.Values(authorization))+len(h.Values(serverlessAuthorization)) == 1
}

// isCut reports whether a header's value contains the marker of a checked token.
func isCut(value string) bool { return strings.Contains(value, cutSignature) }

func (p *Platform) principal(c claims) (Principal, error) {
	if !slices.Contains(google, c.issuer) {
		return Principal{}, refuse("the issuer of the token must be %s", google[0])
	}
	if err := c.check(p.now(), leeway, p.audiences); err != nil {
		return Principal{}, err
	}
	email := c.verifiedEmail()
	if email == "" {
		return Principal{}, refuse("the token has no verified e-mail; ask the metadata server for format=full, or gcloud for --include-email")
	}
	return Principal{Issuer: google[0], Subject: c.subject, Email: email}, nil
}

// validateAudiences requires an audience: without one a token for any service would be accepted.
func validateAudiences(audiences []string) error {
	if len(audiences) == 0 || slices.Contains(audiences, "") {
		return errors.New("an audience is missing: set the one that callers ask their tokens for, such as the service's URL")
	}
	return nil
}

// clock returns now, or time.Now if it is nil.
func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
