package leadership

import (
	"errors"
	"strings"
	"testing"
)

func TestDescriptionIsOneShortLine(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("ä", maxTextBytes/2)
	for text, ok := range map[string]bool{
		"": true, "the weekly report": true, longest: true,
		longest + "a": false, "two\nlines": false, "a\x00b": false, "\xff": false,
	} {
		field, err := Config{Description: text}.validate()
		if (err == nil) != ok || err != nil && field != "description" {
			t.Errorf("%q: %q, %v; want accepted=%v", text, field, err, ok)
		}
		stored := Carried{Policy: mustEncode(t, map[string]string{"description": text}), Needs: 1}
		if err := (Codec{}).Decode(&Record{}, stored); (err == nil) != ok && text != "\xff" {
			t.Errorf("a stored %q: %v; want accepted=%v", text, err, ok)
		} else if err != nil && !errors.Is(err, RecordCorrupt) {
			t.Errorf("a stored %q: %v; want RECORD_CORRUPT", text, err)
		}
	}
}

func mustEncode(t *testing.T, v any) string {
	t.Helper()
	b, err := encodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
