package statement

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"regent/leadership"
)

// Key is a private key, here or at a service that keeps it.
type Key struct {
	Public crypto.PublicKey // ed25519.PublicKey, or an *ecdsa.PublicKey on P-256
	// Sign signs the message: with Ed25519, or with ECDSA its SHA-256, and then in ASN.1. It
	// honours ctx, and may be called concurrently.
	Sign func(ctx context.Context, message []byte) ([]byte, error)
}

// ParseKey reads a private key in PEM (PKCS #8).
func ParseKey(text []byte) (Key, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return Key{}, errors.New("statement: a key is one block PRIVATE KEY of PEM (PKCS #8); make one with openssl genpkey -algorithm ed25519")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, ok := parsed.(crypto.Signer)
	if err != nil || !ok || algorithm(signer.Public()) == "" {
		return Key{}, errors.New("statement: the key cannot be used; it must be Ed25519 or P-256 (PKCS #8)") // err may quote it
	}
	hash := crypto.Hash(0)
	if _, ok := parsed.(*ecdsa.PrivateKey); ok {
		hash = crypto.SHA256
	}
	return Key{Public: signer.Public(), Sign: func(_ context.Context, message []byte) ([]byte, error) {
		return crypto.SignMessage(signer, rand.Reader, message, hash)
	}}, nil
}

// Issuer signs statements. Its methods may be called concurrently.
type Issuer struct {
	url    string
	key    Key    // the first one
	header string // with that key, in base64url and a dot
	set    []byte
	public Keys
}

// NewIssuer returns an issuer that signs with the first key, and publishes all keys: add the next
// key before it is used, and keep the previous one for as long as its statements last. url is the
// issuer that statements name, or empty.
func NewIssuer(url string, keys ...Key) (*Issuer, error) {
	i := &Issuer{url: url, public: Keys{}}
	var set jose.JSONWebKeySet
	for at, key := range keys {
		by := algorithm(key.Public)
		if by == "" {
			return nil, errors.New("statement: a key must be Ed25519 or P-256")
		}
		public := jose.JSONWebKey{Key: key.Public, Algorithm: string(by), Use: "sig"}
		print, err := public.Thumbprint(crypto.SHA256)
		if err != nil {
			return nil, err
		}
		id := base64.RawURLEncoding.EncodeToString(print)
		public.KeyID = id
		set.Keys = append(set.Keys, public)
		i.public[id] = key.Public
		if at == 0 {
			text, _ := json.Marshal(header{string(by), id, Type}) // three strings
			i.key, i.header = key, base64.RawURLEncoding.EncodeToString(text)+"."
		}
	}
	if len(i.public) != len(keys) || len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("statement: there must be 1 to %d keys, each once", maxKeys)
	}
	var err error
	i.set, err = json.Marshal(set)
	return i, err
}

// KeySet returns the public keys, as JSON.
func (i *Issuer) KeySet() []byte { return i.set }

// Sign returns a statement about a lease that the principal ("" if unknown) was just granted or has
// just renewed. It blocks for as long as the key takes to sign.
func (i *Issuer) Sign(ctx context.Context, l leadership.Lease, principal string) (string, error) {
	text, err := json.Marshal(claims(i.url, l, principal))
	if err != nil {
		return "", fmt.Errorf("statement: %w", err)
	}
	message := i.header + base64.RawURLEncoding.EncodeToString(text)
	signature, err := i.key.Sign(ctx, []byte(message))
	if err == nil && algorithm(i.key.Public) == jose.ES256 {
		signature, err = fixed(signature)
	}
	if err != nil {
		return "", fmt.Errorf("statement: %w", err)
	}
	statement := message + "." + base64.RawURLEncoding.EncodeToString(signature)
	if _, err := i.public.read(statement); err != nil { // a key service may return anything as a signature
		return "", fmt.Errorf("statement: the key has signed wrongly: %w", err)
	}
	return statement, nil
}

// fixed returns an ECDSA signature in the form of JWS: two numbers of 32 bytes (RFC 7518 §3.4).
func fixed(signature []byte) ([]byte, error) {
	var n struct{ R, S *big.Int }
	if rest, err := asn1.Unmarshal(signature, &n); err != nil || len(rest) > 0 || n.R.Sign() < 0 || n.S.Sign() < 0 || max(n.R.BitLen(), n.S.BitLen()) > 256 {
		return nil, errors.New("the key has returned no signature of P-256")
	}
	raw := make([]byte, signatureSize)
	n.R.FillBytes(raw[:signatureSize/2])
	n.S.FillBytes(raw[signatureSize/2:])
	return raw, nil
}
