package file_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/file"
)

// FuzzEntries expects each value to have one stored form: a decoder takes exactly what the encoder
// writes.
func FuzzEntries(f *testing.F) {
	day := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	event := leadership.Event{
		Election: "jobs", Revision: 1 << 40, Type: leadership.EventAcquired, At: day, LeaderID: "ann", PreviousLeaderID: "bob",
		Token: 2, RequestID: "r", Actor: "a", Reason: "because", Detail: `{"a":"<"}`,
	}
	carried := rule.Carried{Policy: `{"lockDelayMs":1,"x":"<\u2028"}`, Standing: `{"y":1}`, Needs: 2}
	for _, r := range []rule.Record{
		{Election: "jobs"},
		{
			Election: "jobs", Token: 7, Revision: 9, LeaderID: "ann", KeyHash: leadership.Key{1}.Hash(), LeaseDuration: time.Minute,
			AcquiredAt: day, HeartbeatAt: day.Add(1), EndsBy: day.Add(time.Hour), EndsBecause: leadership.EndsMaxTerm, Metadata: `{"a":[1,"<"]}`,
		},
		{Election: "jobs", Token: 7, Revision: 10, Deleted: true, EndedAt: day, LockFor: 1234567},
		{Election: "jobs", Token: -1, LockFor: -1, EndedAt: time.Date(-400, 1, 1, 0, 0, 0, 0, time.UTC), AcquiredAt: time.Date(9999, 1, 1, 0, 0, 0, 999_999_999, time.UTC)},
	} {
		f.Add(file.Entries(r, carried, event))
	}
	for _, payload := range logPayloads() {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if again, err := file.RoundTrip(payload); err == nil && !bytes.Equal(again, payload) {
			t.Fatalf("%x is written again as %x", payload, again)
		}
	})
}

// TestEntriesKeepEveryField compares the forms of records and events that differ in one field.
func TestEntriesKeepEveryField(t *testing.T) {
	t.Parallel()
	seen := map[string]string{string(file.Entries(rule.Record{}, rule.Carried{}, leadership.Event{})): "nothing"}
	for part := range 3 {
		for i, more := 0, true; more; i++ {
			var r rule.Record
			var c rule.Carried
			var e leadership.Event
			v := reflect.ValueOf([]any{&r, &c, &e}[part]).Elem()
			more = i+1 < v.NumField()
			name := fmt.Sprintf("%T.%s", v.Interface(), v.Type().Field(i).Name)
			if slices.Contains([]string{"rule.Record.Policy", "rule.Record.Standing", "rule.Record.Needs"}, name) {
				continue // they are kept as Carried
			}
			change(v.Field(i))
			payload := file.Entries(r, c, e)
			if other, known := seen[string(payload)]; known {
				t.Errorf("with %s it has the form of one with %s", name, other)
			}
			seen[string(payload)] = name
			if again, err := file.RoundTrip(payload); err != nil || !bytes.Equal(again, payload) {
				t.Errorf("with %s: %x is written again as %x, %v", name, payload, again, err)
			}
		}
	}
}

// change gives a field another value than zero.
func change(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.Kind() == reflect.Array:
		v.Index(v.Len() - 1).SetUint(1)
	default:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
	}
}

// logPayloads are entries of logs that differ in one field each.
func logPayloads() (all [][]byte) {
	day := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	id := rule.LogID{Election: "jobs", Kind: rule.LogJournal}
	for _, l := range []rule.Log{
		{ID: id, Text: "{}"},
		{ID: id, Text: "{}", Body: "b"},
		{ID: id, Text: "{}", WrittenAt: day},
		{ID: rule.LogID{Election: "jobs", Kind: rule.LogCheckpoint}, Text: "{}"},
		{ID: rule.LogID{Election: "job", Kind: rule.LogJournal}, Text: "{}"},
		{ID: id, Text: `{"a":"<\u2028"}`},
	} {
		for _, s := range []rule.Segment{{First: 1, Last: 1}, {First: 1, Last: 2}, {Last: 2}, {First: 1, Last: 1, Data: "x"}, {First: 1, Last: 1, At: day}} {
			all = append(all, file.LogEntries(l, s, 7))
		}
	}
	return append(all, file.LogEntries(rule.Log{ID: id, Text: "{}"}, rule.Segment{First: 1, Last: 1}, 8))
}

func TestEntriesKeepEveryFieldOfALog(t *testing.T) {
	t.Parallel()
	seen := make(map[string]int)
	for i, payload := range logPayloads() {
		if other, known := seen[string(payload)]; known {
			t.Errorf("log %d has the form of log %d", i, other)
		}
		seen[string(payload)] = i
		if again, err := file.RoundTrip(payload); err != nil || !bytes.Equal(again, payload) {
			t.Errorf("log %d: %x is written again as %x, %v", i, payload, again, err)
		}
	}
}

// FuzzReplay expects every payload to be read, or refused, without a panic.
func FuzzReplay(f *testing.F) {
	f.Add(file.Entries(rule.Record{Election: "jobs", Token: 1, Revision: 1}, rule.Carried{Needs: 1}, leadership.Event{Election: "jobs", Revision: 1}))
	for _, entry := range []string{"\x04\x04jobs\x02", "\x05\x04jobs\x02", "\x06\x04jobs\x02", "\x07\x01b\x00\x00", "\x08\x00\x00", "\x09\x01\x00", "\x0a", "\x0b\x04jobs\x07journal\x00\x00\x02{}\x00", "\x0c\x04jobs\x07journal\x02\x02\x00\x00\x01x", "\x0d\x04jobs\x07journal\x02", "\x0e"} {
		f.Add([]byte("\x00\x00" + entry))
	}
	f.Fuzz(func(_ *testing.T, payload []byte) { file.Replay(payload) })
}

// What no program writes is refused, also where each checksum is right.
func TestEntriesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	const (
		log     = "\x0b\x04jobs\x07journal\x00\x00\x02{}\x00"
		segment = "\x0c\x04jobs\x07journal\x02\x02\x00\x00\x01x"
		trim    = "\x0d\x04jobs\x07journal\x02"
	)
	key := leadership.KeyHash(bytes.Repeat([]byte{7}, 32))
	record := string(file.Entries(rule.Record{Election: "jobs", KeyHash: key}, rule.Carried{Needs: 1}, leadership.Event{Election: "jobs", Revision: 9}))
	event := func(r byte) string { return "\x03\x04jobs" + string(2*r) + strings.Repeat("\x00", 10) }
	page := func(events int, change func(event string) string) string {
		var b bytes.Buffer
		w, _ := flate.NewWriter(&b, flate.BestSpeed)
		for n := range events {
			e := change(strings.Replace(event(byte(n%60) + 1)[1:], "jobs", fmt.Sprintf("j%03d", n/60), 1))
			fmt.Fprint(w, string(rune(len(e))), e)
		}
		w.Close()
		return "\x09" + string(binary.AppendUvarint(nil, uint64(b.Len()))) + b.String()
	}
	const instant = "\x00\x00"
	for sound, payloads := range map[bool][]string{
		true: {
			"", record, "\x0a", event(1) + event(2), event(1) + event(3) + "\x06\x04jobs\x02", event(1) + event(3) + "\x05\x04jobs\x02\x02\x06",
			log + segment + trim, log + strings.Replace(segment, "\x02\x02", "\x00\x02", 1), page(256, strings.Clone),
		},
		false: {
			record[:6] + "\x06" + record[7:], strings.Replace(record, string(key[:]), strings.Repeat("\x00", 32), 1), "\x00", "\x0e", "\x0a\x0a",
			event(1) + event(1), event(0), strings.Replace(event(1), "\x04jobs", "\x00", 1), event(1) + event(3) + "\x06\x04jobs\x06",
			event(1) + event(3) + "\x05\x04jobs\x02\x06\x02", event(1) + event(3) + "\x05\x04jobs\x02\x02\x02",
			event(1) + event(3) + "\x05\x04jobs\x01\x04", event(1) + event(3) + "\x05\x04jobs\x01\x00", event(1) + event(3) + "\x05\x04jobs\x01\x08",
			log[:len(log)-1] + "\x05", strings.Replace(log, "\x02{}", "\x00", 1), log + strings.Replace(segment, "\x02\x02", "\x00\x00", 1),
			log + strings.Replace(segment, "\x02\x02", "\x01\x02", 1), log + strings.Replace(segment, "\x02\x02", "\x04\x02", 1), segment, trim,
			log + trim, page(255, strings.Clone), page(257, strings.Clone), page(256, func(e string) string { return e + "\x00" }),
			page(256, func(e string) string { return e[:len(e)-1] }), page(256, func(string) string { return "" }), event(1) + page(256, strings.Clone),
			"\x09\x02xx",
		},
	} {
		for _, payload := range payloads {
			if err := file.Replay([]byte(instant + payload)); (err == nil) != sound {
				t.Errorf("%q: got %v; want an error: %v", payload, err, !sound)
			}
		}
	}
	for _, payload := range []string{"", "\x00\x80\x94\xeb\xdc\x03"} { // which has 1e9 nanoseconds
		if file.Replay([]byte(payload)) == nil {
			t.Errorf("the instant %x is taken", payload)
		}
	}
}

// FuzzFrame changes a byte of a frame, and expects that to be noticed.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("payload"), uint(3), byte(1))
	f.Add(bytes.Repeat([]byte("payload"), 200), uint(700), byte(128))
	f.Add(bytes.Repeat([]byte("x"), sector-16-5), uint(100), byte(1)) // it ends where its sector ends, and the file
	f.Fuzz(func(t *testing.T, payload []byte, at uint, flip byte) {
		if len(payload) == 0 {
			return // no commit is empty
		}
		frame := file.Frame(payload)
		content := append(frame, make([]byte, -len(frame)&15)...)
		if got, err := file.ReadFrame(content); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("got %x, %v; want %x", got, err, payload)
		}
		if flip == 0 {
			return
		}
		content[at%uint(len(content))] ^= flip
		if got, err := file.ReadFrame(content); err == nil {
			t.Fatalf("a changed byte was not noticed: got %x", got)
		}
	})
}

// FuzzOpen changes up to eight bytes of a folder in use. It is refused, or everything in it is as
// it was. The last commit has more than eight bytes in its last sector: zeros there would be what a
// power cut leaves of it.
func FuzzOpen(f *testing.F) {
	u := checkpointed(f)
	for end := u.LogEnd(); end%sector <= 32; end = u.LogEnd() {
		u.live(1)
	}
	end := uint(u.LogEnd())
	killed := copied(f, u.path)
	u.Close()
	want := u.reopened(copied(f, killed))
	files := []string{"state", "log-0000000002", "snapshot-0000000002"}
	f.Add(uint(0), uint(36), []byte{1})
	f.Add(uint(1), end+600, []byte{1})
	f.Add(uint(1), end-3, []byte{0, 0, 0, 0, 0})
	f.Add(uint(2), uint(100), []byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, which, at uint, put []byte) {
		path := copied(t, killed)
		name := filepath.Join(path, files[which%3])
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		before := bytes.Clone(content)
		copy(content[at%uint(len(content)):], put[:min(len(put), 8)])
		require.NoError(t, os.WriteFile(name, content, 0o600))
		s, err := file.Open(path, u.config)
		if err != nil {
			if bytes.Equal(before, content) {
				t.Fatal(err)
			}
			return
		}
		defer s.Close()
		if got := dump(t, s); got != want {
			t.Fatalf("%s from byte %d on is %x: got\n%s\nwant\n%s", name, at, put, got, want)
		}
	})
}
