package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var updateCases = []contractCase{
	{"an election never seen has a zero record but for its name", func(h *handles) {
		want := rule.Record{Election: jobs}
		if got := h.get(h.a, jobs).Record; got != want {
			h.Errorf("get: %+v", got)
		}
		h.update(h.a, jobs, func(s rule.Snapshot) (rule.Change, error) {
			if s.Record != want || s.Now.IsZero() {
				h.Errorf("update: %+v at %v", s.Record, s.Now)
			}
			return rule.Change{}, nil
		})
		if got := h.events(h.a, jobs); len(got) != 0 {
			h.Errorf("events: %v", got)
		}
	}},
	{"an error of decide is returned as it is, and nothing is written", func(h *handles) {
		want := errors.New("no")
		_, err := h.a.Update(h.Context(), jobs, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			ch, _ := acquire("ann", 0)(s)
			return ch, want
		})
		if !errors.Is(err, want) {
			h.Errorf("got %v", err)
		}
		if got := h.get(h.a, jobs).Record.Revision; got != 0 || len(h.events(h.b, jobs)) != 0 {
			h.Errorf("something was written: revision %d", got)
		}
	}},
	{"an empty change writes nothing and gives the record as it was read", func(h *handles) {
		first := h.update(h.a, jobs, put(time.Second))
		snap := h.update(h.b, jobs, func(rule.Snapshot) (rule.Change, error) { return rule.Change{}, nil })
		if !sameRecord(snap.Record, first.Record) || snap.Now.Before(first.Now.Add(-snap.Guard)) {
			h.Errorf("got %+v at %v, want %+v", snap.Record, snap.Now, first.Record)
		}
	}},
	{"the store's time does not go back, whichever handle is asked", func(h *handles) {
		var last time.Time
		for i := range 12 {
			s := []service.Store{h.a, h.b}[i%2]
			snap := h.get(s, jobs)
			if i%3 == 0 {
				snap = h.update(s, jobs, put(time.Duration(i+1)*time.Second))
			}
			if snap.Now.Before(last.Add(-snap.Guard)) {
				h.Errorf("call %d is at %v, after one at %v", i, snap.Now, last)
			}
			last = snap.Now
		}
	}},
	{"no change is lost among many at once", func(h *handles) {
		const callers, each = 8, 5
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				s := []service.Store{h.a, h.b}[i%2]
				for n := range each {
					if err := eventually(func() error { return increment(h.Context(), s, n%2 == 1) }); err != nil {
						h.Errorf("increment: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if delay := h.get(h.b, jobs).Record.Policy.LockDelay; delay < callers*each*time.Millisecond {
			h.Errorf("after %d increments by a millisecond it is %v", callers*each, delay)
		}
		for i, e := range h.events(h.a, jobs) {
			if e.Revision != leadership.Revision(i+1) {
				h.Errorf("event %d has revision %d", i+1, e.Revision)
			}
		}
	}},
	{"a decision that panics does not stop other calls", func(h *handles) {
		func() {
			defer func() {
				if recover() == nil {
					h.Error("the panic did not reach its caller")
				}
			}()
			h.a.Update(h.Context(), jobs, rule.Expect{}, func(rule.Snapshot) (rule.Change, error) { panic("planted") })
		}()
		h.update(h.a, jobs, acquire("ann", 0))
	}},
}

// increment adds a millisecond to the lock delay, with an event or without.
func increment(ctx context.Context, s service.Store, quiet bool) error {
	_, err := s.Update(ctx, jobs, rule.Expect{}, func(snap rule.Snapshot) (rule.Change, error) {
		longer := snap.Record.Policy.LockDelay + time.Millisecond
		if !quiet {
			return put(longer)(snap)
		}
		ch := rule.Change{Record: snap.Record, Quiet: true}
		ch.Record.Policy.LockDelay = longer
		return ch, nil
	})
	return err
}

// sameRecord compares what two records say, whatever form their times have.
func sameRecord(a, b rule.Record) bool { return rounded(a) == rounded(b) }

// rounded returns r with its times in one form, and with the precision of all stores.
func rounded(r rule.Record) rule.Record {
	for _, t := range []*time.Time{&r.AcquiredAt, &r.HeartbeatAt, &r.EndsBy, &r.EndedAt} {
		*t = t.UTC().Round(time.Microsecond)
	}
	return r
}
