package storetest

import (
	"errors"
	"fmt"
	"slices"
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

func newTerm(h *handles, c leadership.Config) *term {
	want := new(rule.Record)
	t := &term{handles: h, stores: [2]*exact{{Store: h.a, handles: h, want: want}, {Store: h.b, handles: h, want: want}}}
	for i, s := range t.stores {
		t.services[i] = service.New(s)
	}
	t.configure(c, "configured")
	return t
}

// do makes one call through the next handle. The error must have the code; "" for none. events are
// the types of those that it must add.
func (t *term) do(what string, code leadership.Code, call func(*service.Service) (leadership.Lease, error), events ...string) leadership.Lease {
	t.Helper()
	t.steps++
	var l leadership.Lease
	err := t.eventually(func() (err error) {
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

func (t *term) configure(c leadership.Config, event string) {
	t.Helper()
	t.do("configure", "", func(s *service.Service) (leadership.Lease, error) {
		return s.Do(t.Context(), leadership.Configure{Election: jobs, Config: c})
	}, event)
}

func (t *term) acquire(candidate string, code leadership.Code, events ...string) leadership.Lease {
	t.Helper()
	return t.do("acquire by "+candidate, code, func(s *service.Service) (leadership.Lease, error) {
		g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: keyOf(candidate)})
		return g.Lease, err
	}, events...)
}

// refused is acquire that must be refused for that reason.
func (t *term) refused(candidate string, reason leadership.Reason) {
	t.Helper()
	t.do("acquire by "+candidate, leadership.LeaseHeld, func(s *service.Service) (leadership.Lease, error) {
		_, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: keyOf(candidate)})
		if e, ok := errors.AsType[*leadership.Error](err); ok && e.Reason != reason {
			t.Errorf("%s is refused for %s, want %s: %v", candidate, e.Reason, reason, err)
		}
		return leadership.Lease{}, err
	})
}

func (t *term) order(c leadership.Order, events ...string) leadership.Lease {
	t.Helper()
	c.Reason, c.Actor = "r", "ops"
	return t.orderBy(c, events...)
}

func (t *term) orderBy(c leadership.Order, events ...string) leadership.Lease {
	t.Helper()
	var l leadership.Lease
	for range 2 { // as if the reply was lost
		l = t.do(string(c.Kind), "", func(s *service.Service) (leadership.Lease, error) {
			return s.Do(t.Context(), c.In(jobs))
		}, events...)
		events = nil
	}
	return l
}

func (t *term) report(candidate string, token leadership.Token, report string, code leadership.Code, events ...string) leadership.Lease {
	t.Helper()
	return t.do("renewal with "+report, code, func(s *service.Service) (leadership.Lease, error) {
		c := leaseOf(jobs, candidate, token)
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

// override returns the id of the standing order of that kind.
func (t *term) override(l leadership.Lease, kind leadership.OverrideKind) leadership.OverrideID {
	t.Helper()
	all := l.Overrides.List()
	i := slices.IndexFunc(all, func(o leadership.Override) bool { return o.Kind == kind })
	if i < 0 {
		t.Fatalf("no %s among %+v", kind, all)
	}
	return all[i].ID
}

var termCases = []contractCase{
	{"every order is kept whole, as are its end and its repetition", func(h *handles) {
		t := newTerm(h, leadership.Config{LeaseDuration: time.Hour, Term: termPolicy})
		t.acquire("ann", "", "acquired")
		l := t.order(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: 30 * 24 * time.Hour}, "banned")
		t.order(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "cid", For: time.Hour}, "assigned")
		t.ends(leadership.EndsHandOver, time.Hour)
		t.order(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Hour}, "assigned")
		t.ends(leadership.EndsStuck, 5*time.Hour)
		t.order(leadership.Order{Kind: leadership.OrderPause, For: time.Hour, Mode: leadership.PauseDrain}, "paused")
		t.ends(leadership.EndsDrained, time.Hour)
		t.order(leadership.Order{Kind: leadership.OrderResume}, "resumed")
		t.ends(leadership.EndsStuck, 5*time.Hour)
		t.order(leadership.Order{Kind: leadership.OrderPause, For: time.Hour}, "paused")
		t.order(leadership.Order{Kind: leadership.OrderLift, Override: t.override(l, leadership.OverrideBan)}, "lifted")
		l = t.order(leadership.Order{Kind: leadership.OrderEvict, Ban: time.Hour}, "evicted")
		t.ends(leadership.EndsEvicted, time.Hour)
		if n := len(l.Overrides.List()); n != 3 {
			t.Errorf("%d orders stand, want assign, pause and ban: %s", n, l.Overrides)
		}
	}},
	{"reports are kept whole, move the end on, and trip once", func(h *handles) {
		t := newTerm(h, leadership.Config{LeaseDuration: time.Hour, LockDelay: time.Minute, Term: termPolicy})
		t.acquire("ann", "", "acquired")
		t.advance(40 * time.Minute)
		t.report("ann", 1, `{"progress":1,"tokensUsed":50}`, "")
		t.ends(leadership.EndsStuck, 5*time.Hour)
		t.advance(40 * time.Minute)
		l := t.report("ann", 1, `{"progress":1,"tokensUsed":60,"eta":"20m","health":"<ok> é","custom":{"a":[1.50,9007199254740993]}}`, "")
		t.ends(leadership.EndsStuck, 5*time.Hour-40*time.Minute)
		t.report("ann", 1, `{"progress":2,"tokensUsed":59}`, leadership.InvalidArgument)
		t.do("renewal without one", "", func(s *service.Service) (leadership.Lease, error) {
			c := leaseOf(jobs, "ann", 1)
			c.Ticket = l.Ticket
			return s.Renew(t.Context(), c)
		})
		large := `{"progress":3,"tokensUsed":60,"custom":{"x":"` + strings.Repeat("x", leadership.MaxReportBytes-100) + `"}}`
		for range 4 {
			t.report("ann", 1, large, "")
		}
		t.report("ann", 1, `{"progress":4,"tokensUsed":101}`, leadership.LeaseLost, "deposed")
		t.report("ann", 1, `{"progress":4,"tokensUsed":101}`, leadership.LeaseLost)
		t.refused("ann", leadership.ReasonBanned)
		t.refused("bob", leadership.ReasonLockDelay)
	}},
	{"no report carries a lease beyond the end that an eviction has set, through any handle", func(h *handles) {
		t := newTerm(h, leadership.Config{LeaseDuration: time.Hour, Term: leadership.TermPolicy{StuckAfter: 5 * time.Hour}})
		t.ticket = t.acquire("ann", "", "acquired").Ticket
		t.advance(20 * time.Minute)
		t.order(leadership.Order{Kind: leadership.OrderEvict}, "evicted")
		for i := range 6 {
			if i == 3 {
				t.advance(20 * time.Minute)
			}
			l := t.report("ann", 1, fmt.Sprintf(`{"progress":%d}`, i+1), "")
			if left := time.Duration(40-i/3*20) * time.Minute; l.ExpiresIn > left || l.EndsIn != l.ExpiresIn || l.EndsBecause != leadership.EndsEvicted {
				t.Errorf("report %d: %v left, %v until its end (%s); want %v at most", i, l.ExpiresIn, l.EndsIn, l.EndsBecause, left)
			}
		}
		t.advance(21 * time.Minute)
		for range 2 {
			t.report("ann", 1, `{"progress":7}`, leadership.LeaseLost)
		}
		t.acquire("bob", "", "expired", "acquired")
	}},
	// The clock is not moved here, so that a store that remembers the lease still has it as it is.
	{"no renewal comes in time after the end of a term, though the lease would last", func(h *handles) {
		t := newTerm(h, leadership.Config{LeaseDuration: time.Hour, Term: leadership.TermPolicy{MaxTerm: leadership.MinOrder, StuckAfter: 5 * time.Hour}})
		t.ticket = t.acquire("ann", "", "acquired").Ticket
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
