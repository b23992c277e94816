package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var sinceCases = []contractCase{
	{"what was committed since an instant is every event of every election, in the order of time, election and revision", func(h *handles) {
		start := h.since(h.a, h.get(h.a, jobs).Now.Add(-time.Second))
		if len(start.Events) != 0 {
			h.Errorf("before anything was done: got %v", start.Events)
		}
		all := h.busy()
		for _, s := range []service.Store{h.a, h.b} {
			recent := h.since(s, start.Now.Add(-time.Second))
			h.sameEvents(recent.Events, all)
			if last := all[len(all)-1].At; recent.Now.Before(last) {
				h.Errorf("it is of %v, and an event of %v is among it", recent.Now, last)
			}
		}
	}},
	{"what was committed since an instant is nothing that was committed at that instant, or before", func(h *handles) {
		all := h.busy()
		for _, e := range all {
			later := slices.DeleteFunc(slices.Clone(all), func(other leadership.Event) bool { return !other.At.After(e.At) })
			h.sameEvents(h.since(h.b, e.At).Events, later)
			from := slices.IndexFunc(all, func(other leadership.Event) bool { return other.At.Equal(e.At) })
			h.sameEvents(h.since(h.b, e.At.Add(-1)).Events, all[from:])
		}
		h.sameEvents(h.since(h.a, all[len(all)-1].At.Add(time.Hour)).Events, nil)
	}},
	{"of what was committed since an instant all is told or, if that is more than the limit, nothing", func(h *handles) {
		all := h.busy()
		before := all[0].At.Add(-time.Second)
		for limit := range len(all) + 2 {
			recent, err := h.b.Since(h.Context(), before, limit)
			if limit < len(all) {
				h.compacted(err, recent)
				continue
			}
			if err != nil {
				h.Errorf("at most %d: %v", limit, err)
			}
			h.sameEvents(recent.Events, all)
		}
		if recent, err := h.b.Since(h.Context(), all[len(all)-1].At, 0); err != nil || len(recent.Events) != 0 {
			h.Errorf("at most none, and there are none: got %v, %v", recent.Events, err)
		}
	}},
	{"what was committed since an instant from which on history is not kept is not told at all, though nothing be missing", func(h *handles) {
		for range 2 {
			now := h.since(h.a, h.get(h.a, jobs).Now).Now
			for _, instant := range []time.Time{now.Add(-History - time.Second), now.Add(-100 * History), {}, time.Unix(0, 0)} {
				recent, err := h.b.Since(h.Context(), instant, 100)
				h.compacted(err, recent)
			}
			h.since(h.b, now.Add(-History+time.Minute))
			h.update(h.a, jobs, put(time.Second))
		}
	}},
	{"a reader that continues from the last answer's read time misses no event", func(h *handles) {
		const writers, each = 4, 6
		before := h.get(h.a, jobs)
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() { h.write(leadership.Election(fmt.Sprintf("e%d", i%3)), each) })
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		seen := make(map[leadership.EventID]leadership.Event)
		for after, last := before.Now.Add(-time.Second), false; ; {
			recent := h.since(h.b, after)
			for _, e := range recent.Events {
				seen[e.ID()] = e
			}
			after = recent.Now.Add(-before.Guard - 1)
			if last {
				break
			}
			select {
			case <-done:
				last = true
			default:
			}
		}
		for i := range 3 {
			for _, e := range h.events(h.a, leadership.Election(fmt.Sprintf("e%d", i))) {
				if seen[e.ID()] != e {
					h.Errorf("%v was missed: got %+v, want %+v", e.ID(), seen[e.ID()], e)
				}
			}
		}
		if len(seen) < writers*each {
			h.Errorf("got %d events, want %d or more", len(seen), writers*each)
		}
	}},
}

// write makes so many changes that have an event, while other writers do the same.
func (h *handles) write(e leadership.Election, times int) {
	for range times {
		err := eventually(func() error {
			_, err := h.a.Update(h.Context(), e, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
				return put(s.Record.Policy.LockDelay + time.Millisecond)(s)
			})
			return err
		})
		if err != nil {
			h.Errorf("%s: %v", e, err)
		}
	}
}

// busy makes changes through both handles, one of them with two events, and returns all events as
// Since should return them.
func (h *handles) busy() []leadership.Event {
	h.Helper()
	elections := []leadership.Election{"b", "a", "a-b", "a.b"}
	for i, e := range elections {
		h.update([]service.Store{h.a, h.b}[i%2], e, acquire("ann", time.Minute))
		h.update([]service.Store{h.b, h.a}[i%2], "a", put(time.Duration(i+1)*time.Millisecond))
	}
	h.backing.Advance(h, 2*time.Minute)
	if two := h.update(h.b, "b", acquire("bob", time.Minute)); two.Record.Revision != 3 {
		h.Fatalf("a takeover of an expired lease made revision %d, want 3", two.Record.Revision)
	}
	var all []leadership.Event
	for _, e := range elections {
		all = append(all, h.events(h.a, e)...)
	}
	slices.SortFunc(all, func(a, b leadership.Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Election, b.Election), cmp.Compare(a.Revision, b.Revision))
	})
	return all
}

func (h *handles) since(s service.Store, after time.Time) rule.Recent {
	h.Helper()
	recent, err := s.Since(h.Context(), after, 1000)
	if err != nil {
		h.Fatalf("since %v: %v", after, err)
	}
	for _, e := range recent.Events {
		if e.At.After(recent.Now) {
			h.Errorf("%v is of %v, and was read at %v", e.ID(), e.At, recent.Now)
		}
	}
	return recent
}

func (h *handles) sameEvents(got, want []leadership.Event) {
	h.Helper()
	if !slices.Equal(got, want) {
		h.Errorf("got %v\nwant %v", got, want)
	}
}

// compacted expects no events and an error with the code HistoryCompacted.
func (h *handles) compacted(err error, recent rule.Recent) {
	h.Helper()
	var e *leadership.Error
	if !errors.As(err, &e) || e.Code != leadership.HistoryCompacted || len(recent.Events) > 0 {
		h.Errorf("got %v, %v; want none and %s", recent.Events, err, leadership.HistoryCompacted)
	}
}
