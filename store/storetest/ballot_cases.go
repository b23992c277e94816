package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// window is that of the ballots in these cases. They let the time pass at once.
const window = leadership.MaxWindow

// byPriority is a configuration with a ballot.
func byPriority(lease time.Duration) leadership.Config {
	return leadership.Config{LeaseDuration: lease, Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: window}}
}

// candidate is one with a key of its own and that priority.
func candidate(id string, priority int64) leadership.AcquireRequest {
	return leadership.AcquireRequest{
		Election: jobs, CandidateID: leadership.CandidateID(id), Key: keyOf(id), Candidacy: leadership.Candidacy{Priority: priority},
	}
}

// bid is a call of a candidate that must not be granted now, for that reason.
func (t *term) bid(r leadership.AcquireRequest, reason leadership.Reason, events ...string) {
	t.Helper()
	what := fmt.Sprintf("bid by %s", r.CandidateID)
	t.do(what, leadership.LeaseHeld, func(s *service.Service) (leadership.Lease, error) {
		_, err := s.Acquire(t.Context(), r)
		if e, ok := errors.AsType[*leadership.Error](err); ok && (e.Reason != reason || e.RetryAfter <= 0 || e.Cause == nil && reason != leadership.ReasonHeld) {
			t.Errorf("%s is refused for %s, %+v, to come back after %v; want %s", what, e.Reason, e.Cause, e.RetryAfter, reason)
		}
		return leadership.Lease{}, err
	}, events...)
}

// elect lets the candidates bid, the window pass, and the first of them be granted. Bids that are
// void by then, because the machine is slow, are made again.
func (t *term) elect(all ...leadership.AcquireRequest) leadership.Lease {
	t.Helper()
	const rounds = 20
	for range rounds {
		for i, r := range slices.Concat(all, all[:1]) {
			t.steps++
			var g leadership.Grant
			err := t.eventually(func() (err error) {
				g, err = t.services[t.steps%2].Acquire(t.Context(), r)
				return err
			})
			switch {
			case err == nil && r.CandidateID == all[0].CandidateID:
				t.ticket = g.Ticket
				t.do("a read", "", func(s *service.Service) (leadership.Lease, error) { return s.Get(t.Context(), jobs) }, "acquired")
				return g.Lease
			case !errors.Is(err, leadership.LeaseHeld):
				t.Fatalf("bid %d, by %s: %+v, %v", i, r.CandidateID, g, err)
			}
			t.stores[0].check()
			if i == len(all)-1 {
				t.advance(window)
			}
		}
	}
	t.Fatalf("%s is not granted in %d ballots: %+v", all[0].CandidateID, rounds, t.get(t.a, jobs).Record.Standing)
	return leadership.Lease{}
}

// bidders are the candidates whose bids the record has, the best first.
func bidders(r rule.Record) (names []string) {
	var all []leadership.Bid
	if r.Standing.Bids != "" {
		if err := json.Unmarshal([]byte(r.Standing.Bids), &all); err != nil {
			return []string{err.Error()}
		}
	}
	for _, b := range all {
		names = append(names, string(b.CandidateID))
	}
	return names
}

// bid expects those bids in the record, through both handles.
func (t *term) bids(want ...string) {
	t.Helper()
	for _, s := range []service.Store{t.a, t.b} {
		if got := bidders(t.get(s, jobs).Record); !slices.Equal(got, want) {
			t.Errorf("the bids are %v, want %v", got, want)
		}
	}
}

var ballotCases = []contractCase{
	{"a bid leaves the token, the revision, the events and the last heartbeat as they are", func(h *handles) {
		t := newTerm(h, byPriority(time.Hour))
		l := t.elect(candidate("ann", 1))
		t.do("release", "", func(s *service.Service) (leadership.Lease, error) {
			return s.Do(t.Context(), leadership.Release{LeaseRequest: leaseOf(jobs, "ann", 1)})
		}, "released")
		before := t.get(t.a, jobs).Record
		t.bid(candidate("bob", 1), leadership.ReasonBallot)
		t.bid(candidate("cid", 2), leadership.ReasonBallot)
		t.bid(candidate("bob", 1), leadership.ReasonOutranked)
		t.bids("cid", "bob")
		after := t.get(t.b, jobs).Record
		after.Standing = before.Standing
		if !sameRecord(after, before) {
			t.Errorf("bids have changed the record: got %+v\nwant %+v", after, before)
		}
		for _, s := range t.services {
			c := leaseOf(jobs, "ann", 1)
			c.Ticket = l.Ticket
			if l, err := s.Renew(t.Context(), c); !errors.Is(err, leadership.LeaseLost) {
				t.Errorf("after the release it renews: %+v, %v", l, err)
			}
		}
	}},
	{"a lease that ran out is recorded as expired together with the first bid for the next", func(h *handles) {
		t := newTerm(h, byPriority(time.Minute))
		t.elect(candidate("ann", 1))
		t.advance(2 * time.Minute)
		t.bid(candidate("bob", 1), leadership.ReasonBallot, "expired")
		t.bids("bob")
		if ch := t.stores[t.steps%2].change; len(ch.Events) != 1 || len(bidders(ch.Record)) != 1 {
			t.Errorf("it is not one change: %+v", ch)
		}
		t.elect(candidate("cid", 2), candidate("bob", 1))
	}},
	{"bids that come at the same moment are all in the record, through any handle", func(h *handles) { h.bidTogether() }},
}

// preempting is a configuration without a ballot, in which a better candidate ends the term.
func preempting() leadership.Config {
	return leadership.Config{LeaseDuration: time.Hour, Ballot: leadership.BallotPolicy{
		Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true,
	}}
}

// bidTogether lets candidates bid at the same time, of which each adds a member to the quorum, so
// that no bid can be left out.
func (h *handles) bidTogether() {
	names := []string{"ann", "bob", "cid", "dan", "eve", "fay"}
	c := byPriority(time.Hour)
	c.Ballot.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames(names...), Need: len(names)}
	services := []*service.Service{service.New(h.a), service.New(h.b)}
	for round := range 3 {
		e := leadership.Election(fmt.Sprintf("together-%d", round))
		h.update(h.a, e, apply(leadership.Configure{Config: c}))
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				ask := candidate(name, int64(i))
				ask.Election = e
				err := h.eventually(func() error { _, err := services[i%2].Acquire(h.Context(), ask); return err })
				if !errors.Is(err, leadership.LeaseHeld) {
					h.Errorf("bid by %s: %v", name, err)
				}
			})
		}
		all.Wait()
		got := h.get(h.a, e)
		if bids := bidders(got.Record); len(bids) != len(names) || bids[0] != "fay" {
			h.Errorf("the bids are %v, want those of %v, the last first", bids, names)
		}
		if events := h.events(h.b, e); got.Record.Revision != 1 || len(events) != 1 {
			h.Errorf("revision %d and %d events after bids, want 1", got.Record.Revision, len(events))
		}
	}
}
