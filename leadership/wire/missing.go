package wire

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// missing returns an error for a document without a required field. v is the value that was read
// from text at the pointer at. Only a field that is zero may be missing, so text is seldom read.
func missing(text []byte, at jsontext.Pointer, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return missing(text, at, v.Elem())
	case reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.UnmarshalerFrom]()): // Entries, whose parts are read by themselves
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			if err := missing(text, at.AppendToken(strconv.Itoa(i)), v.Index(i)); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Struct:
		for field, value := range v.Fields() {
			if err := missingField(text, at, field, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func missingField(text []byte, at jsontext.Pointer, field reflect.StructField, v reflect.Value) error {
	name, _, optional := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case field.Anonymous:
		return missing(text, at, v)
	case name == "":
		return nil // not a field of the document
	case !optional && v.IsZero() && !has(text, at.AppendToken(name)):
		return malformed(shorten(at.AppendToken(name)), "%s is missing; this request requires it", name)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Struct: // it may have fields of its own
		return missing(text, at.AppendToken(name), v)
	}
	return nil
}

// has reports whether a JSON text has a value at the pointer.
func has(text []byte, at jsontext.Pointer) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for name := range at.Tokens() {
		if !enter(d, name) {
			return false
		}
	}
	return true
}

// enter moves d to the member or element of that name in the object or array that comes next.
func enter(d *jsontext.Decoder, name string) bool {
	begin, err := d.ReadToken()
	object := begin.Kind() == jsontext.KindBeginObject
	for i := 0; err == nil; i++ {
		switch d.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray:
			return false
		}
		member := strconv.Itoa(i)
		if object {
			var token jsontext.Token
			token, err = d.ReadToken()
			member = token.String()
		}
		if member == name {
			return true
		}
		if err == nil {
			err = d.SkipValue()
		}
	}
	return false
}
