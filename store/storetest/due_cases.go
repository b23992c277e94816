package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var dueCases = []contractCase{
	{"held elections are read, whether or not their lease has ended, on pages of any length", func(h *handles) {
		var want []leadership.Election
		for i := range 7 {
			e := leadership.Election(fmt.Sprintf("held-%d", i))
			holder := []string{"ann", "bob", "cid"}[i%3] // several lead more than one
			h.update(h.a, e, acquire(holder, time.Duration(1+i%2)*time.Minute))
			want = append(want, e)
		}
		h.vacant("never")
		h.update(h.a, "deleted", put(time.Second))
		h.update(h.a, "deleted", apply(leadership.Delete{}))
		h.update(h.a, "configured", put(time.Second))
		h.backing.Advance(h, 90*time.Second)
		if _, err := service.New(h.a).Renew(h.Context(), leaseOf("held-1", "bob", 1)); err != nil {
			h.Fatal(err)
		}
		for _, limit := range []int{1, 2, 3, 7, 100} {
			if got := h.held(limit); !slices.Equal(got, want) {
				h.Errorf("%d at a time: got %v, want %v", limit, got, want)
			}
		}
	}},
	{"a held election is as it would be read", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		listing, err := h.b.Held(h.Context(), "", 10)
		if err != nil || len(listing.Snapshots) != 1 || listing.Next != "" {
			h.Fatalf("got %+v, %v", listing, err)
		}
		got, want := listing.Snapshots[0], h.get(h.a, jobs)
		if !sameRecord(got.Record, want.Record) || got.Guard != want.Guard || !got.Live() || want.Now.Add(want.Guard).Before(got.Now) {
			h.Errorf("got %+v\nwant %+v", got, want)
		}
	}},
	{"an election is held no longer once the end of its lease is recorded", func(h *handles) {
		h.vacant("released")
		h.update(h.a, "expired", acquire("ann", time.Minute))
		h.backing.Advance(h, 2*time.Minute)
		h.update(h.a, "expired", rule.Expire)
		if got := h.held(10); len(got) != 0 {
			h.Errorf("got %v, want none", got)
		}
	}},
	{"an election can be retired from RetireAt on, and never before", func(h *handles) {
		h.retiring("jobs", 2*time.Hour)
		h.retiring("later", 3*time.Hour)
		h.vacant("never")
		snap := h.get(h.a, jobs)
		at := snap.Record.RetireAt()
		for wait, want := range map[time.Duration][]leadership.Election{-time.Millisecond: nil, time.Millisecond: {jobs}, 2 * time.Hour: {jobs, "later"}} {
			if got := h.retirable(at.Add(wait), 10); !slices.Equal(got, want) {
				h.Errorf("%v after it is due: got %v, want %v", wait, got, want)
			}
		}
		if got := h.retirable(at.Add(2*time.Hour), 1); !slices.Equal(got, []leadership.Election{jobs}) {
			h.Errorf("one at a time: got %v, want the one that is due longest", got)
		}
		h.backing.Advance(h, 150*time.Minute)
		if got := h.retirable(h.get(h.a, jobs).Now, 10); !slices.Equal(got, []leadership.Election{jobs}) {
			h.Errorf("once it is due: got %v", got)
		}
	}},
	{"what changed since is not retired, and what was retired is not again", func(h *handles) {
		changes := map[leadership.Election]func(rule.Snapshot) (rule.Change, error){
			"acquired":     acquire("bob", time.Minute),
			"reconfigured": put(time.Second),
			"deleted":      apply(leadership.Delete{}),
			"retired":      rule.Retire,
		}
		names := slices.Sorted(maps.Keys(changes))
		for _, e := range names {
			h.retiring(e, 2*time.Hour)
		}
		h.backing.Advance(h, 3*time.Hour)
		now := h.get(h.a, "retired").Now
		if got := h.retirable(now, 10); !slices.Equal(slices.Sorted(slices.Values(got)), names) {
			h.Fatalf("due: got %v, want %v", got, names)
		}
		for e, change := range changes {
			token := h.get(h.a, e).Record.Token
			if after := h.update(h.a, e, change).Record; after.Token < token || e == "retired" && !after.Deleted {
				h.Errorf("%s: got %+v", e, after)
			}
		}
		if got := h.retirable(now.Add(time.Minute), 10); len(got) != 0 {
			h.Errorf("got %v, want none", got)
		}
	}},
	{"an election whose seats may not have heard of its last change is due, until a tick has told them", func(h *handles) {
		due := func(want ...leadership.Election) {
			h.Helper()
			if got := h.retirable(h.get(h.a, jobs).Now, 10); !slices.Equal(got, want) {
				h.Errorf("due are %v, want %v", got, want)
			}
		}
		seats := leadership.Configure{Election: jobs, Config: leadership.Config{Seats: 2, LeaseDuration: time.Hour}}
		if _, err := service.New(h.a).Do(h.Context(), seats); err != nil {
			h.Fatal(err)
		}
		due()
		drain := leadership.Order{Kind: leadership.OrderPause, Mode: leadership.PauseDrain, For: time.Hour, Reason: "r", Actor: "op"}
		h.update(h.a, jobs, apply(drain)) // its process dies before it tells anyone
		due(jobs)
		if n, err := service.New(h.b).RetireAll(h.Context()); n != 0 || err != nil {
			h.Errorf("retired %d, %v", n, err)
		}
		due()
	}},
}

// held reads all pages, and returns the names in order.
func (h *handles) held(limit int) []leadership.Election {
	h.Helper()
	var names []leadership.Election
	var after leadership.Election
	for range 200 {
		listing, err := h.b.Held(h.Context(), after, limit)
		require.NoError(h, err)
		for _, s := range listing.Snapshots {
			names = append(names, s.Record.Election)
		}
		if after = listing.Next; after == "" {
			slices.Sort(names)
			return names
		}
	}
	h.Fatal("the pages do not end")
	return nil
}

func (h *handles) retirable(at time.Time, limit int) []leadership.Election {
	h.Helper()
	names, err := h.b.Retirable(h.Context(), at, limit)
	require.NoError(h, err)
	return names
}

// vacant is an election that had a leader.
func (h *handles) vacant(e leadership.Election) {
	h.Helper()
	h.update(h.a, e, acquire("ann", time.Minute))
	h.update(h.a, e, apply(leadership.Release{LeaseRequest: renewalOf(e, "ann", 1).Request()}))
}

// retiring is an election that is vacant since now, and is to be retired after that long.
func (h *handles) retiring(e leadership.Election, after time.Duration) {
	h.Helper()
	h.update(h.a, e, apply(leadership.Configure{Config: leadership.Config{RetireAfter: after}}))
	h.vacant(e)
}
