package main

import (
	"context"
	"fmt"
	"time"

	"regent/test/load"
	"regent/test/load/etcd/internal/contender"
	"regent/test/proxy"
)

// The aspects of the calls: what goes on while they are counted.
func situations() []string {
	return []string{"no one competes", "one leads", "one leads and one waits"}
}

// calls counts the calls of Spanner, everything at the same time: each situation has a database,
// and a counter in front of the emulator.
func (s *spanner) calls(ctx context.Context) (Contest, error) {
	c := Contest{
		ID: callsID, Title: "Calls of Spanner", Of: "s leases", Kind: Calls, Other: spindleName,
		About: fmt.Sprintf("gRPC calls of Spanner, counted on the wire by a proxy in front of the emulator for %v, and multiplied up to an hour. They begin when all processes are there "+
			"and two leases have passed. What one waiting process needs is the difference of the last two rows of a lease.", s.CallsFor),
		Entrants: []Entrant{
			{"spindle", "each process asks once in a duration; the leader's heartbeat is a transaction each half to whole duration, at random. No one calls `HasLock`, which is one call more each time"},
			{"Regent", "one `regent serve`, which renews the lease three times in a duration, by a transaction of two calls; processes call Regent, not Spanner. There is no topic for events; with one, an instance looks for events to announce, 240 calls an hour"},
		},
		Pairs: []Pair{{Regent: 1, Other: 0, Measure: Hourly}},
	}
	sides, aspects := []side{s.ofSpindle, s.ofRegent}, situations()
	for _, lease := range s.CallLeases {
		for _, aspect := range aspects {
			c.Rows = append(c.Rows, Row{seconds(lease), aspect, make([][]Sample, len(sides))})
		}
	}
	n := len(c.Rows) * len(sides)
	err := load.Each(n, n, func(i int) error {
		row, k := i/len(sides), i%len(sides)
		sample, err := s.count(ctx, sides[k], s.CallLeases[row/len(aspects)], row%len(aspects))
		c.Rows[row].Samples[k] = []Sample{sample}
		return err
	})
	return c, err
}

// count counts the calls of one side while so many processes compete.
func (s *spanner) count(ctx context.Context, of side, lease time.Duration, processes int) (Sample, error) {
	counter, err := proxy.OpenCounter(s.host)
	if err != nil {
		return Sample{}, err
	}
	defer counter.Close()
	place, err := of(ctx, counter.Addr())
	if err != nil {
		return Sample{}, err
	}
	defer place.close()
	ready, cancel := context.WithTimeout(ctx, takeOverTimeout+takeOverLeases*lease)
	defer cancel()
	for i := range processes {
		p, err := place.compete(fmt.Sprintf("agent-%d", i), "lock", lease)
		if err != nil {
			return Sample{}, err
		}
		defer p.Stop()
		if i > 0 {
			continue
		}
		if _, err := p.Await(ready, contender.Told); err != nil {
			return Sample{}, err
		}
	}
	<-time.After(2 * lease)
	counter.Take()
	begin := time.Now()
	<-time.After(s.CallsFor)
	calls := counter.Take()
	return Sample{Count: float64(calls.Total()), Seconds: time.Since(begin).Seconds(), Calls: calls}, nil
}
