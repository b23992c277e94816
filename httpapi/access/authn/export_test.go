package authn

import (
	"github.com/go-jose/go-jose/v4"
)

// OnVerify has f called at each verification of a signature. Call it before any token is checked.
func OnVerify(o *OIDC, f func()) {
	verify := o.verify
	o.verify = func(signed *jose.JSONWebSignature, key publicKey) error {
		f()
		return verify(signed, key)
	}
}

// Remember bounds how many tokens are remembered.
func Remember(o *OIDC, limit int) { o.seen.Resize(limit) }

// Remembered is how many tokens are remembered.
func Remembered(o *OIDC) int { return o.seen.Len() }
