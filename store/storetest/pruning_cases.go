package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var pruningCases = []contractCase{
	{"an event older than the history is deleted, and its election's remaining events have no gap", func(h *handles) {
		for i := range 4 {
			h.update(h.a, jobs, put(time.Duration(i+1)*time.Second))
		}
		h.age(History + time.Hour)
		h.update(h.b, jobs, put(time.Minute))
		h.update(h.a, "other", put(time.Second))
		h.whole(h.events(h.a, jobs), 4, 5) // the fourth may just have ceased to be the newest
		waiting, err := h.b.Unannounced(h.Context(), jobs, 100)
		require.NoError(h, err)
		h.whole(waiting, 4, 5)
		if got := h.events(h.b, "other"); len(got) != 1 {
			h.Errorf("of the other election: got %v, want its one event", got)
		}
	}},
	{"an event is kept for as long as history is kept", func(h *handles) {
		for i := range 3 {
			h.update(h.a, jobs, put(time.Duration(i+1)*time.Second))
		}
		h.age(History - time.Hour)
		h.update(h.b, jobs, put(time.Minute))
		if got := h.events(h.a, jobs); len(got) != 4 {
			h.Errorf("got %v, want all four", got)
		}
		h.age(2 * time.Hour)
		h.update(h.b, jobs, put(2*time.Minute))
		h.whole(h.events(h.a, jobs), 3, 5) // the third was the newest for long enough
	}},
	{"a record outlives its history, and goes on from where it was", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		h.update(h.a, jobs, apply(leadership.Release{LeaseRequest: renewalOf(jobs, "ann", 1).Request()}))
		for range 2 { // also if it is idle for longer than history is kept
			h.age(History + time.Hour)
			if r := h.get(h.b, jobs).Record; r.Token != 1 || r.Revision != 2 {
				h.Errorf("got %+v, want token 1 and revision 2", r)
			}
		}
		if snap := h.update(h.b, jobs, acquire("bob", time.Minute)); snap.Record.Token != 2 || snap.Record.Revision != 3 {
			h.Errorf("the next grant has token %d and revision %d, want 2 and 3", snap.Record.Token, snap.Record.Revision)
		}
		if got := h.events(h.a, jobs); len(got) == 0 || told(got[len(got)-1]) != "3 acquired leader=bob token=2 previous=" {
			h.Errorf("got events %v", got)
		}
	}},
	{"a lease that is kept up for longer than history stands on the event that began it", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", leadership.MaxLeaseDuration))
		for range 3 {
			h.age(leadership.MaxLeaseDuration - time.Hour)
			h.update(h.b, jobs, func(s rule.Snapshot) (rule.Change, error) {
				return rule.Renew(s, renewalOf(jobs, "ann", 1))
			})
			if snap := h.get(h.a, jobs); !snap.Live() || snap.Record.Token != 1 {
				h.Errorf("got %+v at %v, want the lease with token 1", snap.Record, snap.Now)
			}
		}
		h.age(2 * History)
		h.update(h.a, jobs, rule.Expire)
		h.whole(h.events(h.b, jobs), 1, 2)
	}},
	{"a record that is lost is missed, though its history was deleted", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		h.update(h.a, jobs, put(time.Second))
		h.age(History + time.Hour)
		h.backing.Damage(h, jobs, RecordGone)
		_, err := h.b.Update(h.Context(), jobs, rule.Expect{}, acquire("bob", time.Minute))
		h.corrupt("update", err)
	}},
	{"a request for deleted history is told the first revision that remains", func(h *handles) {
		s := service.New(h.b)
		for i := range 4 {
			h.update(h.a, jobs, put(time.Duration(i+1)*time.Second))
		}
		h.age(History + time.Hour)
		h.update(h.a, jobs, put(time.Minute))
		for after := range leadership.Revision(3) {
			_, err := s.Events(h.Context(), leadership.EventsRequest{Election: jobs, After: after})
			var e *leadership.Error
			if !errors.As(err, &e) || e.Code != leadership.HistoryCompacted || e.Oldest < 4 || e.Oldest > 5 {
				h.Fatalf("after %d: got %v, want %s and revision 4 or 5", after, err, leadership.HistoryCompacted)
			}
			events, err := s.Events(h.Context(), leadership.EventsRequest{Election: jobs, After: e.Oldest - 1})
			if err != nil || len(events) == 0 || events[0].Revision != e.Oldest {
				h.Errorf("from %d on: got %v, %v", e.Oldest, events, err)
			}
		}
		if events, err := s.Events(h.Context(), leadership.EventsRequest{Election: jobs, After: 5}); err != nil || len(events) != 0 {
			h.Errorf("after the newest: got %v, %v; want none", events, err)
		}
	}},
}

// age lets time pass, and then has the store's policy delete the events that are due.
func (h *handles) age(d time.Duration) {
	h.Helper()
	h.backing.Advance(h, d)
	if h.backing.Compact != nil {
		h.backing.Compact(h)
	}
}

// whole expects revisions up to last without a gap, from first on or a later one.
func (h *handles) whole(events []leadership.Event, first, last leadership.Revision) {
	h.Helper()
	var got []leadership.Revision
	for _, e := range events {
		got = append(got, e.Revision)
	}
	var want []leadership.Revision
	for r := first; r <= last; r++ {
		want = append(want, r)
	}
	if len(got) == 0 || len(got) > len(want) || !slices.Equal(got, want[len(want)-len(got):]) {
		h.Errorf("got revisions %v, want %v, of which the first may be gone", got, want)
	}
}
