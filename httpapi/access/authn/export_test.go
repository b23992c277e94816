package authn

import (
	"crypto"
	"crypto/rsa"
)

// OnVerify has f called at each verification of a signature. It must not be called once tokens are checked.
func OnVerify(o *OIDC, f func()) {
	verify := o.verify
	o.verify = func(key *rsa.PublicKey, hash crypto.Hash, hashed, signature []byte) error {
		f()
		return verify(key, hash, hashed, signature)
	}
}

// Remember bounds how many tokens are remembered.
func Remember(o *OIDC, limit int) { o.seen = newSeen(limit) }

// Remembered is how many there are.
func Remembered(o *OIDC) int { return len(o.seen.byHash) }
