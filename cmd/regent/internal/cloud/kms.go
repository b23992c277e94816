package cloud

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"

	"regent/leadership/statement"
)

// keyVersion matches the name of a version of a key of Cloud KMS.
var keyVersion = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+/cryptoKeyVersions/[0-9]+$`)

// Key returns a version of a key of Cloud KMS, projects/P/locations/L/keyRings/R/cryptoKeys/K/
// cryptoKeyVersions/N. Its algorithm must be EC_SIGN_P256_SHA256 or EC_SIGN_ED25519. The caller
// needs roles/cloudkms.signerVerifier on it.
func (c *Client) Key(ctx context.Context, version string) (statement.Key, error) {
	if !keyVersion.MatchString(version) {
		return statement.Key{}, fmt.Errorf("%q is not projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/N", version)
	}
	var is struct{ PEM, Algorithm string }
	if err := c.get(ctx, kmsAPI, "/v1/"+escape(version)+"/publicKey", &is); err != nil {
		return statement.Key{}, fmt.Errorf("the public key of %s: %w", version, err)
	}
	question := func(message []byte) any { return map[string]any{"data": message} }
	switch is.Algorithm {
	case "EC_SIGN_P256_SHA256":
		question = func(message []byte) any {
			sum := sha256.Sum256(message)
			return map[string]any{"digest": map[string]any{"sha256": sum[:]}}
		}
	case "EC_SIGN_ED25519":
	default:
		return statement.Key{}, fmt.Errorf("the algorithm of %s is %s; it must be EC_SIGN_P256_SHA256 or EC_SIGN_ED25519", version, is.Algorithm)
	}
	block, _ := pem.Decode([]byte(is.PEM))
	if block == nil {
		return statement.Key{}, fmt.Errorf("the public key of %s is not PEM", version)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	sign := func(ctx context.Context, message []byte) ([]byte, error) {
		var signed struct{ Signature []byte }
		err := c.ask(ctx, kmsAPI, "/v1/"+escape(version)+":asymmetricSign", question(message), &signed)
		return signed.Signature, err
	}
	return statement.Key{Public: public, Sign: sign}, err
}
