// Package form has the one form in which values are stored, and told to people: JSON, instants,
// durations and lines of text.
package form

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Object reads a JSON object without doubled names at any depth. "" is an empty one, for which
// it returns nil: most records have no members, and each renewal reads them.
func Object(text string) (map[string]json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := readUnique(d); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, errors.New("it is not a JSON object")
	}
	return object, nil
}

// readUnique reads one value and refuses objects in it that have a name twice.
func readUnique(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	names := make(map[json.Token]bool)
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return fmt.Errorf("it is not JSON: %w", err)
			}
			if names[name] {
				return fmt.Errorf("member %q stands in it twice", name)
			}
			names[name] = true
		}
		if err := readUnique(d); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	return nil
}

// WriteObject is the canonical text of an object: names sorted, no spaces, values otherwise as they
// are. "" if it has no members.
func WriteObject(object map[string]json.RawMessage) (string, error) {
	if len(object) == 0 {
		return "", nil
	}
	text, err := JSON(object)
	return string(text), err
}

// JSON is json.Marshal without escaping for HTML.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// MaxText bounds a text that a person writes for others.
const MaxText = 256

// Text accepts one line of text.
func Text(s string) error {
	switch {
	case len(s) > MaxText:
		return fmt.Errorf("a text of at most %d bytes, not %d", MaxText, len(s))
	case !utf8.ValidString(s):
		return errors.New("a text in UTF-8")
	case strings.ContainsFunc(s, isHidden):
		return errors.New("one line of text, without control characters, also of the direction of writing")
	}
	return nil
}

// Line is Text of a field of that name.
func Line(name, s string) error {
	if err := Text(s); err != nil {
		return fmt.Errorf("%s is %w", name, err)
	}
	return nil
}

// isHidden reports whether the character makes a text look like another one, or like two lines.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Decode reads one JSON value whose members are all known.
func Decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// List reads a JSON array that WriteList has made.
func List[T any](text string) (all []T) {
	if text != "" {
		_ = Decode([]byte(text), &all) // the codec has checked it
	}
	return all
}

// WriteList makes a JSON array; "" of none.
func WriteList[T any](all []T) string {
	if len(all) == 0 {
		return ""
	}
	text, _ := JSON(all) // the types used have no value without a JSON form
	return string(text)
}

// Digest stands for a text where that would be too long.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// Spoken is the duration as people write it: "24h", where String has "24h0m0s".
func Spoken(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// Shown quotes what a caller sent, cut to what a person can read in a log line.
func Shown(s string) string {
	const limit = 64
	if len(s) > limit {
		return fmt.Sprintf("%q…", s[:limit])
	}
	return fmt.Sprintf("%q", s)
}

// Instants accepts instants as Later makes them, so that equal ones are equal with ==.
func Instants(all ...time.Time) error {
	for _, t := range all {
		if t.Location() != time.UTC || !Later(t, 0).Equal(t) {
			return fmt.Errorf("%s is no instant of UTC in whole microseconds", t.Format(time.RFC3339Nano))
		}
	}
	return nil
}

// Precision is the precision of the instants that rules compute: that of the cloud stores.
const Precision = time.Microsecond

// Later is the instant d after t, rounded up to what every store keeps.
func Later(t time.Time, d time.Duration) time.Time {
	end := t.Add(d).UTC().Round(0)
	if short := end.Truncate(Precision); !short.Equal(end) {
		return short.Add(Precision)
	}
	return end
}
