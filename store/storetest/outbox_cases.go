package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

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
	{"of a change that has two events, both wait to be announced", func(h *handles) {
		h.update(h.a, "a", acquire("ann", 10*time.Second))
		h.backing.Advance(h, 11*time.Second)
		if r := h.update(h.b, "a", acquire("bob", long)).Record; r.Token != 2 || r.Revision != 3 {
			h.Fatalf("a takeover gives %+v, want token 2 at revision 3", r)
		}
		h.waiting("a1 a2 a3")
		events, err := h.a.Unannounced(h.Context(), "a", 9)
		if err != nil || len(events) != 3 || told(events[1]) != "2 expired leader= token=1 previous=ann" || told(events[2]) != "3 acquired leader=bob token=2 previous=" {
			h.Errorf("got %v, %v; want acquired, expired and acquired", events, err)
		}
	}},
	{"of the events that wait, no more are read than asked for, and the first of each election first", func(h *handles) {
		for i := range 5 {
			h.update(h.a, "a", put(time.Duration(i+1)*time.Second))
		}
		events, err := h.b.Unannounced(h.Context(), "", 2)
		if err != nil || len(events) != 2 || events[0].Revision != 1 || events[1].Revision != 2 {
			h.Errorf("got %v, %v; want revisions 1 and 2", events, err)
		}
	}},
	{"of one election only its own events are read that wait, in order, and no more than asked for", func(h *handles) {
		for i := range 3 {
			for _, e := range []leadership.Election{"a", "a-b", "b"} {
				h.update(h.a, e, put(time.Duration(i+1)*time.Second))
			}
		}
		h.mark(leadership.EventID{Election: "a", Revision: 1})
		for _, c := range []struct {
			election leadership.Election
			limit    int
			want     []leadership.Revision
		}{{"a", 9, []leadership.Revision{2, 3}}, {"a", 1, []leadership.Revision{2}}, {"a-b", 9, []leadership.Revision{1, 2, 3}}, {"b", 2, []leadership.Revision{1, 2}}, {"unseen", 9, nil}} {
			events, err := h.b.Unannounced(h.Context(), c.election, c.limit)
			require.NoError(h, err)
			var got []leadership.Revision
			for _, e := range events {
				got = append(got, e.Revision)
				if e.Election != c.election {
					h.Errorf("of %s: got %v", c.election, e.ID())
				}
			}
			if !slices.Equal(got, c.want) {
				h.Errorf("of %s, at most %d: got revisions %v, want %v", c.election, c.limit, got, c.want)
			}
		}
	}},
}

func (h *handles) mark(ids ...leadership.EventID) {
	h.Helper()
	require.NoError(h, h.a.MarkAnnounced(h.Context(), ids))
}

// waiting expects these events of elections a and b, each election's in order.
func (h *handles) waiting(want string) {
	h.Helper()
	events, err := h.b.Unannounced(h.Context(), "", 100)
	require.NoError(h, err)
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
