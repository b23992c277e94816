package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"regent/test/load"
)

func (b *bench) handover() *contest {
	swaps := func(create func(id, election string) (candidate, error)) race {
		return func(ctx context.Context, n int) (Sample, error) { return b.handovers(ctx, n, create) }
	}
	return &contest{
		Contest: Contest{
			Title: "Take-over when the leader releases", Of: "elections", Kind: Delays,
			About: fmt.Sprintf("In each election one candidate leads and one waits, for at least %v; the leader releases, and they change places. A sample is from "+
				"when the release was sent to when the waiting one learns that it leads. Each has a connection of its own.", leastWait),
			Entrants: []Entrant{
				{"etcd", "`Resign` and a waiting `Campaign`"},
				{"Regent", "`:release` and a waiting `:acquire`"},
			},
			Pairs: []Pair{{1, 0, Late, "p99 of take-over after a release", at64and1(1.5, 1.5)}},
		},
		races: []race{swaps(b.etcd.candidate), swaps(b.regent.candidate)},
	}
}

// leastWait is the shortest wait of a candidate. etcd brings a new watcher up to date only every
// 100 ms; most candidates wait for longer than that.
const leastWait = 150 * time.Millisecond

// candidate wants to lead one election, over a connection of its own.
type candidate interface {
	campaign(context.Context) error // returns when it leads
	resign(context.Context) error
	close()
}

// leastHandovers is the least number of changes of leader of each election.
const leastHandovers = 4

// handovers changes the leaders of n elections at once, fewer times if they are many.
func (b *bench) handovers(ctx context.Context, n int, create func(id, election string) (candidate, error)) (Sample, error) {
	took := make([][]time.Duration, n)
	begin := time.Now()
	err := load.Each(n, n, func(i int) error {
		var two [2]candidate
		for k, id := range []string{"ann", "bob"} {
			c, err := create(id, fmt.Sprintf("handover-%d", i))
			if err != nil {
				return err
			}
			defer c.close()
			two[k] = c
		}
		var err error
		took[i], err = swap(ctx, two, max(b.Handovers/n, leastHandovers))
		return err
	})
	return sampleOf(begin, slices.Concat(took...)), err
}

// swap lets two candidates lead in turn.
func swap(ctx context.Context, two [2]candidate, times int) (took []time.Duration, err error) {
	leader, next := two[0], two[1]
	if err := leader.campaign(ctx); err != nil {
		return nil, err
	}
	for range times {
		told := make(chan time.Time, 1)
		failed := make(chan error, 1)
		go func() {
			if err := next.campaign(ctx); err != nil {
				failed <- err
				return
			}
			told <- time.Now()
		}()
		<-time.After(leastWait)
		sent := time.Now()
		if err := leader.resign(ctx); err != nil {
			return nil, err
		}
		select {
		case at := <-told:
			took = append(took, at.Sub(sent))
		case err := <-failed:
			return nil, err
		}
		leader, next = next, leader
	}
	return took, leader.resign(ctx)
}
