package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

// fill sets every field of a document to a value of its own. n is how many it has set.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(int64(*n), int64(*n)*1e6).UTC()))
	case v.Type() == reflect.TypeFor[jsontext.Value]():
		v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, *n))
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
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

// alike holds a document that was written field by field to what package json writes.
func alike(t *testing.T, v any, text []byte, failed error) {
	t.Helper()
	var want bytes.Buffer
	err := json.MarshalWrite(&want, v, jsontext.AllowInvalidUTF8(true))
	if (err == nil) != (failed == nil) {
		t.Errorf("%+v: error %v, json has %v", v, failed, err)
	}
	if err != nil || failed != nil {
		return
	}
	if diff := cmp.Diff(want.String(), string(text)); diff != "" {
		t.Errorf("json (-) and field by field (+) differ:\n%s", diff)
	}
}

// allAlike is alike for all documents that are written field by field.
func allAlike(t *testing.T, l *Lease, g *Grant, e *Event, r *Result) {
	t.Helper()
	text, err := AppendLease(nil, l)
	alike(t, l, text, err)
	text, err = AppendGrant(nil, g)
	alike(t, g, text, err)
	text, err = appendEvent(nil, e)
	alike(t, e, text, err)
	text, err = AppendResult(nil, r.Election, r.Lease, r.Error)
	alike(t, r, text, err)
	for _, v := range []any{l, g, e, *e} {
		text, err := Marshal(v)
		alike(t, v, text, err)
	}
}

func TestDocumentsAreWrittenFieldByFieldAsJSONWritesThem(t *testing.T) {
	t.Parallel()
	var l Lease
	var g Grant
	var e Event
	var r Result
	allAlike(t, &l, &g, &e, &r)
	for _, v := range []any{&l, &g, &e, &r} {
		fill(t, reflect.ValueOf(v).Elem(), new(int))
	}
	allAlike(t, &l, &g, &e, &r)
	for _, name := range []string{"", "a\"b\\", "<é>\u2028", "\x00\x1f\x7f", "\xff", strings.Repeat("x", 300)} {
		w := NewLease(held())
		w.Note, w.Configuration.Description, w.LeaderID = name, name, leadership.CandidateID(name)
		w.Metadata, _ = json.Marshal(map[string]string{"name": name}, jsontext.AllowInvalidUTF8(true))
		allAlike(t, &w, &Grant{Lease: w, Key: name}, &Event{Reason: name, Detail: w.Metadata}, &Result{Lease: &w})
	}
	for _, metadata := range []string{` { "a" : 1 } `, `{"a":"\u2028\u00e9\/"}`, `[]`, `{"a":"\`} {
		w := NewLease(vacant())
		w.Metadata = jsontext.Value(metadata)
		allAlike(t, &w, &Grant{Lease: w}, &Event{Detail: w.Metadata}, &Result{Lease: &w})
	}
	for _, year := range []int{-1, 0, 9999, 10000} {
		w := NewLease(held())
		w.AcquiredAt = time.Date(year, 2, 3, 4, 5, 6, 7, time.UTC)
		allAlike(t, &w, &Grant{Lease: w}, &Event{At: w.AcquiredAt}, &Result{Lease: &w})
	}
}
