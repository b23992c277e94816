package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

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

// term plays what operators, verifiers and leaders do, through both handles in turn, and holds the
// store to the whole record that the rules decided on, after each step, read through both.
type term struct {
	*handles
	services [2]*service.Service
	stores   [2]*exact
	steps    int
	ticket   leadership.Ticket
	told     []string // the events that are expected
}

// newTerm lets ann lead an election with that configuration.
func newTerm(h *handles, c leadership.Config) *term {
	want := new(rule.Record)
	t := &term{handles: h, stores: [2]*exact{{Store: h.a, handles: h, want: want}, {Store: h.b, handles: h, want: want}}}
	for i, s := range t.stores {
		t.services[i] = service.New(s)
	}
	t.do("configure", "", func(s *service.Service) (leadership.Lease, error) {
		return s.Do(t.Context(), leadership.Configure{Election: jobs, Config: c})
	}, "configured")
	t.acquire("ann", "acquired")
	return t
}

// do makes one call through the next handle. The error must have the code; "" for none. events are
// the types of those that it must add.
func (t *term) do(what string, code leadership.Code, call func(*service.Service) (leadership.Lease, error), events ...string) leadership.Lease {
	t.Helper()
	t.steps++
	var l leadership.Lease
	err := eventually(func() (err error) {
		l, err = call(t.services[t.steps%2])
		return err
	})
	switch {
	case code == "" && err != nil:
		t.Fatalf("%s: %v", what, err)
	case code != "" && !errors.Is(err, code):
		t.Fatalf("%s: got %+v, %v; want %s", what, l, err, code)
	}
	if l.Ticket != "" {
		t.ticket = l.Ticket
	}
	t.stores[0].check()
	t.told = append(t.told, events...)
	var got []string
	for _, e := range t.events(t.b, jobs) {
		got = append(got, string(e.Type))
	}
	if diff := cmp.Diff(t.told, got); diff != "" {
		t.Fatalf("%s: the events (-want +got):\n%s", what, diff)
	}
	return l
}

func (t *term) acquire(candidate string, events ...string) {
	t.Helper()
	t.do("acquire by "+candidate, "", func(s *service.Service) (leadership.Lease, error) {
		g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: keyOf(candidate)})
		return g.Lease, err
	}, events...)
}

// report is a renewal by ann; without a report, if that is "".
func (t *term) report(report string, code leadership.Code, events ...string) leadership.Lease {
	t.Helper()
	return t.do("renewal with "+report, code, func(s *service.Service) (leadership.Lease, error) {
		c := leaseOf(jobs, "ann", 1)
		c.Report, c.Ticket = []byte(report), t.ticket
		return s.Renew(t.Context(), c)
	}, events...)
}

// advance lets time pass.
func (t *term) advance(d time.Duration) {
	t.Helper()
	t.backing.Advance(t, d)
	t.stores[0].aged()
}

var termCases = []contractCase{
	{"reports are kept whole, move the end on, and trip once", func(h *handles) {
		t := newTerm(h, leadership.Config{LeaseDuration: time.Hour, LockDelay: time.Minute, Term: termPolicy})
		t.advance(40 * time.Minute)
		t.report(`{"progress":1,"tokensUsed":50}`, "")
		t.ends(leadership.EndsStuck, 5*time.Hour)
		t.advance(40 * time.Minute)
		t.report(`{"progress":1,"tokensUsed":60,"eta":"20m","health":"<ok> é","custom":{"a":[1.50,9007199254740993]}}`, "")
		t.ends(leadership.EndsStuck, 5*time.Hour-40*time.Minute)
		t.report(`{"progress":2,"tokensUsed":59}`, leadership.InvalidArgument)
		t.report("", "")
		large := `{"progress":3,"tokensUsed":60,"custom":{"x":"` + strings.Repeat("x", leadership.MaxReportBytes-100) + `"}}`
		for range 4 {
			t.report(large, "")
		}
		t.report(`{"progress":4,"tokensUsed":101}`, leadership.LeaseLost, "deposed")
		t.report(`{"progress":4,"tokensUsed":101}`, leadership.LeaseLost)
	}},
	{"no report carries a lease beyond the end that an eviction has set, through any handle", func(h *handles) {
		t := newTerm(h, leadership.Config{LeaseDuration: time.Hour, Term: leadership.TermPolicy{StuckAfter: 5 * time.Hour}})
		t.advance(20 * time.Minute)
		t.do("evict", "", func(s *service.Service) (leadership.Lease, error) {
			return s.Do(t.Context(), leadership.Order{Kind: leadership.OrderEvict, Reason: "r", Actor: "ops"}.In(jobs))
		}, "evicted")
		for i := range 6 {
			if i == 3 {
				t.advance(20 * time.Minute)
			}
			l := t.report(fmt.Sprintf(`{"progress":%d}`, i+1), "")
			if left := time.Duration(40-i/3*20) * time.Minute; l.ExpiresIn > left || l.EndsIn != l.ExpiresIn || l.EndsBecause != leadership.EndsEvicted {
				t.Errorf("report %d: %v left, %v until its end (%s); want %v at most", i, l.ExpiresIn, l.EndsIn, l.EndsBecause, left)
			}
		}
		t.advance(21 * time.Minute)
		for range 2 {
			t.report(`{"progress":7}`, leadership.LeaseLost)
		}
		t.acquire("bob", "expired", "acquired")
	}},
	// The clock is not moved here, so that a store that remembers the lease still has it as it is.
	{"no renewal comes in time after the end of a term, though the lease would last", func(h *handles) {
		t := newTerm(h, leadership.Config{LeaseDuration: time.Hour, Term: leadership.TermPolicy{MaxTerm: leadership.MinOrder, StuckAfter: 5 * time.Hour}})
		end := t.get(t.a, jobs).Record.EndsBy
		watch := t.backing.Open(t)
		for snap := t.get(watch, jobs); snap.Live(); snap = t.get(watch, jobs) {
			time.Sleep(end.Sub(snap.Now))
		}
		for _, report := range []string{`{"progress":1}`, "", `{"progress":2}`} {
			for _, s := range t.services {
				c := leaseOf(jobs, "ann", 1)
				c.Report, c.Ticket = []byte(report), t.ticket
				if l, err := s.Renew(t.Context(), c); !errors.Is(err, leadership.LeaseLost) {
					t.Errorf("renewed with %q after its end: %+v, %v", report, l, err)
				}
			}
		}
		if snap := t.update(t.a, jobs, rule.Expire); snap.Record.LeaderID != "" || !snap.Record.EndedAt.Equal(end) {
			t.Errorf("it has ended at %v, want %v: %+v", snap.Record.EndedAt, end, snap.Record)
		}
	}},
}

// ends expects why and when the present term ends.
func (t *term) ends(because leadership.EndReason, in time.Duration) {
	t.Helper()
	snap := t.get(t.b, jobs)
	l := snap.Lease()
	if l.EndsBecause != because || l.EndsIn > in || l.EndsIn < in-slack {
		t.Errorf("it ends in %v (%s), want %v or a little less (%s)", l.EndsIn, l.EndsBecause, in, because)
	}
}
