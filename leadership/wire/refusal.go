package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// malformed returns the InvalidArgument error for a document; pointer is the place.
func malformed(pointer, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: pointer, Detail: fmt.Sprintf(format, args...)}
}

// refusal turns an error of package json into an InvalidArgument error with a sentence for people.
func refusal(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return malformedText(syntax)
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return malformed("", "the body cannot be read: %v", err)
	}
	at, name := shorten(semantic.JSONPointer), nameOf(semantic.JSONPointer)
	kind := wrongKind{sent: semantic.JSONKind, field: semantic.GoType}
	var own sentence
	var refused *leadership.Error
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return malformed(at, "unknown field %s; %s", Quote(name), fields(semantic.GoType))
	case errors.As(err, &own):
		return malformed(at, "%s %s", name, own)
	case errors.As(err, &refused):
		return malformed(at, "%s", refused.Detail)
	case errors.Is(err, strconv.ErrSyntax), errors.Is(err, strconv.ErrRange):
		return malformed(at, "%s must be an integer of at most 64 bits, not %s", name, Quote(string(semantic.JSONValue)))
	}
	errors.As(err, &kind) // this package's error says more than json's
	if (name == "data" || name == "result") && kind.sent == jsontext.KindNull {
		return malformed(at, "%s is any JSON but null; send an empty object if there is nothing to say", name)
	}
	if at == "" {
		return malformed("", "send a JSON object, not %s", kindOf(kind.sent))
	}
	return malformed(at, "%s %v", name, kind)
}

// nameOf returns the name of a field for an error text; an array element is "array/index".
func nameOf(p jsontext.Pointer) string {
	name := p.LastToken()
	if _, err := strconv.Atoi(name); err == nil && p.Parent() != "" {
		return p.Parent().LastToken() + "/" + name
	}
	return name
}

// sentence is an error in a field: the rest of a sentence that begins with the field's name.
type sentence string

func (s sentence) Error() string { return string(s) }

// wrongKind is the error of a field that was sent as another kind of JSON value.
type wrongKind struct {
	sent  jsontext.Kind
	field reflect.Type
}

func (w wrongKind) Error() string {
	text := "must be " + kindFor(w.field) + ", not " + kindOf(w.sent)
	if w.sent == jsontext.KindNull {
		text += "; leave it out if you have nothing to say"
	}
	return text
}

// malformedText refuses a text that is not exactly one JSON value.
func malformedText(err *jsontext.SyntacticError) error {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return malformed(shorten(err.JSONPointer), "the field %s is there twice; send it once", Quote(err.JSONPointer.LastToken()))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("", "the body is not one JSON object: it ends before the object does")
	}
	what := err.Err.Error()
	if half := "invalid surrogate pair"; strings.HasPrefix(what, half) {
		what = half // the rest repeats what follows in the string
	}
	return malformed("", "the body is not one JSON object in UTF-8: %s, at byte %d", what, err.ByteOffset)
}

// shorten cuts a pointer that is longer than maxPointer.
func shorten(p jsontext.Pointer) string {
	if len(p) > maxPointer {
		return strings.ToValidUTF8(string(p[:maxPointer]), "")
	}
	return string(p)
}

// maxPointer is how many bytes of a pointer an error repeats.
const maxPointer = 128

// kinds are the names of JSON values in error texts, except for true and false.
var kinds = map[jsontext.Kind]string{
	jsontext.KindBeginObject: "an object",
	jsontext.KindBeginArray:  "an array",
	jsontext.KindString:      "a string",
	jsontext.KindNumber:      "a number",
	jsontext.KindNull:        "null",
}

func kindOf(k jsontext.Kind) string { return cmp.Or(kinds[k], "true or false") }

// kindFor returns the name of the kind of JSON value that a field takes.
func kindFor(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return kindFor(t.Elem())
	case t == reflect.TypeFor[Duration]():
		return `a string such as "30s"`
	case t == reflect.TypeFor[jsontext.Value](), t.Kind() == reflect.Struct:
		return "an object"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Slice:
		return "an array"
	case t.Kind() == reflect.Bool:
		return "true or false"
	}
	return "a number"
}

// fields lists the fields of a document, in the order of its struct.
func fields(t reflect.Type) string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	if names == nil {
		return "there are no fields here"
	}
	return "the fields here are " + strings.Join(names, ", ")
}

// Quote quotes a string that a caller sent, cut to a length that suits a log line.
func Quote(s string) string {
	const limit = 64
	if len(s) > limit {
		return strconv.Quote(s[:limit]) + "…"
	}
	return strconv.Quote(s)
}
