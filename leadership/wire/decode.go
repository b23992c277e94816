package wire

import (
	"bytes"
	"encoding/json"
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
	v := reflect.ValueOf(into).Elem()
	fields := fieldsOf(v.Type())
	given := members(text)
	var errs []error
	for _, f := range fields {
		at := slices.IndexFunc(given, func(m member) bool { return string(m.name) == f.name })
		switch {
		case at >= 0:
			errs = append(errs, f.decode(given[at].value, v.FieldByIndex(f.index)))
			given = slices.Delete(given, at, at+1)
		case f.required:
			errs = append(errs, malformed(pointer(f.name), "%s is missing", f.name))
		}
	}
	return firstOf(append(errs, unknown(given, fields)))
}

// unknown refuses members that no field is for: the first of them by name.
func unknown(left []member, fields []field) error {
	if len(left) == 0 {
		return nil
	}
	first := string(slices.MinFunc(left, func(a, b member) int { return bytes.Compare(a.name, b.name) }).name)
	var known []string
	for _, f := range fields {
		known = append(known, f.name)
	}
	return malformed(pointer(first), "%s is not known here; there are: %s", Quote(first), strings.Join(known, ", "))
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// decode reads a member into its field. Its errors repeat nothing of a string but a duration: it might be a key.
func (f field) decode(text []byte, into reflect.Value) error {
	got := kindOf(text)
	switch {
	case got == kindNull:
		return malformed(pointer(f.name), "%s must be %s, not null; leave it out if there is nothing to say", f.name, f.kind)
	case got != f.kind:
		return malformed(pointer(f.name), "%s must be %s, not %s", f.name, f.kind, got)
	case f.entries:
		texts := elements(text)
		into.Set(reflect.MakeSlice(into.Type(), len(texts), len(texts)))
		for i, text := range texts {
			into.Index(i).Addr().Interface().(entry).read(text)
		}
		return nil
	case f.text && bytes.IndexByte(text, '\\') < 0:
		into.SetString(string(text[1 : len(text)-1]))
		return nil
	}
	err := json.Unmarshal(text, into.Addr().Interface())
	switch {
	case err == nil:
		return nil
	case f.kind == kindNumber:
		return malformed(pointer(f.name), "%s must be an integer of at most 64 bits, not %s", f.name, Quote(string(text)))
	}
	return malformed(pointer(f.name), "%s %v", f.name, err)
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
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
