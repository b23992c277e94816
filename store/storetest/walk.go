package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
)

// The walk's instants lie on a grid: leases end an odd multiple of gridHalf after they began, and
// time passes in even ones. So the store and the model, whose clocks differ by the duration of the
// walk, never disagree about which leases are over.
const (
	gridHalf  = 5 * time.Minute
	walkSteps = 60
)

func walkCases() []contractCase {
	cases := make([]contractCase, 4)
	for seed := range cases {
		cases[seed] = contractCase{fmt.Sprintf("on a random walk the store answers as the rules do, seed %d", seed), func(h *handles) { h.walk(uint64(seed)) }}
	}
	return cases
}

// randomWalk plays the same random commands on the store and on the model.
type randomWalk struct {
	*handles
	rand    *rand.Rand
	store   [2]*exact // one for each handle
	model   service.Store
	now     time.Time
	tokens  map[string]leadership.Token // the last that each candidate was granted
	tickets []leadership.Ticket         // of the store, the newest last
}

func (h *handles) walk(seed uint64) {
	w := &randomWalk{
		handles: h,
		rand:    rand.New(rand.NewPCG(seed, 1)),
		now:     time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		tokens:  make(map[string]leadership.Token),
	}
	want := new(rule.Record)
	w.store = [2]*exact{{Store: h.a, handles: h, want: want}, {Store: h.b, handles: h, want: want}}
	w.model = memory.New(memory.Config{Now: func() time.Time {
		w.now = w.now.Add(time.Microsecond) // so that no two changes are of the same instant
		return w.now
	}})
	start := time.Now()
	for i := range walkSteps {
		w.step(i)
		if h.Failed() {
			return
		}
	}
	if took := time.Since(start); took > gridHalf/2 {
		h.Fatalf("the walk took %v: too long to know which leases are over", took)
	}
	w.sameHistory()
}

func (w *randomWalk) step(i int) {
	if w.rand.IntN(4) == 0 {
		d := time.Duration(1+w.rand.IntN(3)) * 2 * gridHalf
		w.now = w.now.Add(d)
		w.backing.Advance(w, d)
		w.store[0].aged()
	}
	name, call := w.command()
	want, wantErr := call(w.model)
	var got leadership.Lease
	err := eventually(func() (err error) {
		got, err = call(w.store[w.rand.IntN(2)])
		return err
	})
	if diff := cmp.Diff(outcome(want, wantErr), outcome(got, err)); diff != "" {
		w.Errorf("step %d, %s (-model +store):\n%s", i, name, diff)
	}
	w.store[0].check()
	if wantErr == nil && want.State == leadership.Held {
		w.tokens[string(want.LeaderID)] = want.Token
	}
	if err == nil && got.Ticket != "" {
		w.tickets = append(w.tickets, got.Ticket)
	}
}

// ticket is the newest one most of the time, which need not be the caller's; else an older one or
// none.
func (w *randomWalk) ticket() leadership.Ticket {
	n := len(w.tickets)
	switch w.rand.IntN(4) {
	case 0:
		return ""
	case 1:
		n = w.rand.IntN(n + 1)
	}
	if n == 0 {
		return ""
	}
	return w.tickets[n-1]
}

type command func(service.Store) (leadership.Lease, error)

// command picks what happens next.
func (w *randomWalk) command() (string, command) {
	who := []string{"ann", "bob", "cid"}[w.rand.IntN(3)]
	key := *keyOf(who)
	token := max(w.tokens[who], 1)
	lease := leadership.LeaseRequest{Election: jobs, CandidateID: leadership.CandidateID(who), Key: key, Token: token, Ticket: w.ticket()}
	ctx := w.Context()
	switch w.rand.IntN(16) {
	case 0, 1, 2, 3:
		ask := leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(who), Key: &key}
		ask.LeaseDuration = time.Duration(1+2*w.rand.IntN(2)) * gridHalf
		ask.Metadata = fmt.Appendf(nil, `{"n":%d}`, w.rand.IntN(2))
		ask.Note = []string{"", "page 1", "page 2"}[w.rand.IntN(3)]
		ask.Priority = w.rand.Int64N(3)
		if w.rand.IntN(8) == 0 {
			ask.Role = leadership.RoleWitness
		}
		return fmt.Sprintf("acquire by %s for %v with %+v", who, ask.LeaseDuration, ask.Candidacy), func(s service.Store) (leadership.Lease, error) {
			g, err := service.New(s).Acquire(ctx, ask)
			return g.Lease, err
		}
	case 4, 5:
		return fmt.Sprintf("renew by %s with %d", who, token), func(s service.Store) (leadership.Lease, error) { return service.New(s).Renew(ctx, lease) }
	case 6:
		return fmt.Sprintf("release by %s with %d", who, token), func(s service.Store) (leadership.Lease, error) {
			return service.New(s).Do(ctx, leadership.Release{LeaseRequest: lease})
		}
	case 7:
		return "expire", func(s service.Store) (leadership.Lease, error) { return service.New(s).Expire(ctx, jobs) }
	case 8:
		force := w.rand.IntN(2) == 0
		return fmt.Sprintf("delete, force %v", force), func(s service.Store) (leadership.Lease, error) {
			return service.New(s).Do(ctx, leadership.Delete{Election: jobs, Force: force})
		}
	case 9, 10:
		terms := w.rand.IntN(2)
		return fmt.Sprintf("limit to %d terms more", terms), w.direct(func(s rule.Snapshot) (rule.Change, error) {
			if !s.Live() {
				return rule.Change{}, nil
			}
			return limit(s.Record.LeaseEnd().Sub(s.Record.HeartbeatAt)+time.Duration(terms)*2*gridHalf, leadership.EndsStuck)(s)
		})
	case 11:
		members := []string{"", unknownPolicy, `{"a":{}}`}[w.rand.IntN(3)]
		return fmt.Sprintf("quiet change to %q", members), w.direct(func(s rule.Snapshot) (rule.Change, error) {
			if s.Record.Revision == 0 {
				return rule.Change{}, nil
			}
			ch := rule.Change{Record: s.Record, Quiet: true}
			ch.Record.Policy.Unknown, ch.Record.Standing.Unknown = members, members
			return ch, nil
		})
	case 12:
		return fmt.Sprintf("withdrawal of %s", who), func(s service.Store) (leadership.Lease, error) {
			return service.New(s).Do(ctx, leadership.Withdraw{Election: jobs, CandidateID: leadership.CandidateID(who)})
		}
	}
	return w.configuration(ctx)
}

// direct is a command that no Service has yet.
func (w *randomWalk) direct(decide func(rule.Snapshot) (rule.Change, error)) command {
	return func(s service.Store) (leadership.Lease, error) {
		snap, err := s.Update(w.Context(), jobs, rule.Expect{}, decide)
		return snap.Lease(), err
	}
}

func (w *randomWalk) configuration(ctx context.Context) (string, command) {
	c := leadership.Config{LeaseDuration: gridHalf, LockDelay: time.Duration(w.rand.IntN(2)) * 2 * gridHalf, Description: []string{"", "für alle <&>"}[w.rand.IntN(2)]}
	if w.rand.IntN(2) == 0 { // a window would end by the clock of the store, which is not the model's
		c.Ballot = leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true}
	}
	return fmt.Sprintf("configure %+v", c), func(s service.Store) (leadership.Lease, error) {
		return service.New(s).Do(ctx, leadership.Configure{Election: jobs, Config: c})
	}
}

// outcome has everything that the store and the model have to agree on: all but instants.
func outcome(l leadership.Lease, err error) string {
	var e *leadership.Error
	switch {
	case errors.As(err, &e) && e.Lease != nil:
		return fmt.Sprintf("%s %s %s", e.Code, e.Reason, outcome(*e.Lease, nil))
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("%s %s token=%d revision=%d lease=%v metadata=%s config=%+v deleted=%v locked=%v ends=%s challenger=%s",
		l.State, l.LeaderID, l.Token, l.Revision, l.LeaseDuration, l.Metadata, l.Config, l.Deleted, l.LockedFor > 0, l.EndsBecause, l.Challenger)
}

func (w *randomWalk) sameHistory() {
	read := func(s service.Store) (lines []string) {
		events, err := service.New(s).Events(w.Context(), leadership.EventsRequest{Election: jobs, Limit: leadership.MaxPageSize})
		if err != nil && !errors.Is(err, leadership.NotFound) {
			w.Fatal(err)
		}
		for _, e := range events {
			lines = append(lines, told(e))
		}
		return lines
	}
	if diff := cmp.Diff(read(w.model), read(w.store[0])); diff != "" {
		w.Errorf("history (-model +store):\n%s", diff)
	}
}
