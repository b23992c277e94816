package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var seatCases = []contractCase{
	{"an election whose seats may not have heard of its last change is due, until a tick has told them", func(h *handles) {
		s := service.New(h.a)
		if _, err := s.Do(h.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{Seats: 2, LeaseDuration: time.Hour}}); err != nil {
			h.Fatal(err)
		}
		g, err := s.Acquire(h.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "ann"})
		if err != nil {
			h.Fatal(err)
		}
		now := func() time.Time { return h.get(h.a, jobs).Now }
		if got := h.retirable(now(), 10); len(got) != 0 {
			h.Errorf("all have heard, and due are %v", got)
		}
		drain := leadership.Order{Kind: leadership.OrderPause, Mode: leadership.PauseDrain, For: time.Hour, Reason: "r", Actor: "op"}
		h.update(h.a, jobs, apply(drain)) // its process dies before it tells anyone
		if got := h.retirable(now(), 10); !slices.Equal(got, []leadership.Election{jobs}) {
			h.Errorf("due are %v, want %s", got, jobs)
		}
		if n, err := service.New(h.b).RetireAll(h.Context()); n != 0 || err != nil {
			h.Errorf("retired %d, %v", n, err)
		}
		l, err := s.Renew(h.Context(), leadership.LeaseRequest{Election: g.Election, CandidateID: "ann", Key: g.Key, Token: g.Token})
		if err != nil || l.EndsBecause != leadership.EndsDrained {
			h.Errorf("after a tick the leader of a seat goes on (%q), %v", l.EndsBecause, err)
		}
		if got := h.retirable(now(), 10); len(got) != 0 {
			h.Errorf("once they were told, due are %v", got)
		}
	}},
	{"an election with seats grants each of them, and no more, whichever process asks", func(h *handles) {
		by := [2]*service.Service{service.New(h.a), service.New(h.b)}
		seats := func(s *service.Service, n int) {
			h.Helper()
			if _, err := s.Do(h.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{Seats: n, LeaseDuration: time.Hour}}); err != nil {
				h.Fatalf("%d seats: %v", n, err)
			}
		}
		ask := func(s *service.Service, c string) (g leadership.Grant, err error) {
			h.Helper()
			key := keyOf(c)
			err = h.eventually(func() error {
				g, err = s.Acquire(h.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(c), Key: key})
				return err
			})
			return g, err
		}
		seats(by[0], 3)
		early := h.get(h.a, jobs)
		var led []leadership.Grant
		got := map[leadership.Election]bool{}
		for i := range 3 {
			g, err := ask(by[i%2], fmt.Sprint("c", i))
			if err != nil || g.Seat == 0 || got[g.Election] {
				h.Fatalf("candidate %d got %+v, %v; want a seat of its own", i, g.Lease, err)
			}
			got[g.Election] = true
			again, err := ask(by[(i+1)%2], fmt.Sprint("c", i))
			if err != nil || again.Election != g.Election || again.Token != g.Token {
				h.Fatalf("candidate %d asked again got %+v, %v; want %s", i, again.Lease, err, g.Election)
			}
			led = append(led, again)
		}
		if g, err := ask(by[1], "late"); !errors.Is(err, leadership.LeaseHeld) {
			h.Fatalf("a fourth candidate got %+v, %v", g.Lease, err)
		}
		seats(by[1], 1)
		if w := h.get(h.a, jobs); w.Record.Standing.Untold != 0 {
			h.Errorf("%d seats may not have heard, want none", w.Record.Standing.Untold)
		}
		for _, g := range led {
			l, err := by[0].Renew(h.Context(), leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token})
			if want := map[bool]leadership.EndReason{false: leadership.EndsSeats}[g.Seat == 1]; err != nil || l.EndsBecause != want || want != "" && l.LeaseExpiration.After(g.LeaseExpiration.Add(time.Millisecond)) {
				h.Errorf("seat %d is renewed until %v (%s), %v; its leader was promised %v", g.Seat, l.LeaseExpiration, l.EndsBecause, err, g.LeaseExpiration)
			}
		}
		seat := jobs.Seat(3)
		same := h.update(h.b, seat, func(s rule.Snapshot) (rule.Change, error) { return rule.Tell(s, early) })
		if same.Record.EndsBecause != leadership.EndsSeats {
			h.Errorf("news that come late let the term at seat 3 go on (%s)", same.Record.EndsBecause)
		}
		h.backing.Advance(h, 2*time.Hour)
		_, err := h.a.Update(h.Context(), seat, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			return rule.Acquire(s, rule.AcquireCommand{CandidateID: "eve", KeyHash: hashOf("eve"), Whole: &early})
		})
		if _, ok := errors.AsType[*rule.NeedsWhole](err); !ok {
			h.Errorf("with what was read before, seat 3 is granted: %v", err)
		}
		if g, err := ask(by[1], "eve"); err != nil || g.Seat != 1 {
			h.Errorf("eve got %+v, %v; want seat 1", g.Lease, err)
		}
	}},
}
