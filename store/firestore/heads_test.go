package firestore

import (
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

func headOf(e leadership.Election, second, bytes int) head {
	return head{log: rule.Log{
		ID: rule.LogID{Election: e, Kind: rule.LogJournal}, Text: strings.Repeat("x", bytes), WrittenAt: epoch.Add(time.Duration(second) * time.Second),
	}}
}

func TestHeadsAreForgottenBeyondTheirNumberAndTheirBytes(t *testing.T) {
	t.Parallel()
	h := newHeads(3, 100)
	known := func(want string) {
		t.Helper()
		var got strings.Builder
		for _, e := range []leadership.Election{"a", "b", "c", "d"} {
			if _, ok := h.known.Peek(headOf(e, 0, 0).log.ID); ok {
				got.WriteString(string(e))
			}
		}
		if got.String() != want {
			t.Errorf("it knows %q, want %q", got.String(), want)
		}
		sum := 0
		for _, one := range h.known.Values() {
			sum += one.size()
		}
		if sum != h.bytes {
			t.Errorf("it counts %d bytes, and has %d", h.bytes, sum)
		}
	}
	for _, e := range []leadership.Election{"a", "b", "c"} {
		h.remember(headOf(e, 1, 10))
	}
	known("abc")
	h.remember(headOf("d", 1, 10))
	known("bcd")
	h.remember(headOf("b", 2, 70)) // in place of 10
	known("bcd")
	h.remember(headOf("c", 2, 30)) // 110 with d and b: the oldest goes
	known("bc")
	h.remember(headOf("a", 1, 101)) // too large for all of them
	known("")
}

func TestALaterHeadIsNotForgottenForAnEarlierOne(t *testing.T) {
	t.Parallel()
	h := newHeads(3, 100)
	h.remember(headOf("a", 2, 10))
	h.remember(headOf("a", 1, 20))
	h.forget(headOf("a", 1, 20))
	if got, ok := h.get(headOf("a", 0, 0).log.ID); !ok || got != headOf("a", 2, 10) {
		t.Errorf("got %+v, %v; want the later version", got, ok)
	}
	h.forget(headOf("a", 2, 10))
	if _, ok := h.get(headOf("a", 0, 0).log.ID); ok || h.bytes != 0 {
		t.Errorf("it was not forgotten, or %d bytes were", h.bytes)
	}
}
