package wire

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// fill sets every field of a document to a value of its own. n is how many it has set.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(int64(*n), int64(*n)*1e6).UTC()))
	case v.Type() == reflect.TypeFor[jsontext.Value](), v.Type() == reflect.TypeFor[stdjson.RawMessage]():
		v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, *n))
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case v.Kind() == reflect.Interface: // the error of an entry, which is not written
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), n)
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprint("text", *n))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanFloat():
		v.SetFloat(float64(*n) / 2)
	case v.CanInt():
		v.SetInt(int64(*n))
	default:
		t.Fatalf("a field of the type %v", v.Type())
	}
}

// documents are those that are written or read without reflection.
func documents() []any {
	return []any{new(Lease), new(Grant), new(Result), new(Results), new(Event), new(LeaseRequest), new(ReleaseRequest), new(Renewal), new(Renewals), new(AcquireRequest)}
}

func TestEveryGeneratedDocumentIsTested(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("json_gen.go")
	require.NoError(t, err)
	tested := map[string]bool{}
	for _, v := range documents() {
		tested[reflect.TypeOf(v).Elem().Name()] = true
	}
	generated := map[string]bool{}
	for _, name := range regexp.MustCompile(`case \*(\w+):`).FindAllSubmatch(source, -1) {
		generated[string(name[1])] = true
	}
	assert.Empty(t, cmp.Diff(generated, tested), "generated (-) and tested (+) differ")
}

// requireWrittenAlike requires that a document is written without reflection as package json writes
// it, if it is at all.
func requireWrittenAlike(t *testing.T, v any) {
	t.Helper()
	text, known, failed := appendDocument(nil, v)
	if !known {
		return
	}
	var want bytes.Buffer
	err := json.MarshalWrite(&want, v, jsontext.AllowInvalidUTF8(true))
	if (err == nil) != (failed == nil) {
		t.Errorf("%+v: error %v, json has %v", v, failed, err)
	}
	if err != nil || failed != nil {
		return
	}
	assert.Empty(t, cmp.Diff(want.String(), string(text)), "%T: json (-) and without reflection (+) differ", v)
}

// Every member is written, alone and beside all others, and every document with all of its members
// is read without reflection.
func TestDocumentsAreWrittenAndReadWithoutReflectionAsByJSON(t *testing.T) {
	t.Parallel()
	for i, empty := range documents() {
		requireWrittenAlike(t, empty)
		full := documents()[i]
		fill(t, reflect.ValueOf(full).Elem(), new(int))
		requireWrittenAlike(t, full)
		requireWrittenAlike(t, reflect.ValueOf(full).Elem().Interface())
		var text bytes.Buffer
		require.NoError(t, json.MarshalWrite(&text, full))
		if taken := requireReadAlike(t, text.String()); !taken[reflect.TypeOf(full)] && isRead(full) {
			t.Errorf("%T is not read without reflection: %s", full, text.Bytes())
		}
		for j := range reflect.TypeOf(full).Elem().NumField() {
			one := documents()[i]
			fill(t, reflect.ValueOf(one).Elem().Field(j), new(int))
			requireWrittenAlike(t, one)
			text, _ := json.Marshal(one)
			requireReadAlike(t, string(text))
		}
	}
}

// isRead reports whether such documents are read without reflection.
func isRead(document any) bool {
	switch document.(type) {
	case *Result, *Event:
		return false
	}
	return true
}

func TestStringsAndInstantsAreWrittenAsJSONWritesThem(t *testing.T) {
	t.Parallel()
	all := func(w Lease) {
		for _, v := range []any{&w, &Grant{Lease: w, Key: w.Note}, &Event{Reason: w.Note, Detail: w.Metadata, At: w.AcquiredAt}, &Result{Lease: &w}, &LeaseRequest{Key: w.Note, Report: w.Metadata}} {
			requireWrittenAlike(t, v)
		}
	}
	for _, name := range []string{"", "a\"b\\", "<é>\u2028", "\x00\x1f\x7f", "\xff", strings.Repeat("x", 300)} {
		w := NewLease(held())
		w.Note, w.Configuration.Description, w.LeaderID = name, name, leadership.CandidateID(name)
		w.Metadata, _ = json.Marshal(map[string]string{"name": name}, jsontext.AllowInvalidUTF8(true))
		all(w)
	}
	for _, metadata := range []string{` { "a" : 1 } `, `{"a":"\u2028\u00e9\/"}`, `[]`, `{"a":"\`, ``} {
		w := NewLease(vacant())
		w.Metadata = jsontext.Value(metadata)
		all(w)
	}
	for _, year := range []int{-1, 0, 9999, 10000} {
		w := NewLease(held())
		w.AcquiredAt = time.Date(year, 2, 3, 4, 5, 6, 7, time.UTC)
		all(w)
	}
}
