package storetest

import (
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// termPolicy has every member of a policy that limits terms.
var termPolicy = leadership.TermPolicy{
	MaxTerm:    20 * time.Hour,
	Approval:   leadership.ApprovalPolicy{Every: 10 * time.Hour, Need: 2},
	StuckAfter: 5 * time.Hour,
	Budget:     leadership.Counters{TokensUsed: 100, Tasks: 1000},
	ErrorRate:  leadership.ErrorRate{Max: 0.5, Min: 20},
	OnTrip:     leadership.TripStepDown,
	Cooldown:   30 * time.Minute,
	CooldownOf: leadership.CooldownPrincipal,
	Verdicts:   2,
}

var termCases = []contractCase{
	// The clock is not moved here, so that a store that remembers the lease still has it as it is.
	{"no renewal comes in time after the end of a term, though the lease would last", func(h *handles) {
		h.update(h.a, jobs, apply(leadership.Configure{Config: leadership.Config{
			LeaseDuration: time.Hour, Term: leadership.TermPolicy{MaxTerm: leadership.MinOrder, StuckAfter: 5 * time.Hour},
		}}))
		grant := h.update(h.b, jobs, acquire("ann", time.Hour))
		end := grant.Record.EndsBy
		watch := h.backing.Open(h)
		for snap := h.get(watch, jobs); snap.Live(); snap = h.get(watch, jobs) {
			time.Sleep(end.Sub(snap.Now))
		}
		for _, report := range []string{`{"progress":1}`, "", `{"progress":2}`} {
			for _, s := range []service.Store{h.a, h.b} {
				c := leaseOf(jobs, "ann", 1)
				c.Report, c.Ticket = []byte(report), grant.Ticket
				if l, err := service.New(s).Renew(h.Context(), c); !errors.Is(err, leadership.LeaseLost) {
					h.Errorf("renewed with %q after its end: %+v, %v", report, l, err)
				}
			}
		}
		if snap := h.update(h.a, jobs, rule.Expire); snap.Record.LeaderID != "" || !snap.Record.EndedAt.Equal(end) {
			h.Errorf("it has ended at %v, want %v: %+v", snap.Record.EndedAt, end, snap.Record)
		}
	}},
}
