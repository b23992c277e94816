package file_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"regent/leadership"
	"regent/store/file"
)

// A decoder must take exactly what the encoder writes: each value has one stored form.

func FuzzDecodeRecord(f *testing.F) {
	day := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, r := range []leadership.Record{
		{Election: "jobs"},
		{
			Election: "jobs", Token: 7, Revision: 9, LeaderID: "ann", KeyHash: leadership.Key{1}.Hash(), LeaseDuration: time.Minute,
			AcquiredAt: day, EndsBy: day.Add(time.Hour), EndsBecause: leadership.EndsMaxTerm, Metadata: `{"a":[1,"<"]}`,
		},
		{Election: "jobs", Token: 7, Revision: 10, Deleted: true, EndedAt: day, LockFor: 1234567},
	} {
		value, err := file.EncodeRecord(r, leadership.Carried{Policy: `{"lockDelayMs":1,"x":"<\u2028"}`, Standing: `{"y":1}`, Needs: 2})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
	}
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`null`))
	f.Add([]byte(recordBefore))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, carried, err := file.DecodeRecord("jobs", value)
		if err != nil {
			return
		}
		again, err := file.EncodeRecord(r, carried)
		if err != nil || !bytes.Equal(again, value) && bytes.HasPrefix(value, []byte(`{"schema":2,`)) {
			t.Fatalf("%s is written again as %s, %v", value, again, err)
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	id := leadership.EventID{Election: "jobs", Revision: 3}
	value, err := file.EncodeEvent(leadership.Event{Type: leadership.EventAcquired, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), LeaderID: "ann", Token: 2, RequestID: "r", Actor: "a", Reason: "because", Detail: `{"a":"<"}`})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Add([]byte(`{"schema":2,"type":"acquired"}`))
	f.Add([]byte(eventBefore))
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := file.DecodeEvent(id, value)
		if err != nil {
			return
		}
		again, err := file.EncodeEvent(e)
		if err != nil || !bytes.Equal(again, value) && bytes.HasPrefix(value, []byte(`{"schema":2,`)) || e.ID() != id {
			t.Fatalf("%s is written again as %s, %v", value, again, err)
		}
	})
}

func FuzzDecodeEventKey(f *testing.F) {
	f.Add(file.EventKey(leadership.EventID{Election: "jobs", Revision: 1 << 40}))
	f.Add([]byte("jobs\x00"))
	f.Fuzz(func(t *testing.T, key []byte) {
		if id, err := file.DecodeEventKey(key); err == nil && !bytes.Equal(file.EventKey(id), key) {
			t.Fatalf("%x is the key of %+v, whose key is %x", key, id, file.EventKey(id))
		}
	})
}

func FuzzDecodeTimeKey(f *testing.F) {
	f.Add(file.TimeKey(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), file.EventKey(leadership.EventID{Election: "jobs", Revision: 7})))
	f.Add([]byte("jobs"))
	f.Fuzz(func(t *testing.T, key []byte) {
		if at, event, err := file.DecodeTimeKey(key); err == nil && !bytes.Equal(file.TimeKey(at, event), key) {
			t.Fatalf("%x is the key of %x at %v, whose key is %x", key, event, at, file.TimeKey(at, event))
		}
	})
}

// FuzzUnseal changes what was sealed, in its bytes or in its place, and expects that to be noticed.
func FuzzUnseal(f *testing.F) {
	f.Add([]byte("jobs"), []byte(`{"schema":1}`), uint(3), byte(1))
	f.Add([]byte("jobs"), []byte{}, uint(0), byte(128))
	f.Fuzz(func(t *testing.T, key, value []byte, at uint, flip byte) {
		sealed := file.Seal(key, value)
		if got, err := file.Unseal(key, sealed); err != nil || !bytes.Equal(got, value) {
			t.Fatalf("got %x, %v; want %x", got, err, value)
		}
		if flip == 0 {
			return
		}
		sealed[at%uint(len(sealed))] ^= flip
		if _, err := file.Unseal(key, sealed); err == nil {
			t.Fatal("a changed byte was not noticed")
		}
	})
}

// FuzzCheckPages changes eight bytes of a file that was in use. Whatever they were, the look at it
// ends, and without a panic.
func FuzzCheckPages(f *testing.F) {
	whole := bytes.TrimRight(used(f), "\x00")
	whole = append(whole, make([]byte, pageSize)...)
	whole = whole[:len(whole)/pageSize*pageSize]
	if err := file.CheckPages(bytes.NewReader(whole), int64(len(whole))); err != nil {
		f.Fatalf("the whole file: %v", err)
	}
	f.Add(uint(36), uint64(1))
	f.Add(uint(3*pageSize+8), uint64(0x01))
	f.Add(uint(4*pageSize+16), ^uint64(0))
	f.Fuzz(func(t *testing.T, at uint, change uint64) {
		content := bytes.Clone(whole)
		at %= uint(len(content) - 8)
		binary.NativeEndian.PutUint64(content[at:], binary.NativeEndian.Uint64(content[at:])^change)
		if err := file.CheckPages(bytes.NewReader(content), int64(len(content))); err == nil && change != 0 && at >= 16 && at < 64 {
			t.Fatal("a changed meta page was not noticed")
		}
	})
}
