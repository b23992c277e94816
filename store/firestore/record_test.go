package firestore

import (
	"errors"
	"maps"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"regent/leadership"
	"regent/leadership/rule"
)

var epoch = time.Date(2031, 5, 6, 7, 8, 9, 123456000, time.UTC)

func heldRecord() rule.Record {
	return rule.Record{
		Election: "jobs",
		Token:    leadership.MaxToken,
		Revision: 1 << 54,
		Needs:    1,
		Policy: rule.Policy{
			Config:  leadership.Config{LeaseDuration: 45 * time.Second, LockDelay: 1500 * time.Millisecond},
			Unknown: `{"colour":"red"}`,
		},
		Standing:      rule.Standing{Unknown: `{"weather":[{"n":1.0}]}`},
		EndsBy:        epoch.Add(time.Hour),
		EndsBecause:   leadership.EndsMaxTerm,
		LeaderID:      "agent-7b3f",
		KeyHash:       leadership.Key{1, 2, 3}.Hash(),
		LeaseDuration: leadership.MaxLeaseDuration,
		AcquiredAt:    epoch.Add(-time.Hour),
		HeartbeatAt:   epoch,
		Metadata:      `{"address":"10.0.0.7:8080","n":9007199254740993}`,
	}
}

func vacantRecord() rule.Record {
	return rule.Record{
		Election: "jobs",
		Token:    3,
		Revision: 9,
		Needs:    1,
		Deleted:  true,
		EndedAt:  epoch,
		LockFor:  12*time.Second + 345*time.Microsecond,
	}
}

func encoded(r rule.Record, heartbeats int64, w writeOf) values {
	carried, err := rule.Codec{}.Encode(&r)
	if err != nil {
		panic(err)
	}
	return encodeRecord(r, carried, heartbeats, w)
}

func decoded(id string, v values, updated time.Time) (document, error) {
	return decodeRecord(id, v, updated, rule.Codec{})
}

func TestARecordComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	later := epoch.Add(time.Minute)
	never := rule.Record{Election: "jobs", Revision: 1, Needs: 1, Policy: rule.Policy{Config: leadership.Config{LeaseDuration: time.Second}}}
	for name, c := range map[string]struct {
		record    rule.Record
		write     writeOf
		heartbeat time.Time
	}{
		"held, after a change that is no heartbeat": {heldRecord(), writeOf{}, epoch},
		"held, granted":                 {heldRecord(), writeOf{heartbeat: true}, later},
		"held, renewed in time":         {heldRecord(), writeOf{heartbeat: true, due: later.Add(time.Microsecond)}, later},
		"held, renewed at the very end": {heldRecord(), writeOf{heartbeat: true, due: later}, later.Add(-leadership.MaxLeaseDuration)},
		"held, renewed too late":        {heldRecord(), writeOf{heartbeat: true, due: epoch}, epoch.Add(-leadership.MaxLeaseDuration)},
		"vacant, after a forced end":    {vacantRecord(), writeOf{}, time.Time{}},
		"never led":                     {never, writeOf{}, time.Time{}},
	} {
		want := document{record: c.record, heartbeats: 7, updated: later}
		want.record.HeartbeatAt = c.heartbeat
		if name == "held, granted" {
			want.record.AcquiredAt = later
		}
		got, err := decoded("jobs", encoded(c.record, 7, c.write), later)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(document{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOnlyADocumentThatIsToBeRetiredSaysWhen(t *testing.T) {
	t.Parallel()
	retiring := vacantRecord()
	retiring.Deleted, retiring.Policy.RetireAfter = false, time.Hour
	held := heldRecord()
	held.Policy.RetireAfter = time.Hour
	tombstone := retiring
	tombstone.Deleted = true
	never := rule.Record{Election: "jobs", Revision: 1, Needs: 1, Policy: retiring.Policy}
	for name, c := range map[string]struct {
		record rule.Record
		due    bool
	}{
		"vacant": {retiring, true}, "held": {held, false}, "deleted": {tombstone, false}, "never led": {never, false}, "without the policy": {vacantRecord(), false},
	} {
		v := encoded(c.record, 7, writeOf{})
		at := v[retireField].GetTimestampValue()
		if c.due != (at != nil) {
			t.Errorf("%s: retireAt is %v", name, v[retireField])
		}
		if c.due && !at.AsTime().Equal(epoch.Add(time.Hour)) {
			t.Errorf("%s: it is due at %v", name, at.AsTime())
		}
		got, err := decoded("jobs", v, epoch)
		if diff := cmp.Diff(c.record, got.record); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	v := encoded(retiring, 7, writeOf{})
	v[retireField] = instant(time.Time{})
	if got, err := decoded("jobs", v, epoch); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("a null: got %+v, %v", got, err)
	}
}

func TestALockIsNeverStoredShorterThanItIs(t *testing.T) {
	t.Parallel()
	r := vacantRecord()
	r.LockFor = time.Second + time.Nanosecond
	got, err := decoded("jobs", encoded(r, 0, writeOf{}), epoch)
	if want := time.Second + time.Microsecond; err != nil || got.record.LockFor != want {
		t.Errorf("got %v, %v; want %v", got.record.LockFor, err, want)
	}
}

func TestARecordWithoutOneOfItsFieldsOrWithAnotherTypeIsRefused(t *testing.T) {
	t.Parallel()
	whole := encoded(heldRecord(), 1, writeOf{})
	array := &firestorepb.Value{ValueType: &firestorepb.Value_ArrayValue{}}
	for name := range whole {
		without, other, empty := maps.Clone(whole), maps.Clone(whole), maps.Clone(whole)
		delete(without, name)
		other[name], empty[name] = array, &firestorepb.Value{}
		for what, v := range map[string]values{"another type": other, "no type": empty, "missing": without} {
			if what == "missing" && name == renewedField {
				continue // it is sparse: then the lease starts at update_time
			}
			if got, err := decoded("jobs", v, epoch); err == nil {
				t.Errorf("%s, %s: it is read as %+v", name, what, got)
			}
		}
	}
}

func TestARecordThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	null := instant(time.Time{})
	for what, spoil := range map[string]func(values){
		"an older schema":           func(v values) { v[schemaField] = integer(0) },
		"a newer schema":            func(v values) { v[schemaField] = integer(2) },
		"an unknown field":          func(v values) { v["note"] = text("") },
		"revision zero":             func(v values) { v[revisionField] = integer(0) },
		"a short key hash":          func(v values) { v[keyHashField] = bytesValue([]byte("short")) },
		"a long key hash":           func(v values) { v[keyHashField] = bytesValue(make([]byte, 33)) },
		"a negative duration":       func(v values) { v[leaseField] = integer(-1) },
		"a duration without bounds": func(v values) { v[lockForField] = integer(math.MaxInt64) },
		"metadata that is no JSON":  func(v values) { v[metadataField] = text("{") },
		"metadata that is a list":   func(v values) { v[metadataField] = text("[]") },
		"a start that is null":      func(v values) { v[renewedField] = null },
		"two starts":                func(v values) { v[dueField] = instant(epoch) },
		"a start without a leader": func(v values) {
			delete(v, renewedField)
			v[leaderField], v[dueField] = text(""), instant(epoch)
		},
		"a time that is none": func(v values) {
			v[endedField] = &firestorepb.Value{ValueType: &firestorepb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Nanos: -1}}}
		},
	} {
		v := encoded(heldRecord(), 1, writeOf{})
		spoil(v)
		if got, err := decoded("jobs", v, epoch); err == nil {
			t.Errorf("%s: it is read as %+v", what, got)
		}
	}
	if _, err := decoded("No Election", encoded(heldRecord(), 1, writeOf{}), epoch); err == nil {
		t.Error("a name that no election can have is read")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, v := range []values{
		encoded(heldRecord(), 1, writeOf{}),
		encoded(heldRecord(), 1, writeOf{heartbeat: true}),
		encoded(heldRecord(), 1, writeOf{heartbeat: true, due: epoch}),
		encoded(vacantRecord(), 0, writeOf{}),
		{schemaField: integer(1)},
	} {
		f.Add("jobs", true, marshal(f, v), epoch.UnixMicro())
	}
	f.Add("jobs", false, marshal(f, values{leaseField: integer(1), tokenField: integer(1)}), epoch.UnixMicro())
	f.Fuzz(func(t *testing.T, id string, whole bool, fields []byte, updated int64) {
		at := time.UnixMicro(updated).UTC()
		v := unmarshal(t, fields)
		if !whole { // only some fields are others
			some := v
			v = encoded(heldRecord(), 1, writeOf{heartbeat: true, due: epoch})
			maps.Copy(v, some)
		}
		doc, err := decoded(id, v, at)
		if err != nil {
			return
		}
		if _, written := v[renewedField]; !written && doc.record.HeartbeatAt.After(at) {
			t.Errorf("the lease starts at %v, after the write of %v", doc.record.HeartbeatAt, at)
		}
		again, err := decoded(id, encoded(doc.record, doc.heartbeats, writeOf{}), at)
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v\n%+v", err, doc)
		}
		if doc.record.LeaderID != "" && doc.record.HeartbeatAt.IsZero() {
			return // there is no such time in a database
		}
		if diff := cmp.Diff(micros(doc.record), micros(again.record)); diff != "" {
			t.Errorf("read, written and read again (-want +got):\n%s", diff)
		}
	})
}

// micros is r with its times as Firestore keeps them.
func micros(r rule.Record) rule.Record {
	for _, at := range []*time.Time{&r.AcquiredAt, &r.HeartbeatAt, &r.EndedAt, &r.EndsBy} {
		*at = at.Truncate(precision)
	}
	return r
}

// marshal is the wire form of a document's fields.
func marshal(tb testing.TB, v values) []byte {
	tb.Helper()
	b, err := proto.Marshal(&firestorepb.Document{Fields: v})
	require.NoError(tb, err)
	return b
}

func unmarshal(t *testing.T, b []byte) values {
	var doc firestorepb.Document
	if proto.Unmarshal(b, &doc) != nil {
		t.Skip("the fuzzer made bytes that are no document, so there is nothing to decode")
	}
	return doc.Fields
}
