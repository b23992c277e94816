package authn

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// PlatformConfig says where the process runs. Now may be nil.
type PlatformConfig struct {
	// Service is the name of the Cloud Run service, from the variable K_SERVICE that Cloud Run sets: the proof that there is one.
	Service string
	// Audiences are whom tokens must be for: the service's URL, and its custom audiences. At least one.
	Audiences []string
	// Now is the wall clock: time.Now if it is nil.
	Now func() time.Time
}

// Platform believes the tokens that Cloud Run's IAM has checked.
//
// Cloud Run checks the signature of a caller's token, replaces it by a marker, and hands on the rest, so that nobody can check it again. What
// Platform still does is to refuse whatever cannot have come that way. It cannot see whether IAM is switched on: a service that
// lets in allUsers checks nothing, and then everybody may write the marker. Whoever chooses Platform has to see to it that there is no
// such binding.
//
//   - A token with a signature is refused, even a good one. With IAM on Cloud Run always cuts it, so this token went another way, and a
//     process that takes both would let the caller choose the weaker check.
//   - If both headers are there, X-Serverless-Authorization counts, for it is the one that Cloud Run checks then. It is never
//     passed over, however malformed: what Cloud Run makes of such a one is not written anywhere.
//   - If the marker is in both, one of them was written by the caller, and the request is refused whichever it was.
type Platform struct {
	audiences []string
	now       func() time.Time
}

// NewPlatform returns a Platform. The error says in a sentence which setting is wrong, and what to set.
func NewPlatform(c PlatformConfig) (*Platform, error) {
	if c.Service == "" {
		return nil, errors.New("only on Cloud Run are tokens checked by the platform, and K_SERVICE is not set: deploy there, or have tokens verified here")
	}
	if err := validateAudiences(c.Audiences); err != nil {
		return nil, err
	}
	return &Platform{audiences: slices.Clone(c.Audiences), now: clock(c.Now)}, nil
}

// cutSignature is what Cloud Run puts in the place of a signature that it has checked.
const cutSignature = "SIGNATURE_REMOVED_BY_GOOGLE"

// google are the two ways in which Google names itself as an issuer.
var google = []string{"https://accounts.google.com", "accounts.google.com"}

// Authenticate returns the caller that Cloud Run has let in. A Principal of Platform always has an e-mail.
func (p *Platform) Authenticate(r *http.Request) (Principal, error) {
	header := authorization
	if len(r.Header.Values(serverlessAuthorization)) > 0 {
		header = serverlessAuthorization
		if slices.ContainsFunc(r.Header.Values(authorization), isCut) {
			return Principal{}, refuse("%s and %s both have a token without a signature, and only one was checked; send one", authorization, serverlessAuthorization)
		}
	}
	raw, err := bearer(r.Header, header)
	if err != nil {
		return Principal{}, err
	}
	t, err := parse(raw)
	if err != nil {
		return Principal{}, err
	}
	if t.signature != cutSignature {
		return Principal{}, refuse("the token was not checked by the platform; call the service by its public URL")
	}
	return p.principal(t.claims)
}

// isCut says whether there is anything in a header's value that may pass for a token that was checked.
func isCut(value string) bool { return strings.Contains(value, cutSignature) }

func (p *Platform) principal(c claims) (Principal, error) {
	if !slices.Contains(google, c.issuer) {
		return Principal{}, refuse("the issuer of the token must be %s", google[0])
	}
	if err := c.check(p.now(), p.audiences); err != nil {
		return Principal{}, err
	}
	if c.email == "" {
		return Principal{}, refuse("the token has no verified e-mail; ask the metadata server for format=full, or gcloud for --include-email")
	}
	return Principal{Issuer: google[0], Subject: c.subject, Email: c.email}, nil
}

// validateAudiences refuses to begin without knowing whom tokens are for: then a token for any service would do.
func validateAudiences(audiences []string) error {
	if len(audiences) == 0 || slices.Contains(audiences, "") {
		return errors.New("an audience is missing: set the one that callers ask their tokens for, such as the service's URL")
	}
	return nil
}

// clock is now, or the process's.
func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
