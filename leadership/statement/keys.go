package statement

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership/wire"
)

// PathKeys is where a server publishes its keys, as a JSON Web Key Set (RFC 7517).
const PathKeys = wire.PathKeySet

// Limits of the input.
const (
	maxSet  = 64 << 10 // bytes of a key set
	maxKeys = 16
)

// Keys are public keys by their ids.
type Keys map[string]crypto.PublicKey

// algorithm returns how the key signs; "" for a key that is not one of the two kinds.
func algorithm(public crypto.PublicKey) jose.SignatureAlgorithm {
	switch key := public.(type) {
	case ed25519.PublicKey:
		return jose.EdDSA
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return jose.ES256
		}
	}
	return ""
}

// ParseKeys reads a key set. It skips keys of other kinds and for other uses, and returns an error
// if none is left.
func ParseKeys(set []byte) (Keys, error) {
	var text struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(set, &text); err != nil || len(set) > maxSet || len(text.Keys) > maxKeys {
		return nil, fmt.Errorf("statement: a key set is a JSON document of at most %d keys and %d bytes", maxKeys, maxSet)
	}
	keys := Keys{}
	for _, one := range text.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(one) != nil || key.KeyID == "" || key.Use != "" && key.Use != "sig" {
			continue
		}
		if by := algorithm(key.Key); by != "" && (key.Algorithm == "" || key.Algorithm == string(by)) {
			keys[key.KeyID] = key.Key
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("statement: the key set has no Ed25519 or P-256 key with a kid")
	}
	return keys, nil
}
