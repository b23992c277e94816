package storetest

import (
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var renewCases = []contractCase{
	{"a renewal of exactly the named lease starts it anew; any other is not renewed, and writes nothing", func(h *handles) {
		first := h.update(h.a, jobs, acquire("ann", time.Minute))
		wrong := renewalOf(jobs, "ann", 1)
		wrong.KeyHash = hashOf("eve")
		for _, c := range []rule.Renewal{wrong, renewalOf(jobs, "bob", 1), renewalOf(jobs, "ann", 2), renewalOf("unseen", "ann", 1)} {
			if got := h.a.Renew(h.Context(), []rule.Renewal{c})[0]; !errors.Is(got.Err, rule.ErrNotRenewed) {
				h.Errorf("%+v: got %v, want ErrNotRenewed", c, got.Err)
			}
		}
		if got := h.get(h.b, jobs).Record; !sameRecord(got, first.Record) {
			h.Errorf("got %+v, want %+v", got, first.Record)
		}
		h.renewed(h.a.Renew(h.Context(), []rule.Renewal{renewalOf(jobs, "ann", 1)})[0], first)
	}},
	{"a lease that is over is not renewed", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		h.backing.Advance(h, time.Minute+time.Second)
		for _, s := range []service.Store{h.a, h.b} {
			if got := s.Renew(h.Context(), []rule.Renewal{renewalOf(jobs, "ann", 1)})[0]; !errors.Is(got.Err, rule.ErrNotRenewed) {
				h.Errorf("got %v, want ErrNotRenewed", got.Err)
			}
		}
	}},
	{"a lease of another grant is not renewed, though a handle may remember the old one", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Minute))
		h.update(h.b, jobs, apply(leadership.Release{LeaseRequest: renewalOf(jobs, "ann", 1).Request()}))
		second := h.update(h.b, jobs, acquire("bob", time.Minute))
		if got := h.a.Renew(h.Context(), []rule.Renewal{renewalOf(jobs, "ann", 1)})[0]; !errors.Is(got.Err, rule.ErrNotRenewed) {
			h.Errorf("got %v, want ErrNotRenewed", got.Err)
		}
		if got := h.get(h.a, jobs).Record; !sameRecord(got, second.Record) {
			h.Errorf("got %+v, want %+v", got, second.Record)
		}
	}},
	{"with the ticket of the last heartbeat every handle renews, if the store gives tickets", func(h *handles) {
		last := h.update(h.a, jobs, acquire("ann", time.Minute))
		for i := range 6 {
			if n := len(last.Ticket); n > leadership.MaxTicketBytes {
				h.Errorf("a ticket has %d bytes, at most %d are allowed", n, leadership.MaxTicketBytes)
			}
			c := renewalOf(jobs, "ann", 1)
			c.Ticket = last.Ticket
			a := [...]service.Store{h.b, h.a}[i%2].Renew(h.Context(), []rule.Renewal{c})[0]
			h.renewed(a, last)
			if last.Ticket != "" && a.Ticket == last.Ticket {
				h.Error("a renewal has the ticket of the heartbeat before")
			}
			last = a.Snapshot()
		}
		if got := h.get(h.a, jobs); got.Ticket != "" {
			h.Errorf("a read has the ticket %q", got.Ticket)
		}
	}},
	{"a ticket never decides: it renews no lease but its own, for nothing but its own key and token", func(h *handles) {
		first := h.update(h.a, jobs, acquire("ann", time.Minute))
		other := h.update(h.a, "other", acquire("ann", time.Minute))
		wrong := renewalOf(jobs, "ann", 1)
		wrong.KeyHash = hashOf("eve")
		for _, c := range []rule.Renewal{wrong, renewalOf(jobs, "bob", 1), renewalOf(jobs, "ann", 2), renewalOf("unseen", "ann", 1)} {
			for _, ticket := range []leadership.Ticket{first.Ticket, other.Ticket, "forged"} {
				c.Ticket = ticket
				for _, s := range []service.Store{h.a, h.b} {
					if got := s.Renew(h.Context(), []rule.Renewal{c})[0]; !errors.Is(got.Err, rule.ErrNotRenewed) {
						h.Errorf("%+v: got %v, want ErrNotRenewed", c, got.Err)
					}
				}
			}
		}
		for _, was := range []rule.Snapshot{first, other} {
			if got := h.get(h.b, was.Record.Election).Record; !sameRecord(got, was.Record) {
				h.Errorf("got %+v, want %+v", got, was.Record)
			}
		}
	}},
	{"a ticket is worthless once its record has changed", func(h *handles) {
		first := h.update(h.a, jobs, acquire("ann", time.Minute))
		if first.Ticket == "" {
			return // a store that needs none
		}
		ann := renewalOf(jobs, "ann", 1)
		renew := func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, ann) }
		release := func(s rule.Snapshot) (rule.Change, error) {
			return rule.Apply(s, leadership.Release{LeaseRequest: ann.Request()})
		}
		for i, change := range []func(rule.Snapshot) (rule.Change, error){renew, limit(90*time.Second, leadership.EndsEvicted), release} {
			ann.Ticket = h.update(h.a, jobs, acquire("ann", time.Minute)).Ticket
			changed := h.update(h.a, jobs, change)
			if got := h.b.Renew(h.Context(), []rule.Renewal{ann})[0]; !errors.Is(got.Err, rule.ErrNotRenewed) {
				h.Errorf("change %d: got %v, want ErrNotRenewed", i, got.Err)
			}
			if got := h.get(h.b, jobs).Record; !sameRecord(got, changed.Record) {
				h.Errorf("change %d: got %+v, want %+v", i, got, changed.Record)
			}
		}
	}},
}

// renewed checks the answer to a renewal of the lease in before.
func (h *handles) renewed(a rule.Renewed, before rule.Snapshot) {
	h.Helper()
	if a.Err != nil {
		h.Fatalf("renew %s: %v", before.Record.Election, a.Err)
	}
	want := before.Record
	want.HeartbeatAt = a.Now
	if !sameRecord(a.Snapshot().Record, want) {
		h.Errorf("got %+v\nwant %+v", a.Snapshot().Record, want)
	}
	if !a.Now.After(before.Record.HeartbeatAt) {
		h.Errorf("renewed at %v, which is not after %v", a.Now, before.Record.HeartbeatAt)
	}
	if end := before.Record.LeaseEnd(); a.Before.Sub(end).Abs() > time.Microsecond {
		h.Errorf("before is %v, the lease ended at %v", a.Before, end)
	}
	if got := h.get(h.b, want.Election).Record; !sameRecord(got, want) {
		h.Errorf("read again: %+v\nwant %+v", got, want)
	}
}
