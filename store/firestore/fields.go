package firestore

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// precision is how finely Firestore keeps a time.
const precision = time.Microsecond

// values are the fields of a document.
type values map[string]*firestorepb.Value

func integer(n int64) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_IntegerValue{IntegerValue: n}}
}

func text(s string) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_StringValue{StringValue: s}}
}

func boolean(b bool) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_BooleanValue{BooleanValue: b}}
}

func bytesValue(b []byte) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_BytesValue{BytesValue: b}}
}

// instant is a timestamp, or null for the zero time.
func instant(t time.Time) *firestorepb.Value {
	if t.IsZero() {
		return &firestorepb.Value{ValueType: &firestorepb.Value_NullValue{}}
	}
	return &firestorepb.Value{ValueType: &firestorepb.Value_TimestampValue{TimestampValue: stamp(t)}}
}

func reference(name string) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_ReferenceValue{ReferenceValue: name}}
}

// stamp is t in Firestore's precision; Firestore refuses a finer one.
func stamp(t time.Time) *timestamppb.Timestamp { return timestamppb.New(t.Truncate(precision)) }

// span returns a duration in whole units, rounded up: a lock may be longer than asked, never
// shorter.
func span(d, unit time.Duration) *firestorepb.Value {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return integer(n)
}

// fields reads a document strictly. It takes the fields out one by one and keeps the first error;
// values that it returns after that mean nothing.
type fields struct {
	left values
	err  error
}

func readFields(v values) *fields { return &fields{left: maps.Clone(v)} }

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// take removes and returns a field, which must be there.
func (f *fields) take(name string) *firestorepb.Value {
	v, ok := f.left[name]
	if !ok {
		f.fail(fmt.Errorf("field %s is missing", name))
	}
	delete(f.left, name)
	return v
}

func (f *fields) mistyped(name, want string) { f.fail(fmt.Errorf("field %s is not %s", name, want)) }

// typed is take for a field whose value must be a V.
func typed[V any](f *fields, name, want string) *firestorepb.Value {
	v := f.take(name)
	if _, is := any(v.GetValueType()).(V); !is {
		f.mistyped(name, want)
	}
	return v
}

func (f *fields) integer(name string) int64 {
	return typed[*firestorepb.Value_IntegerValue](f, name, "an integer").GetIntegerValue()
}

func (f *fields) text(name string) string {
	return typed[*firestorepb.Value_StringValue](f, name, "a string").GetStringValue()
}

func (f *fields) boolean(name string) bool {
	return typed[*firestorepb.Value_BooleanValue](f, name, "a boolean").GetBooleanValue()
}

func (f *fields) bytes(name string) []byte {
	return typed[*firestorepb.Value_BytesValue](f, name, "bytes").GetBytesValue()
}

// instant reads a timestamp, or null as the zero time.
func (f *fields) instant(name string) time.Time {
	switch v := f.take(name).GetValueType().(type) {
	case *firestorepb.Value_NullValue:
		return time.Time{}
	case *firestorepb.Value_TimestampValue:
		if v.TimestampValue.CheckValid() == nil {
			return v.TimestampValue.AsTime()
		}
	}
	f.mistyped(name, "a timestamp")
	return time.Time{}
}

// moment reads a timestamp that is not null.
func (f *fields) moment(name string) time.Time {
	t := f.instant(name)
	if t.IsZero() {
		f.mistyped(name, "a timestamp")
	}
	return t
}

// sparse reads a timestamp that may be missing, as the zero time. Null is an error.
func (f *fields) sparse(name string) time.Time {
	if _, ok := f.left[name]; !ok {
		return time.Time{}
	}
	return f.moment(name)
}

func (f *fields) span(name string, unit time.Duration) time.Duration {
	n := f.integer(name)
	if n < 0 || n > math.MaxInt64/int64(unit) {
		f.fail(fmt.Errorf("field %s is out of range", name))
		return 0
	}
	return time.Duration(n) * unit
}

// schema reads the version. Read it first: the fields of an unknown version mean nothing.
func (f *fields) schema(known int64) {
	if v := f.integer(schemaField); v != known {
		f.fail(fmt.Errorf("its schema is %d, and this program reads %d: use the version of regent that wrote it, or a newer one", v, known))
	}
}

// done returns the first error. A field that was not read is one, too: it would be lost at the next
// write.
func (f *fields) done() error {
	if f.err == nil && len(f.left) > 0 {
		f.fail(fmt.Errorf("field %.64q is unknown", slices.Min(slices.Collect(maps.Keys(f.left)))))
	}
	return f.err
}
