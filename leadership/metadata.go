package leadership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"regent/leadership/internal/form"
)

// Limits of a leader's metadata.
const (
	MaxMetadataBytes = 4096 // of the canonical form
	MaxMetadataDepth = 16   // objects and arrays within each other
)

// Metadata is what a leader publishes about itself to readers of the election, such as an address:
// a JSON object in canonical form (no spaces, keys sorted, numbers as ParseMetadata says), or
// empty. Equal objects are equal strings.
type Metadata string

// Address returns the member "address" of the metadata, where the leader can be reached: one line
// of at most 256 bytes in any format; "" if there is no such text.
func (m Metadata) Address() string {
	var members map[string]any
	if m == "" || json.Unmarshal([]byte(m), &members) != nil {
		return ""
	}
	address, _ := members["address"].(string)
	if form.Line("address", address) != nil {
		return ""
	}
	return address
}

// ParseMetadata returns the canonical form of a JSON object, so that all stores keep and return the
// same text. Whole numbers of up to 64 bits are kept exactly, other numbers as the nearest double.
// It refuses a number that is out of range for a double, and an object deeper than MaxMetadataDepth
// or longer than MaxMetadataBytes. Empty text and the JSON null give "".
func ParseMetadata(text []byte) (Metadata, error) {
	if len(text) == 0 {
		return "", nil
	}
	if len(text) <= MaxMetadataBytes && isPlainObject(text) {
		return Metadata(text), nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return "", nil
	}
	if !utf8.Valid(text) {
		return "", errors.New("metadata must be UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("metadata must be a JSON object: %w", err)
	}
	if d.More() {
		return "", errors.New("metadata must be one JSON object, and something follows it")
	}
	return canonicalMetadata(v)
}

// isPlainObject reports whether text is a canonical object whose values are strings of printable
// ASCII without escapes. It is a fast path: most metadata is, and each reply carries it.
func isPlainObject(text []byte) bool {
	var last []byte
	for rest, before := text, byte('{'); ; before = ',' {
		name, after, ok := cutPlainString(rest, before)
		if !ok || last != nil && bytes.Compare(last, name) >= 0 {
			return false
		}
		if _, rest, ok = cutPlainString(after, ':'); !ok {
			return false
		}
		if last = name; len(rest) == 1 {
			return rest[0] == '}'
		}
	}
}

// cutPlainString splits text, which must start with the byte before, into the string after that
// byte and the rest.
func cutPlainString(text []byte, before byte) (value, rest []byte, ok bool) {
	if len(text) < 2 || text[0] != before || text[1] != '"' {
		return nil, nil, false
	}
	text = text[2:]
	for i, c := range text {
		switch {
		case c == '"':
			return text[:i:i], text[i+1:], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

func canonicalMetadata(v any) (Metadata, error) {
	if v == nil {
		return "", nil
	}
	if _, ok := v.(map[string]any); !ok {
		return "", errors.New("metadata must be a JSON object, such as {\"address\":\"10.0.0.7:8080\"}")
	}
	v, err := canonicalValue(v, MaxMetadataDepth)
	if err != nil {
		return "", err
	}
	text, err := form.JSON(v)
	if err != nil {
		return "", fmt.Errorf("metadata: %w", err)
	}
	m := Metadata(text)
	if len(m) > MaxMetadataBytes {
		return "", fmt.Errorf("metadata has at most %d bytes, this has %d", MaxMetadataBytes, len(m))
	}
	return m, nil
}

// canonicalValue replaces the numbers in v by their canonical form. depth limits how many levels
// of objects and arrays v may have.
func canonicalValue(v any, depth int) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return canonicalNumber(v)
	case map[string]any:
		if depth == 0 {
			return nil, fmt.Errorf("metadata is nested at most %d deep", MaxMetadataDepth)
		}
		for name := range v {
			if v[name], err = canonicalValue(v[name], depth-1); err != nil {
				return nil, err
			}
		}
	case []any:
		if depth == 0 {
			return nil, fmt.Errorf("metadata is nested at most %d deep", MaxMetadataDepth)
		}
		for i := range v {
			if v[i], err = canonicalValue(v[i], depth-1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func canonicalNumber(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return u, nil
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("metadata has a number that is out of range: %s", form.Shown(string(n)))
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil // 1.0, 1e2 and -0 are spelt 1, 100 and 0
	}
	return f, nil
}
