package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"regent/test/load"
	"regent/test/load/etcd/internal/contender"
)

// takeOvers returns the entrants of a contest about take-overs.
func takeOvers() []Entrant {
	return []Entrant{
		{"spindle", "until the waiting process's spindle has taken the lock, as its log says: the first moment at which `HasLock`, a query each time, would say yes"},
		{"Regent", "`Campaign` of leadership/client, which waits in line at one `regent serve` and returns when this process leads"},
	}
}

func (s *spanner) killed(ctx context.Context) (Contest, error) {
	return s.takeOver(ctx, Contest{
		Title: "Take-over when the leader is killed", Entrants: takeOvers(),
		About: "A process leads and another one waits, at least two leases long. The leader is killed (SIGKILL) at a random moment of its lease. A sample is from " +
			"the kill to when the waiting process learns that it leads. spindle lets the next one in when the last heartbeat is older than the duration and a second, " +
			"and each process looks once in a duration.",
	}, func(_ context.Context, leader *contender.Process) (time.Duration, error) { return leader.Kill() })
}

func (s *spanner) released(ctx context.Context) (Contest, error) {
	return s.takeOver(ctx, Contest{
		Title: "Take-over when the leader releases", Entrants: takeOvers(),
		About: "The same, but the leader gives up at that moment, and its process lives on. Regent's calls `Resign`. spindle has no call that releases: its documented way, " +
			"also that of its `Unlock`, is to cancel the context of `Run`, which writes nothing, so the next one waits until the heartbeat is too old.",
	}, func(ctx context.Context, leader *contender.Process) (time.Duration, error) {
		return leader.Release(ctx)
	})
}

// ending ends a leader, and returns when that was.
type ending func(context.Context, *contender.Process) (time.Duration, error)

// takeOver is a contest in which so many leaders end, each in a process of its own, and as many
// processes wait for one of them each.
func (s *spanner) takeOver(ctx context.Context, c Contest, end ending) (Contest, error) {
	c.Of, c.Kind, c.Other, c.Pairs = "s leases", Few, "spindle", []Pair{{1, 0, Median, "", nil}, {1, 0, Last, "", nil}}
	for _, lease := range s.Leases {
		c.Rows = append(c.Rows, Row{seconds(lease), make([][]Sample, len(c.Entrants))})
	}
	for round := range s.TakeOverRounds {
		for k := range c.Entrants {
			if round%2 == 1 {
				k = 1 - k
			}
			if err := s.endAll(ctx, c, k, end); err != nil {
				return c, err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, s.TakeOverRounds, c.Title)
	}
	return c, nil
}

// endAll runs one round of one side: all leases at once, and as many leaders of each, each at a
// site of its own, because the emulator runs one transaction of a database at a time.
func (s *spanner) endAll(ctx context.Context, c Contest, entrant int, end ending) error {
	begin, each, of := time.Now(), s.TakeOvers, []side{s.ofSpindle, s.ofRegent}[entrant]
	took, early := make([]time.Duration, len(s.Leases)*each), make([]int, len(s.Leases)*each)
	err := load.Each(len(took), len(took), func(i int) error {
		place, err := of(ctx)
		if err != nil {
			return err
		}
		defer place.close()
		for {
			took[i], err = endOne(ctx, place, fmt.Sprintf("lock-%d", early[i]), s.Leases[i/each], end)
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
		sample := sampleOf(begin, took[i*each:(i+1)*each])
		for _, n := range early[i*each : (i+1)*each] {
			if sample.Errors += n; n > 0 {
				sample.Failure = errEarly.Error()
			}
		}
		c.Rows[i].Samples[entrant] = append(c.Rows[i].Samples[entrant], sample)
	}
	return nil
}

// errEarly says that there was nothing to take over any more. It is tried again, and counted.
var errEarly = errors.New("the leader lost its lock before it was ended")

// mostEarly is how often one take-over is tried again.
const mostEarly = 3

// endOne ends one leader, and returns how long after it the next leads.
func endOne(ctx context.Context, place site, lock string, lease time.Duration, end ending) (time.Duration, error) {
	leader, err := place.compete("leader", lock, lease)
	if err != nil {
		return 0, err
	}
	defer leader.Stop()
	if _, err := leader.Await(ctx, contender.Leads); err != nil {
		return 0, err
	}
	next, err := place.compete("next", lock, lease)
	if err != nil {
		return 0, err
	}
	defer next.Stop()
	<-time.After(2*lease + rand.N(lease)) // by then the one waits and the other renews
	ended, err := end(ctx, leader)
	if err != nil {
		return 0, err
	}
	at, err := next.Await(ctx, contender.Leads)
	if err == nil && at < ended {
		err = errEarly
	}
	return at - ended, err
}
