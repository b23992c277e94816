package authn

import "context"

// Principal is who calls. The zero one is anonymous: no token can name it.
type Principal struct {
	Issuer  string // of the token, without "|"
	Subject string // as the issuer names the caller, 1 to 255 printable ASCII characters
	Email   string // verified, of an issuer whose e-mails are believed; else ""
}

// String is the principal in policies and audit records: the verified e-mail if there is one, else "ISSUER|SUBJECT", and "anonymous" for
// nobody in particular. No two of these forms can be mistaken for one another: only e-mails have an "@" and no "|".
//
// It is exact. Upper and lower case differ, as issuers may tell their users apart by it.
func (p Principal) String() string {
	switch {
	case p == Principal{}:
		return "anonymous"
	case p.Email != "":
		return p.Email
	}
	return p.Issuer + "|" + p.Subject
}

type principalKey struct{}

// With returns a context of a call by the principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns the principal that With put there. Without one it is false: then nobody has asked who calls, which is not the same as
// an anonymous caller.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(principalKey{}).(Principal)
	return p, ok
}
