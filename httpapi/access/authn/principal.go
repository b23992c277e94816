package authn

import "context"

// Principal is an authenticated caller. The zero Principal is anonymous: no token can name it.
type Principal struct {
	Issuer  string // of the token, without "|"
	Subject string // as the issuer names the caller, 1 to 255 printable ASCII characters
	Email   string // verified, of an issuer whose e-mails are believed; else ""
}

// String returns the principal as policies and audit records name it: the verified e-mail if there
// is one, else "ISSUER|SUBJECT", and "anonymous" for the zero Principal. No two of these forms can
// be mistaken for one another: only e-mails have an "@" and no "|".
//
// The name is exact: upper and lower case differ, because issuers may tell users apart by case.
func (p Principal) String() string {
	switch {
	case p == Principal{}:
		return "anonymous"
	case p.Email != "":
		return p.Email
	}
	return p.Issuer + "|" + p.Subject
}

// Pinned returns "ISSUER|SUBJECT", also of a principal with an e-mail. An e-mail may be given to
// another person one day; a subject never is.
func (p Principal) Pinned() string {
	if p == (Principal{}) {
		return p.String()
	}
	return p.Issuer + "|" + p.Subject
}

type principalKey struct{}

// With returns a context of a call by the principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns the principal that With put there. ok is false if there is none: then the caller was
// not authenticated at all, which is not the same as an anonymous caller.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(principalKey{}).(Principal)
	return p, ok
}
