package leadership

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"regent/leadership/internal/form"
)

// Limits of names. A limit of 128 keeps every key of every store far below what the store allows.
const (
	MaxElectionLength  = 128
	MaxCandidateLength = 128
)

// Election names a contest: 1 to 128 of a-z, 0-9, '.', '_' and '-', beginning and ending with a
// letter or digit, so that it can stand in a path, a document id, an ordering key and a shell
// without quoting.
type Election string

// Validate returns an error that says why the name is invalid, or nil.
func (e Election) Validate() error {
	switch {
	case e == "":
		return errors.New("an election needs a name")
	case len(e) > MaxElectionLength:
		return fmt.Errorf("an election's name has at most %d characters, this one has %d", MaxElectionLength, len(e))
	}
	for i, r := range e {
		inner := i > 0 && i < len(e)-1
		if !lowerOrDigit(r) && (!inner || !strings.ContainsRune("._-", r)) {
			return fmt.Errorf("an election's name is made of a-z, 0-9, '.', '_' and '-' and begins and ends with a letter or digit: %s has %q at position %d",
				form.Shown(string(e)), string(r), i+1)
		}
	}
	return nil
}

// validatePrefix returns an error unless an election's name can begin with prefix, which may end
// where a name may not, as "jobs.".
func validatePrefix(prefix string) error {
	for i, r := range prefix {
		if i >= MaxElectionLength || !lowerOrDigit(r) && (i == 0 || !strings.ContainsRune("._-", r)) {
			return fmt.Errorf("no election's name begins with %s: a name has at most %d characters of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit",
				form.Shown(prefix), MaxElectionLength)
		}
	}
	return nil
}

// Pattern reports whether e is a pattern of names, and returns the prefix before its "*". For a
// name it returns the whole name and false.
func (e Election) Pattern() (begin string, ok bool) { return strings.CutSuffix(string(e), "*") }

// ValidatePattern is Validate for a name or a pattern: a prefix followed by "*". A "*" alone
// matches all names.
func (e Election) ValidatePattern() error {
	if begin, ok := e.Pattern(); ok {
		return validatePrefix(begin)
	}
	return e.Validate()
}

// IsPattern reports whether e is a pattern of names.
func (e Election) IsPattern() bool { return strings.HasSuffix(string(e), "*") }

// Covers reports whether e equals name or is a pattern that matches it. If name is a pattern, e
// must match all of its names.
func (e Election) Covers(name Election) bool { return covers(e, name) }

func covers[T ~string](e, name T) bool {
	begin, pattern := strings.CutSuffix(string(e), "*")
	return pattern && strings.HasPrefix(string(name), begin) || e == name
}

// CandidateID names an agent that wants to lead: 1 to 128 of A-Z, a-z, 0-9 and "._@:-", unique
// within the election.
type CandidateID string

// Validate returns an error that says why the id is invalid, or nil.
func (c CandidateID) Validate() error {
	return validateID("a candidate", string(c), MaxCandidateLength)
}

func validateID(of, id string, most int) error {
	switch {
	case id == "":
		return fmt.Errorf("%s needs an id", of)
	case len(id) > most:
		return fmt.Errorf("%s's id has at most %d characters, this one has %d", of, most, len(id))
	}
	for i, r := range id {
		if !lowerOrDigit(r) && (r < 'A' || r > 'Z') && !strings.ContainsRune("._@:-", r) {
			return fmt.Errorf("%s's id is made of A-Z, a-z, 0-9 and \"._@:-\": %s has %q at position %d", of, form.Shown(id), string(r), i+1)
		}
	}
	return nil
}

// MinPattern is the least number of characters before the "*" of a pattern of ids.
const MinPattern = 3

// ValidatePattern is Validate for an id or a pattern: a prefix of at least MinPattern characters
// followed by "*".
func (c CandidateID) ValidatePattern() error {
	begin, pattern := strings.CutSuffix(string(c), "*")
	switch {
	case strings.Contains(begin, "*"):
		return fmt.Errorf("a \"*\" stands at the end, as in \"writer-*\", and not as in %s", form.Shown(string(c)))
	case pattern && len(begin) < MinPattern:
		return fmt.Errorf("a pattern has at least %d characters before the \"*\", and %s has %d; to bar all candidates, pause the election", MinPattern, form.Shown(string(c)), len(begin))
	}
	return CandidateID(begin).Validate()
}

// IsPattern reports whether c is a pattern of ids.
func (c CandidateID) IsPattern() bool { return strings.HasSuffix(string(c), "*") }

// Covers reports whether c equals id or is a pattern that matches it.
func (c CandidateID) Covers(id CandidateID) bool { return covers(c, id) }

func lowerOrDigit(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

// Token is a fencing token: a positive integer below 2^53 (so that JSON readers keep it exact) that
// rises by one at every grant of an election's leadership and is never used twice. Zero is the
// token of an election that never had a leader.
type Token int64

// MaxToken is the last token an election can grant.
const MaxToken Token = 1<<53 - 1

// Revision counts the changes of an election that have an event, contiguous from 1. Zero is an
// election that was never seen.
type Revision int64

// NeverSeen, as a condition, requires that the election was never seen: the "*" of an If-None-Match
// header. A deleted election was seen.
const NeverSeen Revision = -1

// KeySize is the length of a key in bytes.
const KeySize = 32

// Key is the secret of one incarnation of a candidate: 32 random bytes. It does not print itself,
// whatever the verb, nor does a struct that has it in an exported field; in an unexported field fmt
// cannot see that it is a Key. Text returns it on purpose.
type Key [KeySize]byte

// keyEncoding is strict, so that a key has exactly one text form.
var keyEncoding = base64.RawURLEncoding.Strict()

// NewKey returns a fresh key.
func NewKey() Key {
	var k Key
	rand.Read(k[:]) // never returns an error
	return k
}

// ParseKey reads the text form of a key: base64url without padding, 43 characters. Its error does
// not repeat the input.
func ParseKey(text string) (Key, error) {
	var k Key
	b, err := keyEncoding.DecodeString(text)
	if err != nil || len(b) != KeySize || len(text) != keyEncoding.EncodedLen(KeySize) { // the decoder skips line breaks
		return Key{}, fmt.Errorf("a key is %d random bytes in base64url without padding (%d characters); leave it out and the server chooses one",
			KeySize, keyEncoding.EncodedLen(KeySize))
	}
	copy(k[:], b)
	return k, nil
}

// Text returns the key as it is sent: base64url, 43 characters.
func (k Key) Text() string { return keyEncoding.EncodeToString(k[:]) }

// Format keeps the key out of every fmt verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, "[key]") }

// MarshalJSON refuses: a key is written only where the code says so with Text.
func (k Key) MarshalJSON() ([]byte, error) {
	return nil, errors.New("leadership: a key is not encoded by accident; use Text")
}

// Hash returns the key's SHA-256, which is all that a store keeps of it.
func (k Key) Hash() KeyHash { return sha256.Sum256(k[:]) }

// KeyHash is the SHA-256 of a Key. The zero KeyHash belongs to no key.
type KeyHash [sha256.Size]byte

// Equal compares in constant time.
func (h KeyHash) Equal(other KeyHash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// MarshalText implements encoding.TextMarshaler: base64url, for a record's carried parts.
func (h KeyHash) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, h[:]), nil
}

func (h *KeyHash) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil || len(raw) != len(h) {
		return errors.New("a key's hash is 32 bytes in base64url")
	}
	copy(h[:], raw)
	return nil
}
