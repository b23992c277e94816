package storetest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
)

var readCases = []contractCase{
	{"a list is in the order of names, by prefix, after a name, tombstones included", func(h *handles) {
		names := []leadership.Election{"a", "a-b", "a.b", "a.b.c", "a0", "ab", "b", "b.0"}
		for _, e := range names {
			h.update(h.a, e, put(time.Second))
		}
		h.update(h.a, "a0", apply(leadership.Delete{}))
		for _, c := range []struct {
			prefix string
			after  leadership.Election
			want   []leadership.Election
		}{
			{"", "", names},
			{"a", "", names[:6]},
			{"a.", "", names[2:4]},
			{"a", "a.b", names[3:6]},
			{"", "a0", names[5:]},
			{"b", "a", names[6:]},
			{"a", "b", nil},
			{"zz", "", nil},
		} {
			for _, limit := range []int{1, 2, 3, 100} {
				if got := h.list(c.prefix, c.after, limit); !slices.Equal(got, c.want) {
					h.Errorf("prefix %q after %q, %d at a time: got %v, want %v", c.prefix, c.after, limit, got, c.want)
				}
			}
		}
	}},
	{"a listed election is as it would be read", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		listing, err := h.b.List(h.Context(), "", "", 10)
		if err != nil || len(listing.Snapshots) != 1 {
			h.Fatalf("got %+v, %v", listing, err)
		}
		got, want := listing.Snapshots[0], h.get(h.a, jobs)
		if !sameRecord(got.Record, want.Record) || got.Guard != want.Guard || !got.Live() {
			h.Errorf("got %+v\nwant %+v", got, want)
		}
	}},
	{"the time is read by a name that no election has, whatever the others are, and nothing is written", func(h *handles) {
		h.update(h.a, "now", acquire("ann", time.Minute))
		before := h.get(h.a, "now")
		now, err := service.New(h.b).Now(h.Context())
		if err != nil || now.Before(before.Now.Add(-before.Guard)) {
			h.Errorf("got %v, %v; want %v or later", now, err, before.Now)
		}
		if got := h.list("", "", 10); !slices.Equal(got, []leadership.Election{"now"}) {
			h.Errorf("then there are %v", got)
		}
		h.backing.Damage(h, "now", UnknownSchema)
		if _, err := service.New(h.a).Now(h.Context()); err != nil {
			h.Errorf("beside a record that cannot be trusted: %v", err)
		}
	}},
	{"events are read after a revision, up to a limit, in order", func(h *handles) {
		for i := range 12 {
			h.update(h.a, jobs, put(time.Duration(i+1)*time.Second))
			h.update(h.a, jobs+"-2", put(time.Duration(i+1)*time.Second))
		}
		for _, c := range []struct {
			after       leadership.Revision
			limit       int
			first, last leadership.Revision
		}{{0, 1, 1, 1}, {0, 100, 1, 12}, {3, 4, 4, 7}, {9, 100, 10, 12}, {12, 5, 0, 0}, {1 << 40, 5, 0, 0}} {
			events, err := h.b.Events(h.Context(), jobs, c.after, c.limit)
			require.NoError(h, err)
			if c.first == 0 {
				if len(events) != 0 {
					h.Errorf("after %d: got %v, want none", c.after, events)
				}
				continue
			}
			if n := int(c.last - c.first + 1); len(events) != n || events[0].Revision != c.first || events[n-1].Revision != c.last {
				h.Errorf("after %d, limit %d: got %v, want %d to %d", c.after, c.limit, events, c.first, c.last)
			}
		}
	}},
}

func (h *handles) list(prefix string, after leadership.Election, limit int) []leadership.Election {
	h.Helper()
	names, untrusted := h.pages(prefix, after, limit)
	if len(untrusted) > 0 {
		h.Errorf("the list does not trust %v", untrusted)
	}
	return names
}

// pages reads the list to its end.
func (h *handles) pages(prefix string, after leadership.Election, limit int) (names, untrusted []leadership.Election) {
	h.Helper()
	for range 100 {
		listing, err := h.b.List(h.Context(), prefix, after, limit)
		require.NoError(h, err)
		for _, s := range listing.Snapshots {
			names = append(names, s.Record.Election)
		}
		untrusted = append(untrusted, listing.Untrusted...)
		if after = listing.Next; after == "" {
			return names, untrusted
		}
	}
	h.Fatal("the list does not end")
	return nil, nil
}
