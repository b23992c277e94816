package test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/test/checker"
	"regent/test/load"
	"regent/test/machine"
)

// Many candidates wait at two instances for a few seats. There is never a leader more than seats;
// waiting costs the store nothing; and how long a seat stays free is measured beside how long an
// election of one leader does.
func TestACrowdThatWaitsForSeatsHasNoLeaderMore(t *testing.T) {
	machine.Share(t)
	const pool leadership.Election = "gpu"
	size, seats, idle, changes := 60, 10, 2*time.Second, 10
	if *crowded != few {
		size, idle, changes = min(*crowded, 1000), 65*time.Second, 100
	}
	for name, begin := range map[string]func(testing.TB) crowdServers{"firestore": twoInFirestore, "spanner": twoInSpanner} {
		t.Run(name, func(t *testing.T) {
			if *crowded == few {
				t.Parallel()
			}
			on := begin(t)
			many := newSeatsRun(t, on, pool, seats, size)
			many.idle(idle)
			of10 := many.changes(changes)
			many.requireNoLeaderMore(seats)
			one := newSeatsRun(t, on, planner, 0, size)
			of1 := one.changes(changes)
			ratio := float64(quantile(of10, 0.99)) / float64(quantile(of1, 0.99))
			t.Logf("%v\nwithout seats:%v\nthe longest of a hundred times that a seat is free is %.2f of that of an election without", many, one, ratio)
		})
	}
}

// seatsRun is a crowd that waits for seats, or for an election without.
type seatsRun struct {
	*crowdRun
	election leadership.Election
	config   leadership.Config
	led      []*load.Grant // in the order in which they were granted
}

// newSeatsRun lets so many candidates come, of whom the first lead.
func newSeatsRun(tb testing.TB, on crowdServers, e leadership.Election, seats, size int) *seatsRun {
	tb.Helper()
	p := &seatsRun{crowdRun: &crowdRun{crowdServers: on, tb: tb}, election: e, config: leadership.Config{LeaseDuration: time.Hour, Seats: seats}}
	if _, err := p.clients[0].Do(tb.Context(), leadership.Configure{Election: e, Config: p.config}); err != nil {
		tb.Fatal(err)
	}
	c, err := load.Start(load.Config{Kind: load.Waiters, Size: size, Servers: p.servers, Election: e})
	require.NoError(tb, err)
	tb.Cleanup(c.Leave)
	p.waiters = c
	present := false
	p.await(c, "all to be there", func(r load.Report) bool {
		if r.Grant != nil {
			p.led = append(p.led, r.Grant)
		}
		present = present || r.Present
		return present && len(p.led) == max(seats, 1)
	})
	p.note("%d candidates are there: %v", size, p.settleFor(2*time.Second)) // each instance looks once at what it has not heard of
	return p
}

// changes lets the leader that has led longest release, so many times, and returns after how long
// the next one led.
func (p *seatsRun) changes(n int) (free []time.Duration) {
	p.tb.Helper()
	calls := p.calls()
	for range n {
		first := p.led[0]
		key, err := leadership.ParseKey(first.Key)
		require.NoError(p.tb, err)
		lease := leadership.LeaseRequest{Election: first.Election, CandidateID: first.CandidateID, Key: key, Token: first.Token}
		if _, err := p.clients[0].Do(p.tb.Context(), leadership.Release{LeaseRequest: lease}); err != nil {
			p.tb.Fatal(err)
		}
		released := boottime.Now()
		next := p.await(p.waiters, "a waiter to lead", func(r load.Report) bool { return r.Grant != nil }).Grant
		p.led, free = append(p.led[1:], next), append(free, next.At-released)
		calls = calls.Plus(p.settle())
	}
	p.note("%d releases: the next leads after %s; %v", n, distribution(free), calls)
	return free
}

// requireNoLeaderMore looks at the whole history.
func (p *seatsRun) requireNoLeaderMore(seats int) {
	p.tb.Helper()
	var r checker.Recording
	for n := range seats + 1 {
		e := p.election
		if n > 0 {
			e = e.Seat(n)
		}
		events, err := p.clients[1].Events(p.tb.Context(), leadership.EventsRequest{Election: e, Limit: leadership.MaxPageSize})
		require.NoError(p.tb, err)
		r.History = slices.Concat(r.History, events)
	}
	r.Calls = []checker.Call{{Verb: checker.Configure, Election: p.election, Request: r.History[0].RequestID, Config: p.config}}
	for _, f := range checker.All(r, 0, 0) {
		if f.Name == "SE" && f.Checked < seats+len(p.led) {
			p.tb.Errorf("%d grants of seats are on record", f.Checked)
		}
		if err := f.Err(); err != nil {
			p.tb.Errorf("%s: %v", f.Name, err)
		}
	}
}
