package statement

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// Type is the typ of a statement, so that no other token signed with the same key is taken for
	// one.
	Type = "regent+jwt"
	// maxStatement limits a statement, in bytes.
	maxStatement = 8 << 10
	// signatureSize is the size of a signature of both algorithms, in bytes.
	signatureSize = 64
)

// ErrUnknownKey says that the statement is signed with a key that is not among the Keys, which may
// be too old.
var ErrUnknownKey = errors.New("key: the statement's key is not known")

// header is the header of a statement, which may have no other members.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// Verify returns the claims of a statement that one of the keys has signed, that is about want, and
// that has not ended at now. It compares now with times of the store's clock: a verifier whose
// clock is behind believes in a lease for that much longer. See the package comment for what a
// statement does not prove.
func (k Keys) Verify(statement string, now time.Time, want Want) (Claims, error) {
	c, err := k.read(statement)
	if err == nil {
		err = c.check(now, want)
	}
	if err != nil {
		return Claims{}, fmt.Errorf("statement: %w", err)
	}
	return c, nil
}

// read returns the claims of a statement with a valid signature.
func (k Keys) read(statement string) (c Claims, err error) {
	var parts [3][]byte
	if len(statement) > maxStatement || strings.Count(statement, ".") != len(parts)-1 {
		return c, fmt.Errorf("form: it must have three parts, with dots between them, and at most %d bytes", maxStatement)
	}
	for i, text := range strings.Split(statement, ".") {
		if parts[i], err = decode(text); err != nil {
			return c, err
		}
	}
	var h header
	if err := decodeObject(parts[0], &h, json.RejectUnknownMembers(true)); err != nil || h.Type != Type {
		return c, fmt.Errorf("header: it must have alg, kid and the typ %s, and nothing else", Type)
	}
	key, ok := k[h.KeyID]
	if !ok {
		return c, ErrUnknownKey
	}
	by := algorithm(key)
	if h.Algorithm != string(by) {
		return c, fmt.Errorf("algorithm: the key is for %s", by)
	}
	signed, err := jose.ParseSignedCompact(statement, []jose.SignatureAlgorithm{by})
	if err == nil && len(parts[2]) == signatureSize {
		_, err = signed.Verify(key)
	}
	if err != nil || len(parts[2]) != signatureSize {
		return c, errors.New("signature: it is wrong")
	}
	if decodeObject(parts[1], &c) != nil {
		return c, errors.New("claims: they must be one JSON object with each name once and without spaces, and have their types")
	}
	return c, nil
}

// decode reads base64url in its canonical form. encoding/base64 skips line breaks.
func decode(text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || text == "" || strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("form: each part must be base64url in its canonical form, without padding")
	}
	return b, nil
}

// decodeObject reads an object that has no spaces and no repeated names.
func decodeObject(text []byte, into any, options ...json.Options) error {
	compact := jsontext.Value(slices.Clone(text))
	if err := compact.Compact(); err != nil || !bytes.Equal(compact, text) || compact.Kind() != jsontext.KindBeginObject {
		return errors.New("not one compact object")
	}
	return json.Unmarshal(text, into, options...)
}
