package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// field is what a document may have, as the tags of its struct say.
type field struct {
	name     string
	required bool
	kind     string // of its value
	text     bool   // it is a string and reads itself in no way of its own
	entries  bool   // it is a slice of entries, that read themselves
	index    []int  // in the struct
}

// entry is an Entry of any type.
type entry interface{ read(text []byte) }

// described has the fields of each type of document, by its reflect.Type: they are the same for ever.
var described sync.Map

func fieldsOf(t reflect.Type) []field {
	if known, ok := described.Load(t); ok {
		return known.([]field)
	}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		own := reflect.PointerTo(f.Type).Implements(reflect.TypeFor[json.Unmarshaler]())
		fields = append(fields, field{
			name: name, required: options == "", kind: kindFor(f.Type), index: f.Index,
			text:    f.Type.Kind() == reflect.String && !own,
			entries: f.Type.Kind() == reflect.Slice && reflect.PointerTo(f.Type.Elem()).Implements(reflect.TypeFor[entry]()),
		})
	}
	described.Store(t, fields)
	return fields
}
