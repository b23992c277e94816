package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"regent/leadership"
)

// contractCase is one sentence of the Store contract.
type contractCase struct {
	rule string
	run  func(*handles)
}

// handles is one case's store, opened twice.
type handles struct {
	testing.TB
	backing Backing
	a, b    leadership.Store
}

// RunStore holds a store to each sentence of its contract, and to the rules on a random walk.
func RunStore(t *testing.T, h Harness) {
	for _, cases := range [][]contractCase{updateCases, renewCases, readCases, outboxCases, failureCases, damageCases(), idempotencyCases(), walkCases()} {
		for _, c := range cases {
			t.Run(c.rule, func(t *testing.T) {
				t.Parallel()
				backing := h(t)
				c.run(&handles{TB: t, backing: backing, a: backing.Open(t), b: backing.Open(t)})
				if t.Failed() {
					t.Logf("the rule: %s", c.rule)
				}
			})
		}
	}
}

// put makes a change of configuration, which every store must keep and tell of.
func put(lock time.Duration) func(leadership.Snapshot) (leadership.Change, error) {
	return func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Configure(s, leadership.ConfigureCommand{Config: leadership.Config{LockDelay: lock}})
	}
}

// renewalOf is what holder asks to renew or release the lease with that token.
func renewalOf(e leadership.Election, holder string, token leadership.Token) leadership.Renewal {
	return leadership.Renewal{Election: e, CandidateID: leadership.CandidateID(holder), KeyHash: hashOf(holder), Token: token}
}

// hashOf stands for the hash of the holder's key.
func hashOf(holder string) leadership.KeyHash {
	var k leadership.Key
	copy(k[:], holder)
	return k.Hash()
}

func acquire(holder string, lease time.Duration) func(leadership.Snapshot) (leadership.Change, error) {
	return func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Acquire(s, leadership.AcquireCommand{CandidateID: leadership.CandidateID(holder), KeyHash: hashOf(holder), LeaseDuration: lease})
	}
}

func (h *handles) update(s leadership.Store, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) leadership.Snapshot {
	h.Helper()
	snap, err := s.Update(h.Context(), e, decide)
	if err != nil {
		h.Fatalf("update %s: %v", e, err)
	}
	return snap
}

func (h *handles) get(s leadership.Store, e leadership.Election) leadership.Snapshot {
	h.Helper()
	snap, err := s.Get(h.Context(), e)
	if err != nil {
		h.Fatalf("get %s: %v", e, err)
	}
	return snap
}

func (h *handles) events(s leadership.Store, e leadership.Election) []leadership.Event {
	h.Helper()
	events, err := s.Events(h.Context(), e, 0, 1000)
	if err != nil {
		h.Fatalf("events of %s: %v", e, err)
	}
	return events
}

// eventually repeats a call while the store says that it may be repeated, as its callers do.
func (h *handles) eventually(call func() error) error {
	var err error
	for range 50 {
		if err = call(); !again(err) {
			return err
		}
	}
	return err
}

var updateCases = []contractCase{
	{"an election never seen has a zero record but for its name", func(h *handles) {
		want := leadership.Record{Election: jobs}
		if got := h.get(h.a, jobs).Record; got != want {
			h.Errorf("get: %+v", got)
		}
		h.update(h.a, jobs, func(s leadership.Snapshot) (leadership.Change, error) {
			if s.Record != want || s.Now.IsZero() {
				h.Errorf("update: %+v at %v", s.Record, s.Now)
			}
			return leadership.Change{}, nil
		})
		if got := h.events(h.a, jobs); len(got) != 0 {
			h.Errorf("events: %v", got)
		}
	}},
	{"a change and its events are written together, and seen through every handle", func(h *handles) {
		done := h.update(h.a, jobs, acquire("ann", time.Minute))
		for _, s := range []leadership.Store{h.a, h.b} {
			got := h.get(s, jobs).Record
			if !sameRecord(got, done.Record) {
				h.Errorf("got %+v, want %+v", got, done.Record)
			}
			if events := h.events(s, jobs); len(events) != 1 || told(events[0]) != "1 acquired leader=ann token=1 previous=" {
				h.Errorf("got events %v", events)
			}
		}
	}},
	{"every field of a record is kept", func(h *handles) {
		want := h.update(h.a, jobs, func(s leadership.Snapshot) (leadership.Change, error) {
			ch, err := leadership.Acquire(s, leadership.AcquireCommand{
				CandidateID: "A.z_0@b:c-d", KeyHash: hashOf("x"), LeaseDuration: 1234 * time.Millisecond,
				Metadata: `{"a":[1,2.5,-3,1e+30],"b":"\u0000é</script>","c":{}}`,
			})
			ch.Record.Config = leadership.Config{LeaseDuration: 24 * time.Hour, LockDelay: time.Millisecond}
			ch.Events[0].RequestID = "request-1"
			return ch, err
		}).Record
		if got := h.get(h.b, jobs).Record; !sameRecord(got, want) {
			h.Errorf("got %+v\nwant %+v", got, want)
		}
		h.backing.Advance(h, 2*time.Second)
		want = h.update(h.b, jobs, leadership.Expire).Record
		if got := h.get(h.a, jobs).Record; !sameRecord(got, want) || got.LockFor != time.Millisecond || got.EndedAt.IsZero() {
			h.Errorf("got %+v\nwant %+v", got, want)
		}
		if events := h.events(h.b, jobs); events[0].RequestID != "request-1" {
			h.Errorf("got %+v", events[0])
		}
	}},
	{"an error of decide is returned as it is, and nothing is written", func(h *handles) {
		want := errors.New("no")
		_, err := h.a.Update(h.Context(), jobs, func(s leadership.Snapshot) (leadership.Change, error) {
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
		snap := h.update(h.b, jobs, func(leadership.Snapshot) (leadership.Change, error) { return leadership.Change{}, nil })
		if !sameRecord(snap.Record, first.Record) || snap.Now.Before(first.Now) {
			h.Errorf("got %+v at %v, want %+v", snap.Record, snap.Now, first.Record)
		}
	}},
	{"a heartbeat starts the lease at the commit, and every event has that time", func(h *handles) {
		snap := h.update(h.a, jobs, acquire("ann", time.Minute))
		if !snap.Record.HeartbeatAt.Equal(snap.Now) {
			h.Errorf("the lease starts at %v, the commit was at %v", snap.Record.HeartbeatAt, snap.Now)
		}
		for _, e := range h.events(h.b, jobs) {
			if !e.At.Equal(snap.Now) {
				h.Errorf("the event is of %v, the commit was at %v", e.At, snap.Now)
			}
		}
		if got := h.get(h.b, jobs).Record.HeartbeatAt; !got.Equal(snap.Now) {
			h.Errorf("read again, the lease starts at %v, the commit was at %v", got, snap.Now)
		}
	}},
	{"a change that is no heartbeat leaves the lease's start as it is", func(h *handles) {
		want := h.update(h.a, jobs, acquire("ann", time.Minute)).Record.HeartbeatAt
		for i := range 3 {
			snap := h.update(h.b, jobs, put(time.Duration(i+1)*time.Second))
			if !snap.Record.HeartbeatAt.Equal(want) || !h.get(h.a, jobs).Record.HeartbeatAt.Equal(want) {
				h.Errorf("the lease starts at %v, want %v", snap.Record.HeartbeatAt, want)
			}
		}
		renewed := h.update(h.a, jobs, func(s leadership.Snapshot) (leadership.Change, error) {
			return leadership.Renew(s, renewalOf(jobs, "ann", 1))
		})
		if got := h.get(h.b, jobs).Record.HeartbeatAt; !got.Equal(renewed.Now) || !got.After(want) {
			h.Errorf("renewed at %v, the lease starts at %v", renewed.Now, got)
		}
	}},
	{"the store's time does not go back, whichever handle is asked", func(h *handles) {
		var last time.Time
		for i := range 12 {
			s := []leadership.Store{h.a, h.b}[i%2]
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
				s := []leadership.Store{h.a, h.b}[i%2]
				for range each {
					if err := h.eventually(func() error { return increment(h.Context(), s) }); err != nil {
						h.Errorf("increment: %v", err)
					}
				}
			})
		}
		wg.Wait()
		r := h.get(h.b, jobs).Record
		if want := leadership.Revision(callers * each); r.Revision < want || int64(r.Config.LockDelay/time.Millisecond) != int64(r.Revision) {
			h.Errorf("after %d increments: revision %d, lock delay %v", want, r.Revision, r.Config.LockDelay)
		}
		for i, e := range h.events(h.a, jobs) {
			if e.Revision != leadership.Revision(i+1) {
				h.Errorf("event %d has revision %d", i+1, e.Revision)
			}
		}
	}},
	{"elections do not disturb each other", func(h *handles) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				e := leadership.Election(fmt.Sprintf("e%d", i))
				err := h.eventually(func() error {
					_, err := h.a.Update(h.Context(), e, acquire(string(e), time.Hour))
					return err
				})
				if err != nil {
					h.Errorf("%s: %v", e, err)
				}
			})
		}
		wg.Wait()
		for i := range 8 {
			e := leadership.Election(fmt.Sprintf("e%d", i))
			if r := h.get(h.b, e).Record; r.Election != e || string(r.LeaderID) != string(e) || r.Token != 1 {
				h.Errorf("%s: got %+v", e, r)
			}
		}
	}},
	{"a decision that panics stops nobody else", func(h *handles) {
		func() {
			defer func() {
				if recover() == nil {
					h.Error("the panic did not reach its caller")
				}
			}()
			h.a.Update(h.Context(), jobs, func(leadership.Snapshot) (leadership.Change, error) { panic("planted") })
		}()
		h.update(h.a, jobs, acquire("ann", 0))
	}},
}

// increment adds a millisecond to the lock delay.
func increment(ctx context.Context, s leadership.Store) error {
	_, err := s.Update(ctx, jobs, func(snap leadership.Snapshot) (leadership.Change, error) {
		return put(snap.Record.Config.LockDelay + time.Millisecond)(snap)
	})
	return err
}

// sameRecord compares what two records say, whatever form their times have.
func sameRecord(a, b leadership.Record) bool {
	for _, t := range []*time.Time{&a.AcquiredAt, &a.HeartbeatAt, &a.EndedAt, &b.AcquiredAt, &b.HeartbeatAt, &b.EndedAt} {
		*t = t.UTC().Round(time.Microsecond)
	}
	return a == b
}

var renewCases = []contractCase{
	{"a renewal of exactly the named lease starts it anew; any other is not renewed, and writes nothing", func(h *handles) {
		first := h.update(h.a, jobs, acquire("ann", time.Minute))
		wrong := renewalOf(jobs, "ann", 1)
		wrong.KeyHash = hashOf("eve")
		for _, c := range []leadership.Renewal{wrong, renewalOf(jobs, "bob", 1), renewalOf(jobs, "ann", 2), renewalOf("unseen", "ann", 1)} {
			if got := h.a.Renew(h.Context(), []leadership.Renewal{c})[0]; !errors.Is(got.Err, leadership.ErrNotRenewed) {
				h.Errorf("%+v: got %v, want ErrNotRenewed", c, got.Err)
			}
		}
		if got := h.get(h.b, jobs).Record; !sameRecord(got, first.Record) {
			h.Errorf("got %+v, want %+v", got, first.Record)
		}
		h.renewed(h.a.Renew(h.Context(), []leadership.Renewal{renewalOf(jobs, "ann", 1)})[0], first)
	}},
	{"a lease that is over is not renewed", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		h.backing.Advance(h, time.Minute+time.Second)
		for _, s := range []leadership.Store{h.a, h.b} {
			if got := s.Renew(h.Context(), []leadership.Renewal{renewalOf(jobs, "ann", 1)})[0]; !errors.Is(got.Err, leadership.ErrNotRenewed) {
				h.Errorf("got %v, want ErrNotRenewed", got.Err)
			}
		}
	}},
	{"a lease of another grant is not renewed, though a handle may remember the old one", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		h.update(h.b, jobs, func(s leadership.Snapshot) (leadership.Change, error) {
			return leadership.Release(s, renewalOf(jobs, "ann", 1))
		})
		second := h.update(h.b, jobs, acquire("bob", time.Minute))
		if got := h.a.Renew(h.Context(), []leadership.Renewal{renewalOf(jobs, "ann", 1)})[0]; !errors.Is(got.Err, leadership.ErrNotRenewed) {
			h.Errorf("got %v, want ErrNotRenewed", got.Err)
		}
		if got := h.get(h.a, jobs).Record; !sameRecord(got, second.Record) {
			h.Errorf("got %+v, want %+v", got, second.Record)
		}
	}},
	{"renewals in turn follow each other, also after other changes", func(h *handles) {
		last := h.update(h.a, jobs, acquire("ann", time.Minute))
		for i := range 4 {
			a := h.a.Renew(h.Context(), []leadership.Renewal{renewalOf(jobs, "ann", 1)})[0]
			h.renewed(a, last)
			last = a.Snapshot
			if i == 1 {
				last = h.update(h.a, jobs, put(time.Second))
			}
		}
	}},
	{"a batch answers each in order, one failing without the others", func(h *handles) {
		const n = 100
		leases := make([]leadership.Renewal, n)
		before := make([]leadership.Snapshot, n)
		for i := range n {
			e := leadership.Election(fmt.Sprintf("e%03d", i))
			before[i] = h.update(h.a, e, acquire("ann", time.Hour))
			leases[i] = renewalOf(e, "ann", 1)
		}
		leases[3].Token = 2
		leases[50].Election = "unseen"
		for i, a := range h.a.Renew(h.Context(), leases) {
			if i == 3 || i == 50 {
				if !errors.Is(a.Err, leadership.ErrNotRenewed) {
					h.Errorf("%d: got %v, want ErrNotRenewed", i, a.Err)
				}
				continue
			}
			h.renewed(a, before[i])
		}
	}},
}

// renewed checks the answer to a renewal of the lease in before.
func (h *handles) renewed(a leadership.Renewed, before leadership.Snapshot) {
	h.Helper()
	if a.Err != nil {
		h.Fatalf("renew %s: %v", before.Record.Election, a.Err)
	}
	want := before.Record
	want.HeartbeatAt = a.Snapshot.Now
	if !sameRecord(a.Snapshot.Record, want) {
		h.Errorf("got %+v\nwant %+v", a.Snapshot.Record, want)
	}
	if !a.Snapshot.Now.After(before.Record.HeartbeatAt) {
		h.Errorf("renewed at %v, which is not after %v", a.Snapshot.Now, before.Record.HeartbeatAt)
	}
	if end := before.Record.LeaseEnd(); a.Before.Sub(end).Abs() > time.Microsecond {
		h.Errorf("before is %v, the lease ended at %v", a.Before, end)
	}
	if got := h.get(h.b, want.Election).Record; !sameRecord(got, want) {
		h.Errorf("read again: %+v\nwant %+v", got, want)
	}
}

var readCases = []contractCase{
	{"a list is in the order of names, by prefix, after a name, tombstones included", func(h *handles) {
		names := []leadership.Election{"a", "a-b", "a.b", "a.b.c", "a0", "ab", "b", "b.0"}
		for _, e := range names {
			h.update(h.a, e, put(time.Second))
		}
		h.update(h.a, "a0", func(s leadership.Snapshot) (leadership.Change, error) {
			return leadership.Delete(s, leadership.DeleteCommand{})
		})
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
			if err != nil {
				h.Fatal(err)
			}
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

func (h *handles) list(prefix string, after leadership.Election, limit int) (names []leadership.Election) {
	h.Helper()
	for range 100 {
		listing, err := h.b.List(h.Context(), prefix, after, limit)
		if err != nil {
			h.Fatal(err)
		}
		for _, s := range listing.Snapshots {
			names = append(names, s.Record.Election)
		}
		if after = listing.Next; after == "" {
			return names
		}
	}
	h.Fatal("the list does not end")
	return nil
}

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
	slices.SortStableFunc(events, func(x, y leadership.Event) int { return compare(x.Election, y.Election) })
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

func compare[T ~string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

var failureCases = []contractCase{
	{"a call whose context has ended does nothing, and says why", func(h *handles) {
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		_, err := h.a.Update(ctx, jobs, func(leadership.Snapshot) (leadership.Change, error) {
			h.Error("decide was called")
			return leadership.Change{}, nil
		})
		h.unavailable("update", err, context.Canceled)
		_, err = h.a.Get(ctx, jobs)
		h.unavailable("get", err, context.Canceled)
		h.unavailable("renew", h.a.Renew(ctx, []leadership.Renewal{renewalOf(jobs, "ann", 1)})[0].Err, nil)
		_, err = h.a.List(ctx, "", "", 1)
		h.unavailable("list", err, context.Canceled)
		_, err = h.a.Events(ctx, jobs, 0, 1)
		h.unavailable("events", err, context.Canceled)
		_, err = h.a.Unannounced(ctx, 1)
		h.unavailable("unannounced", err, context.Canceled)
	}},
	{"a context that ends while the change is decided stops it, or leaves it unknown, and never half done", func(h *handles) {
		ctx, cancel := context.WithCancel(h.Context())
		_, err := h.a.Update(ctx, jobs, func(s leadership.Snapshot) (leadership.Change, error) {
			cancel()
			return acquire("ann", time.Hour)(s)
		})
		if err != nil && !again(err) {
			h.Errorf("got %v", err)
		}
		r := h.get(h.b, jobs).Record
		if events := h.events(h.b, jobs); len(events) != int(r.Revision) {
			h.Errorf("revision %d, %d events", r.Revision, len(events))
		}
		if err == nil && r.Token != 1 || isAny(err, leadership.StoreUnavailable) && r.Token != 0 {
			h.Errorf("%v, and the token is %d", err, r.Token)
		}
	}},
	{"a closed store refuses, and closing it twice does no harm", func(h *handles) {
		h.update(h.a, jobs, put(time.Second))
		for _, s := range []leadership.Store{h.a, h.b, h.a} {
			if err := s.Close(); err != nil {
				h.Errorf("close: %v", err)
			}
		}
		_, err := h.a.Update(h.Context(), jobs, put(2*time.Second))
		h.unavailable("update", err, nil)
		_, err = h.a.Get(h.Context(), jobs)
		h.unavailable("get", err, nil)
		h.unavailable("renew", h.a.Renew(h.Context(), []leadership.Renewal{renewalOf(jobs, "ann", 1)})[0].Err, nil)
		if r := h.get(h.backing.Open(h), jobs).Record; r.Revision != 1 {
			h.Errorf("opened again: %+v", r)
		}
	}},
	{"what was done is there after all handles were closed", func(h *handles) {
		want := h.update(h.a, jobs, acquire("ann", time.Hour)).Record
		h.a.Close()
		h.b.Close()
		s := h.backing.Open(h)
		if got := h.get(s, jobs).Record; !sameRecord(got, want) {
			h.Errorf("got %+v\nwant %+v", got, want)
		}
		if got := h.events(s, jobs); len(got) != 1 {
			h.Errorf("got events %v", got)
		}
	}},
}

func (h *handles) unavailable(call string, err error, cause error) {
	h.Helper()
	if !errors.Is(err, leadership.StoreUnavailable) || cause != nil && !errors.Is(err, cause) {
		h.Errorf("%s: got %v, want %s because of %v", call, err, leadership.StoreUnavailable, cause)
	}
}

func damageCases() []contractCase {
	cases := make([]contractCase, len(Damages))
	for i, d := range Damages {
		cases[i] = contractCase{"a record that cannot be trusted is refused by name, and never grants: " + string(d), func(h *handles) { h.refusesDamaged(d) }}
	}
	return cases
}

// refusesDamaged spoils a held record and one whose lease is over.
func (h *handles) refusesDamaged(d Damage) {
	for _, over := range []bool{false, true} {
		e := leadership.Election(fmt.Sprintf("damaged-%v", over))
		h.update(h.a, e, acquire("ann", time.Minute))
		h.update(h.a, e, func(s leadership.Snapshot) (leadership.Change, error) {
			return leadership.Release(s, renewalOf(e, "ann", 1))
		})
		h.update(h.a, e, acquire("ann", time.Minute))
		h.update(h.a, "whole", put(time.Second))
		if over {
			h.backing.Advance(h, 2*time.Minute)
		}
		h.backing.Damage(h, e, d)
		for range 2 { // refusing it does not mend it
			_, err := h.b.Update(h.Context(), e, acquire("bob", time.Minute))
			h.corrupt("update", err)
			_, err = h.a.Update(h.Context(), e, acquire("bob", time.Minute))
			h.corrupt("update by the handle that knew the record", err)
			_, err = h.b.Get(h.Context(), e)
			h.corrupt("get", err)
		}
		if got := h.list("", "", 1); !slices.Contains(got, "whole") {
			h.Errorf("the list has lost the whole ones: %v", got)
		}
		if got := h.events(h.b, e); len(got) != 3 {
			h.Errorf("the history has %d events, want 3", len(got))
		}
	}
}

func (h *handles) corrupt(call string, err error) {
	h.Helper()
	if !errors.Is(err, leadership.RecordCorrupt) {
		h.Errorf("%s: got %v, want %s", call, err, leadership.RecordCorrupt)
	}
}
