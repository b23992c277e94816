package wire

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// json_gen.go encodes and decodes the documents of a leader's calls without reflection, with the
// functions of this file and of scan.go. Package json does the others.
//go:generate go run ./generate

// usual is the usual size of a document, in bytes: a lease has some 500.
const usual = 640

// object appends JSON to a text. The argument before of its methods is a comma and the name of the
// member, which needs no escapes, or in an array the comma alone. The first comma of an object or
// array is later replaced by its bracket.
type object struct {
	text []byte
	err  error // the first
}

func (o *object) begin(before string) (from int) {
	o.text = append(o.text, before...)
	return len(o.text)
}

func (o *object) end(from int, open, closing byte) {
	if len(o.text) == from {
		o.text = append(o.text, ',')
	}
	o.text[from] = open
	o.text = append(o.text, closing)
}

// room grows the text for n elements, once the array has the first: most are as long.
func (o *object) room(from, i, n int) {
	const more = 8 // bytes, as in another number
	if i == 0 {
		o.text = slices.Grow(o.text, (n-1)*(len(o.text)-from+more))
	}
}

// any writes a value by package json.
func (o *object) any(before string, v any) {
	text, err := Marshal(v)
	if err != nil {
		o.fail(err)
	}
	o.text = append(append(o.text, before...), text...)
}

func (o *object) string(before, s string) {
	o.text = append(o.text, before...)
	if isPlain(s) {
		o.text = append(o.text, '"')
		o.text = append(o.text, s...)
		o.text = append(o.text, '"')
		return
	}
	o.text, _ = jsontext.AppendQuote(o.text, s) // an error says that it has replaced wrong bytes
}

// isPlain reports whether a string needs no escapes in JSON. It may report false for one that needs
// none.
func isPlain(s string) bool {
	for i := range len(s) {
		if special[s[i]] {
			return false
		}
	}
	return true
}

// special are the bytes that end a string, have an escape, or are part of a longer character.
var special = func() (all [256]bool) {
	for c := range all {
		all[c] = c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\'
	}
	return all
}()

func (o *object) integer(before string, n int64) {
	o.text = strconv.AppendInt(append(o.text, before...), n, 10)
}

func (o *object) bool(before string, b bool) {
	o.text = strconv.AppendBool(append(o.text, before...), b)
}

func (o *object) duration(before string, d Duration) {
	o.text = append(append(o.text, before...), '"')
	o.text, _ = d.AppendText(o.text) // there is no error
	o.text = append(o.text, '"')
}

func (o *object) instant(before string, t time.Time) {
	if y := t.Year(); y < 0 || y > 9999 {
		o.fail(fmt.Errorf("wire: an instant in the year %d, which RFC 3339 cannot show", y))
	}
	o.text = append(append(o.text, before...), '"')
	o.text = t.AppendFormat(o.text, time.RFC3339Nano)
	o.text = append(o.text, '"')
}

// value appends JSON in this program's canonical form, which has no spaces, but may have other
// escapes than Marshal writes.
func (o *object) value(before string, v jsontext.Value) {
	o.text = append(o.text, before...)
	if isCanonical(v) {
		o.text = append(o.text, v...)
		return
	}
	text, err := jsontext.AppendFormat(o.text, v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		o.fail(fmt.Errorf("wire: %s %w", before, err))
		return
	}
	o.text = text
}

// isCanonical reports whether the text is of an object and has no escapes.
func isCanonical(v jsontext.Value) bool {
	return len(v) > 1 && v[0] == '{' && v[len(v)-1] == '}' && !slices.Contains(v, '\\')
}

func (o *object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}
