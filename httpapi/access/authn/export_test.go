package authn

import (
	"github.com/go-jose/go-jose/v4"
)

// OnVerify makes f be called at each verification of a signature. Call it before any token is
// checked.
func OnVerify(o *OIDC, f func()) {
	verify := o.verify
	o.verify = func(signed *jose.JSONWebSignature, key publicKey) error {
		f()
		return verify(signed, key)
	}
}

// Remember sets how many tokens are remembered at most.
func Remember(o *OIDC, limit int) { o.seen.Resize(limit) }

// Remembered returns how many tokens are remembered.
func Remembered(o *OIDC) int { return o.seen.Len() }
