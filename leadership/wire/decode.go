package wire

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal writes a document of this package. In a string that is not UTF-8 it replaces each invalid
// byte by U+FFFD, because an error must reach its caller, whatever it quotes.
func Marshal(v any) ([]byte, error) {
	text, known, err := appendDocument(make([]byte, 0, usual), v)
	if known {
		return text, err
	}
	b := bytes.NewBuffer(text)
	err = json.MarshalWrite(b, v, jsontext.AllowInvalidUTF8(true))
	return b.Bytes(), err
}

// Unmarshal reads a reply. It ignores fields that it does not know, because the server may be
// newer. The rest is strict: names are case-sensitive, and must not be repeated in an object.
func Unmarshal(text []byte, into any) error {
	if read(text, into) {
		return nil
	}
	return json.Unmarshal(text, into)
}

// Decode reads the body of a request, one JSON object, into the struct that into points to. The
// struct defines the document: a field without omitzero is required, and a field that the struct
// does not have is refused. So are null, a repeated name in an object, and text that is not UTF-8.
// The struct also limits how deep a body may be.
//
// The error has the code InvalidArgument, a sentence that names the mistake, and as its Field the
// JSON pointer of the place, if there is one. It repeats no string of the body except a duration,
// because the string might be a key.
func Decode(body []byte, into any) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return malformed("", "the body is empty; send a JSON object")
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return malformed("", "the body begins with a byte order mark; send UTF-8 without one")
	}
	return decode(body, into)
}

// decode is Decode for a document that may be part of another one.
func decode(text []byte, into any) error {
	if read(text, into) {
		return nil
	}
	return decodeAny(text, into)
}

// decodeAny is decode with reflection.
func decodeAny(text []byte, into any) error {
	options := []json.Options{json.RejectUnknownMembers(true)}
	if bytes.Contains(text, []byte("null")) { // seldom; it costs a call for each value
		options = append(options, json.WithUnmarshalers(json.UnmarshalFromFunc(refuseNull)))
	}
	if err := json.Unmarshal(text, into, options...); err != nil {
		return refusal(err)
	}
	return missing(text, "", reflect.ValueOf(into).Elem())
}

// refuseNull refuses null, which json would take for a field that was left out. It is called for
// every value with a struct field, but not inside a jsontext.Value.
func refuseNull(d *jsontext.Decoder, field any) error {
	if kind := d.PeekKind(); kind == jsontext.KindNull {
		return wrongKind{sent: kind, field: reflect.TypeOf(field).Elem()}
	}
	return errors.ErrUnsupported // by this package: let json read the value
}
