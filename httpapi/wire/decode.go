package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"regent/leadership"
)

// Decode reads a request's body, one JSON object and nothing else, into the struct that into points to. The struct's tags are the
// document's schema: their names are taken exactly, and a field without omitempty or omitzero is required.
//
// Whatever the struct does not have is refused, as are names that stand twice, null, numbers in strings, fractions for integers, text that is
// not UTF-8 and documents deeper than MaxDepth. The error has the code InvalidArgument, a sentence that says what is wrong, and as
// its Field, where there is one, the JSON pointer of the place.
func Decode(body []byte, into any) error {
	if err := wellFormed(body); err != nil {
		return err
	}
	return decodeObject(body, into)
}

// decodeObject reads what wellFormed has passed. It fills in all that it can and returns the first error.
func decodeObject(text []byte, into any) error {
	if kind := kindOf(text); kind != kindObject {
		return malformed("/", "an entry must be %s, not %s", kindObject, kind)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return malformed("/", "%v", err)
	}
	v := reflect.ValueOf(into).Elem()
	var errs []error
	var known []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
		switch text, ok := members[name]; {
		case ok:
			errs = append(errs, decodeMember(name, text, v.FieldByIndex(f.Index)))
		case options == "":
			errs = append(errs, malformed(pointer(name), "%s is missing", name))
		}
		delete(members, name)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		errs = append(errs, malformed(pointer(name), "%s is not known here; there are: %s", Quote(name), strings.Join(known, ", ")))
	}
	return firstOf(errs)
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeMember reads one member. Its errors repeat nothing of a string but a duration: it might be a key.
func decodeMember(name string, text []byte, field reflect.Value) error {
	want, got := kindFor(field.Type()), kindOf(text)
	switch {
	case got == kindNull:
		return malformed(pointer(name), "%s must be %s, not null; leave it out if there is nothing to say", name, want)
	case got != want:
		return malformed(pointer(name), "%s must be %s, not %s", name, want, got)
	}
	err := json.Unmarshal(text, field.Addr().Interface())
	switch {
	case err == nil:
		return nil
	case want == kindNumber:
		return malformed(pointer(name), "%s must be an integer of at most 64 bits, not %s", name, Quote(string(text)))
	}
	return malformed(pointer(name), "%s %v", name, err)
}

// The kinds of JSON values, as errors call them.
const (
	kindObject = "an object"
	kindArray  = "an array"
	kindString = "a string"
	kindNumber = "a number"
	kindBool   = "true or false"
	kindNull   = "null"
)

func kindOf(value []byte) string {
	switch value := bytes.TrimLeft(value, " \t\r\n"); value[0] {
	case '{':
		return kindObject
	case '[':
		return kindArray
	case '"':
		return kindString
	case 't', 'f':
		return kindBool
	case 'n':
		return kindNull
	}
	return kindNumber
}

// kindFor is the kind that a field takes.
func kindFor(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return kindFor(t.Elem())
	case t == reflect.TypeFor[Duration](), t.Kind() == reflect.String:
		return kindString
	case t == reflect.TypeFor[json.RawMessage]():
		return kindObject
	case t.Kind() == reflect.Slice:
		return kindArray
	}
	return kindNumber
}

// pointer is the JSON pointer of the member of that name.
func pointer(name string) string { return "/" + escapePointer(name) }

func escapePointer(name string) string {
	if len(name) > leadership.MaxElectionLength {
		name = strings.ToValidUTF8(name[:leadership.MaxElectionLength], "")
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
