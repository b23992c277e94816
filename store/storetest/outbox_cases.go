package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
)

var outboxCases = []contractCase{
	{"events wait to be announced, in order, until they are marked", func(h *handles) {
		for i := range 3 {
			h.update(h.a, "a", put(time.Duration(i+1)*time.Second))
			h.update(h.b, "b", put(time.Duration(i+1)*time.Second))
		}
		h.waiting("a1 a2 a3 b1 b2 b3")
		h.mark(leadership.EventID{Election: "a", Revision: 1}, leadership.EventID{Election: "b", Revision: 1}, leadership.EventID{Election: "b", Revision: 2})
		h.waiting("a2 a3 b3")
		h.mark(leadership.EventID{Election: "a", Revision: 1}, leadership.EventID{Election: "unseen", Revision: 1}, leadership.EventID{Election: "a", Revision: 9})
		h.waiting("a2 a3 b3")
		h.mark(leadership.EventID{Election: "a", Revision: 2}, leadership.EventID{Election: "a", Revision: 3}, leadership.EventID{Election: "b", Revision: 3})
		h.waiting("")
		if got := h.events(h.a, "a"); len(got) != 3 {
			h.Errorf("the history has %d events, want 3", len(got))
		}
		h.update(h.a, "a", put(time.Minute))
		h.waiting("a4")
	}},
	{"of the events that wait, no more are read than asked for, and the first of each election first", func(h *handles) {
		for i := range 5 {
			h.update(h.a, "a", put(time.Duration(i+1)*time.Second))
		}
		events, err := h.b.Unannounced(h.Context(), 2)
		if err != nil || len(events) != 2 || events[0].Revision != 1 || events[1].Revision != 2 {
			h.Errorf("got %v, %v; want revisions 1 and 2", events, err)
		}
	}},
}

func (h *handles) mark(ids ...leadership.EventID) {
	h.Helper()
	if err := h.a.MarkAnnounced(h.Context(), ids); err != nil {
		h.Fatal(err)
	}
}

// waiting expects these events of elections a and b, each election's in order.
func (h *handles) waiting(want string) {
	h.Helper()
	events, err := h.b.Unannounced(h.Context(), 100)
	if err != nil {
		h.Fatal(err)
	}
	slices.SortStableFunc(events, func(x, y leadership.Event) int { return cmp.Compare(x.Election, y.Election) })
	got := ""
	for _, e := range events {
		if got != "" {
			got += " "
		}
		got += fmt.Sprintf("%s%d", e.Election, e.Revision)
	}
	if got != want {
		h.Errorf("got %q, want %q", got, want)
	}
}
