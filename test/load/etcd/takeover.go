package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"regent/test/load"
	"regent/test/load/etcd/internal/contender"
)

// takeOvers returns the entrants of a contest about take-overs, and its pairs. What spindle's two
// entrants do is the same; they differ in how the next leader hears of it.
func takeOvers() ([]Entrant, []Pair) {
	entrants := []Entrant{
		{"spindle, taken", "until the waiting process's spindle has taken the lock, as its log says: the first moment at which `HasLock`, a query each time, would say yes"},
		{"spindle, told", "the same take-over, until the callback of `WithLeaderCallback` says so: `Run` calls it once in each duration"},
		{"Regent", "`Campaign` of leadership/client, which waits in line at one `regent serve` and returns when this process leads"},
	}
	return entrants, []Pair{{Regent: 2, Other: 0, Measure: Median}, {Regent: 2, Other: 1, Measure: Median}, {Regent: 2, Other: 0, Measure: Last}}
}

func (s *spanner) killed(ctx context.Context) (Contest, error) {
	entrants, pairs := takeOvers()
	return s.takeOver(ctx, Contest{
		Title: "Take-over when the leader is killed", Entrants: entrants, Pairs: pairs,
		About: "A process leads and another one waits, at least two leases long. The leader is killed (SIGKILL) at a random moment of its lease. A sample is from " +
			"the kill to when the waiting process learns that it leads. spindle lets the next one in when the last heartbeat is older than the duration and a second, " +
			"and each process looks once in a duration.",
	}, func(_ context.Context, leader *contender.Process) (time.Duration, error) { return leader.Kill() })
}

func (s *spanner) released(ctx context.Context) (Contest, error) {
	entrants, pairs := takeOvers()
	return s.takeOver(ctx, Contest{
		Title: "Take-over when the leader releases", Entrants: entrants, Pairs: pairs,
		About: "The same, but the leader gives up at that moment, and its process lives on. Regent's calls `Resign`. spindle has no call that releases: its documented way, " +
			"also that of its `Unlock`, is to cancel the context of `Run`, which writes nothing, so the next one waits until the heartbeat is too old.",
	}, func(ctx context.Context, leader *contender.Process) (time.Duration, error) {
		return leader.Release(ctx)
	})
}

// takeOverTimeout is how long the next process may take, in leases, beside a constant time.
const (
	takeOverLeases  = 12
	takeOverTimeout = 30 * time.Second
)

// takeOver is a contest in which so many leaders end, each in a process of its own, and as many
// processes wait for one of them each.
func (s *spanner) takeOver(ctx context.Context, c Contest, end func(context.Context, *contender.Process) (time.Duration, error)) (Contest, error) {
	c.Of, c.Kind, c.Other = "s leases", Few, "spindle"
	for _, lease := range s.Leases {
		c.Rows = append(c.Rows, Row{Size: seconds(lease), Samples: make([][]Sample, len(c.Entrants))})
	}
	for round := range s.TakeOverRounds {
		sides := []func() error{
			func() error {
				return s.endAll(ctx, c, s.ofSpindle, []contender.Event{contender.Leads, contender.Told}, 0, end)
			},
			func() error { return s.endAll(ctx, c, s.ofRegent, []contender.Event{contender.Leads}, 2, end) },
		}
		if round%2 == 1 {
			slices.Reverse(sides)
		}
		for _, run := range sides {
			if err := run(); err != nil {
				return c, err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, s.TakeOverRounds, c.Title)
	}
	return c, nil
}

// endAll runs one round of one side: all leases at once, and as many leaders of each, each at a
// site of its own, because the emulator runs one transaction of a database at a time. What happens
// to the next leader is sampled event by event, for the entrants from first on.
func (s *spanner) endAll(ctx context.Context, c Contest, of side, events []contender.Event, first int, end func(context.Context, *contender.Process) (time.Duration, error)) error {
	begin, each := time.Now(), s.TakeOvers
	took, early := make([][]time.Duration, len(s.Leases)*each), make([]int, len(s.Leases)*each)
	err := load.Each(len(took), len(took), func(i int) error {
		place, err := of(ctx)
		if err != nil {
			return err
		}
		defer place.close()
		for {
			took[i], err = endOne(ctx, place, fmt.Sprintf("lock-%d", early[i]), s.Leases[i/each], events, end)
			if !errors.Is(err, errEarly) || early[i] == mostEarly {
				return err
			}
			early[i]++
		}
	})
	if err != nil {
		return err
	}
	for i := range s.Leases {
		for k := range events {
			var of []time.Duration
			failed := 0
			for j := i * each; j < (i+1)*each; j++ {
				of, failed = append(of, took[j][k]), failed+early[j]
			}
			sample := sampleOf(begin, of)
			if failed > 0 {
				sample.Errors, sample.Failure = failed, errEarly.Error()
			}
			c.Rows[i].Samples[first+k] = append(c.Rows[i].Samples[first+k], sample)
		}
	}
	return nil
}

// errEarly says that there was nothing to take over any more. It is tried again, and counted.
var errEarly = errors.New("the leader lost its lock before it was ended")

// mostEarly is how often one take-over is tried again.
const mostEarly = 3

// endOne ends one leader, and returns how long after it each event came to the next.
func endOne(ctx context.Context, place site, lock string, lease time.Duration, events []contender.Event, end func(context.Context, *contender.Process) (time.Duration, error)) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, takeOverTimeout+takeOverLeases*lease)
	defer cancel()
	leader, err := place.compete("leader", lock, lease)
	if err != nil {
		return nil, err
	}
	defer leader.Stop()
	if _, err := leader.Await(ctx, contender.Told); err != nil {
		return nil, err
	}
	next, err := place.compete("next", lock, lease)
	if err != nil {
		return nil, err
	}
	defer next.Stop()
	<-time.After(2*lease + rand.N(lease)) // by then the one waits and the other renews
	ended, err := end(ctx, leader)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for _, e := range events {
		at, err := next.Await(ctx, e)
		if err != nil {
			return nil, err
		}
		if at < ended {
			return nil, errEarly
		}
		took = append(took, at-ended)
	}
	return took, nil
}
