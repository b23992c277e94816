package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays of a request may lie within each other.
const MaxDepth = 32

// wellFormed refuses whatever is not exactly one JSON value in sound UTF-8 with no name twice in an object.
func wellFormed(body []byte) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return malformed("", "the body is empty; it must be a JSON object")
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return malformed("", "the body begins with a byte order mark; send UTF-8 without one")
	case !utf8.Valid(body):
		return malformed("", "the body is not UTF-8: see byte %d", invalidAt(body))
	}
	if !json.Valid(body) {
		return oneValue(body)
	}
	if kind := kindOf(body); kind != kindObject {
		return malformed("", "the body must be a JSON object, not %s", kind)
	}
	if at := loneSurrogate(body); at >= 0 {
		return malformed("", "the body has half a surrogate pair at byte %d, which is no character", at)
	}
	if plain(body) {
		return nil
	}
	w := walker{json.NewDecoder(bytes.NewReader(body))}
	w.tokens.UseNumber()
	return w.value("", 0)
}

func invalidAt(body []byte) int {
	at := 0
	for at < len(body) {
		r, size := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// oneValue says what is wrong with what is not exactly one JSON value.
func oneValue(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	var value json.RawMessage
	err := d.Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return malformed("", "the body is not JSON: %v at byte %d", err, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("", "the body is not JSON: it ends before the value does")
	case err != nil:
		return malformed("", "the body is not JSON: %v", err)
	}
	return malformed("", "something follows the JSON value that ends at byte %d; send one and nothing else", d.InputOffset())
}

// loneSurrogate returns where valid JSON escapes half of a surrogate pair, or -1.
func loneSurrogate(body []byte) int {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		i++
		r := escaped(body[i:])
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+5 >= len(body) || body[i+5] != '\\' || utf16.DecodeRune(r, escaped(body[i+6:])) == utf8.RuneError {
			return i - 1
		}
		i += 10
	}
	return -1
}

// escaped reads the hexadecimal digits of uXXXX; 0 if it is another escape.
func escaped(s []byte) rune {
	if len(s) < 5 || s[0] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(s[1:5]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// walker goes through valid JSON.
type walker struct{ tokens *json.Decoder }

func (w walker) value(at string, depth int) error {
	token, err := w.tokens.Token()
	if err != nil {
		return malformed(at, "the body is not JSON: %v", err)
	}
	delim, ok := token.(json.Delim)
	switch {
	case !ok:
		return nil
	case depth == MaxDepth:
		return malformed("", "objects and arrays are nested at most %d deep", MaxDepth)
	case delim == '{':
		err = w.object(at, depth+1)
	default:
		err = w.array(at, depth+1)
	}
	if err == nil {
		_, err = w.tokens.Token() // the closing one
	}
	return err
}

func (w walker) object(at string, depth int) error {
	seen := map[string]bool{}
	for w.tokens.More() {
		token, err := w.tokens.Token()
		if err != nil {
			return malformed(at, "the body is not JSON: %v", err)
		}
		name, _ := token.(string)
		if seen[name] {
			return malformed(at+pointer(name), "%s stands twice in one object", Quote(name))
		}
		seen[name] = true
		if err := w.value(at+pointer(name), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w walker) array(at string, depth int) error {
	for i := 0; w.tokens.More(); i++ {
		if err := w.value(at+"/"+strconv.Itoa(i), depth); err != nil {
			return err
		}
	}
	return nil
}
