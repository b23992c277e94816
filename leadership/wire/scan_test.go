package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"unicode/utf8"
)

// FuzzScan holds what looks at a document in one pass to what reads it token by token.
func FuzzScan(f *testing.F) {
	for _, body := range []string{
		`{}`, ` { "a" : 1 , "b":[{"a":{}},"}",{"a":2}], "c":"\"" } `, `{"a":1,"a":2}`, `{"a":{"a":1,"b":1},"b":{"a":1,"a":1}}`,
		`{"a":[[],[[]]],"b":true,"":null}`, `{"\u0061":1,"a":2}`, `{"candidateId":"ann","key":"x","fencingToken":-0}`, `{"a":"}","b":"{","c":"[,]"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) || !json.Valid(body) || kindOf(body) != kindObject {
			return
		}
		w := walker{json.NewDecoder(bytes.NewReader(body))}
		if err := w.value("", 0); err != nil {
			if plain(body) {
				t.Errorf("%q is plain, and %v", body, err)
			}
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		for _, m := range members(body) {
			got[string(m.name)] = m.value
		}
		array := append(append([]byte("[ "), body...), " ,\t[],1,\"]\" , null ]"...)
		if parts := elements(array); len(parts) != 5 || !bytes.Equal(parts[0], bytes.TrimSpace(body)) || string(parts[3]) != `"]"` || string(parts[4]) != "null" {
			t.Errorf("%q has the elements %q", array, parts)
		}
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%q has the members %q, want %q", body, got, want)
		}
	})
}

// Whoever may send a quarter of a megabyte must not get a second of processor time for it.
func TestAnObjectOfManyNamesIsNotComparedNameByName(t *testing.T) {
	t.Parallel()
	var body bytes.Buffer
	for i := range 30_000 {
		fmt.Fprintf(&body, `,"%d":0`, i)
	}
	object := append([]byte("{"), append(body.Bytes()[1:], '}')...)
	if plain(object) {
		t.Error("it was compared name by name")
	}
	if err := wellFormed(object); err != nil {
		t.Error(err)
	}
}
