package authn

import (
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// token is a well-formed bearer token that is not verified yet.
type token struct {
	keyID     string
	claims    claims
	signature string // in base64url, as it was sent
}

type claims struct {
	issuer    string
	subject   string
	email     string // "" if there is none that can name a principal
	verified  bool   // the issuer says that it has verified the email
	audiences []string
	expires   time.Time
	notBefore time.Time // zero if the token does not say
	issuedAt  time.Time // zero if the token does not say
}

// parse reads a token that says it is signed by the algorithm. Its errors are for the caller.
func parse(raw string, by jose.SignatureAlgorithm) (token, error) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 || slices.Contains(parts, "") || strings.ContainsFunc(raw, foreign) {
		return token{}, refuse("this is not an ID token: an ID token has three parts of base64url without padding, with dots between them")
	}
	keyID, err := parseHeader(parts[0], by)
	if err != nil {
		return token{}, err
	}
	c, err := parseClaims(parts[1])
	if err != nil {
		return token{}, err
	}
	return token{keyID, c, parts[2]}, nil
}

// foreign reports whether the character cannot be in a token. encoding/base64 skips line breaks,
// which would allow two forms of one token.
func foreign(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	digit := '0' <= r && r <= '9'
	return !letter && !digit && r != '-' && r != '_' && r != '.'
}

// maxKeyID bounds the name of a key, in bytes.
const maxKeyID = 128

// dangerous lists the header members that contain a key, refer to one, or change the meaning of the
// rest. No issuer of ID tokens needs them.
var dangerous = []string{"jku", "jwk", "x5u", "x5c", "crit", "b64", "zip", "enc"}

// parseHeader returns the name of the key. It refuses a token with any other algorithm before a key
// is looked up: the caller must not choose how its token is checked.
func parseHeader(part string, by jose.SignatureAlgorithm) (keyID string, err error) {
	o, err := readObject(part)
	if err != nil {
		return "", refuse("the header of the token must be one JSON object in base64url with each name once")
	}
	algorithm, _ := o.text("alg")
	kind, badKind := o.text("typ")
	keyID, badKey := o.text("kid")
	switch {
	case algorithm != string(by):
		return "", refuse("only tokens signed with %s are accepted; ask the identity provider for one", by)
	case slices.ContainsFunc(dangerous, o.has):
		return "", refuse("the header of the token must have none of %s", strings.Join(dangerous, ", "))
	case badKind != nil || !slices.Contains([]string{"", "jwt", "at+jwt"}, strings.TrimPrefix(strings.ToLower(kind), "application/")):
		return "", refuse("the typ of the token must be JWT; send an ID token, not a token for another purpose")
	case badKey != nil || keyID == "" || len(keyID) > maxKeyID:
		return "", refuse("the header of the token must name its key in kid, with at most %d bytes", maxKeyID)
	}
	return keyID, nil
}

func parseClaims(part string) (claims, error) {
	o, err := readObject(part)
	if err != nil {
		return claims{}, refuse("the claims of the token must be one JSON object in base64url with each name once")
	}
	var c claims
	var bad [6]error
	c.issuer, bad[0] = o.text("iss")
	c.subject, bad[1] = o.text("sub")
	c.audiences, bad[2] = o.texts("aud")
	c.expires, bad[3] = o.date("exp")
	c.notBefore, bad[4] = o.date("nbf")
	c.issuedAt, bad[5] = o.date("iat")
	for i, name := range []string{"iss", "sub", "aud", "exp", "nbf", "iat"} {
		if bad[i] != nil {
			return claims{}, refuse("the claim %s of the token is malformed: iss and sub are strings, aud is a string or a list of strings, dates are whole seconds since 1970", name)
		}
	}
	if c.subject == "" || len(c.subject) > maxSubject || !printable(c.subject) {
		return claims{}, refuse("the claim sub of the token must be 1 to %d printable ASCII characters", maxSubject)
	}
	if email, _ := o.text("email"); isEmail(email) {
		c.email, c.verified = email, o.isTrue("email_verified")
	}
	return c, nil
}

// maxSubject is OpenID Connect's bound, in bytes.
const maxSubject = 255

// printable reports whether s has only printable ASCII characters and spaces.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// maxEmail bounds an e-mail, in bytes: no mail can be sent to a longer one.
const maxEmail = 254

// isEmail reports whether s can name a principal: it must not look like another form of a
// principal, and must need no quoting.
func isEmail(s string) bool {
	const marks = "._%+-'@"
	strange := func(r rune) bool { return foreign(r) && !strings.ContainsRune(marks, r) }
	user, host, ok := strings.Cut(s, "@")
	return ok && user != "" && host != "" && !strings.Contains(host, "@") && len(s) <= maxEmail && !strings.ContainsFunc(s, strange)
}

// leeway is how far the clocks of the issuer and the server may be apart.
const leeway = 60 * time.Second

// verifiedEmail returns the e-mail if the issuer says that it has verified it, else "".
func (c claims) verifiedEmail() string {
	if !c.verified {
		return ""
	}
	return c.email
}

// check requires that the token is for one of the audiences, and valid now, with clocks up to
// apart.
func (c claims) check(now time.Time, apart time.Duration, audiences []string) error {
	if !slices.ContainsFunc(c.audiences, func(a string) bool { return slices.Contains(audiences, a) }) {
		return refuse("the token is for another audience; ask the identity provider for one whose audience is %s", strings.Join(audiences, " or "))
	}
	return c.checkTime(now, apart)
}

func (c claims) checkTime(now time.Time, apart time.Duration) error {
	switch {
	case c.expires.IsZero():
		return refuse("the token has no claim exp; send one that expires")
	case !now.Before(c.expires.Add(apart)):
		return refuse("the token has expired; get a new one")
	case now.Add(apart).Before(c.notBefore), now.Add(apart).Before(c.issuedAt):
		return refuse("the token is not valid yet; wait, or set the clock of the machine that it comes from")
	}
	return nil
}
