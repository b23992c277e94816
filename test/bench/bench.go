package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Plan is how much is measured.
type Plan struct {
	Mode        string
	Rounds      int           // that count; there is one before them
	Warm, Long  time.Duration // of one entrant in one round: first not counted, then counted
	Connections []int
	Watchers    int
	Changes     int   // that they are told of in a round
	Thrones     []int // how many elections change their leaders at once
	Handovers   int   // of all of them in a round, or some more
	Deaths      int   // rounds
	Orphans     int   // elections of one who dies
	HeldRounds  int
	Held        int
	HeldLease   time.Duration
	HeldFor     time.Duration
	Growth      []int
}

var (
	full = Plan{
		Mode: "full", Rounds: 5, Warm: 250 * time.Millisecond, Long: 1200 * time.Millisecond, Connections: []int{1, 64, 512},
		Watchers: 1000, Changes: 40, Thrones: []int{1, 64}, Handovers: 20, Deaths: 5, Orphans: 25,
		HeldRounds: 2, Held: 5000, HeldLease: 15 * time.Second, HeldFor: 10 * time.Second, Growth: []int{1, 10, 100, 1000, 10_000},
	}
	quick = Plan{
		Mode: "quick", Rounds: 2, Warm: 150 * time.Millisecond, Long: 600 * time.Millisecond, Connections: []int{1, 64},
		Watchers: 1000, Changes: 20, Thrones: []int{1, 64}, Handovers: 10, Deaths: 1, Orphans: 10,
		HeldRounds: 1, Held: 1000, HeldLease: 6 * time.Second, HeldFor: 4 * time.Second, Growth: []int{1, 100, 1000},
	}
)

// bench is a run.
type bench struct {
	Plan
	dir    string // of all data
	binary string // of Regent
	etcd   *etcd
	regent *regent
	killed int // leaders so far
}

// measure holds the contests that are picked, and returns what was found.
func measure(ctx context.Context, plan Plan, o options, pick *regexp.Regexp) (found Result, err error) {
	begin := time.Now()
	if _, err := os.Stat(o.out); err != nil {
		return found, err
	}
	b := &bench{Plan: plan, binary: o.program}
	if b.dir, err = os.MkdirTemp(o.dir, "bench-*"); err != nil {
		return found, err
	}
	defer os.RemoveAll(b.dir)
	if b.binary == "" {
		if b.binary, err = build(ctx, b.dir); err != nil {
			return found, err
		}
	}
	found.Facts = Facts{Mode: plan.Mode, Rounds: plan.Rounds, Long: plan.Long}
	if err := found.Facts.gather(ctx, b.dir); err != nil {
		return found, err
	}
	if b.etcd, err = startEtcd(ctx, filepath.Join(b.dir, "etcd")); err != nil {
		return found, err
	}
	defer b.etcd.stop()
	defer b.etcd.close()
	if b.regent, err = startRegent(ctx, b.binary, b.dir); err != nil {
		return found, err
	}
	defer b.regent.stop()
	if found.Contests, err = b.holdAll(ctx, pick); err != nil {
		return found, fmt.Errorf("%w\netcd: %s\nregent: %s", err, b.etcd.said(), b.regent.said())
	}
	if pick.MatchString("growth") {
		found.Growth, err = b.grow(ctx)
	}
	found.Facts.Took = time.Since(begin)
	return found, err
}

// holdAll goes through all contests once for each round, so that what changes in the course of a run meets all of them. The first time is a rehearsal
// of those that are short.
func (b *bench) holdAll(ctx context.Context, pick *regexp.Regexp) (all []Contest, err error) {
	var held []*contest
	most := 0
	for _, c := range b.contests() {
		if pick.MatchString(c.ID) {
			held, most = append(held, c), max(most, c.rounds)
		}
	}
	for round := range most + 1 {
		for _, c := range held {
			rehearsal := round == 0
			if rehearsal && c.long || round > c.rounds {
				continue
			}
			begin := time.Now()
			if err := c.hold(ctx, rehearsal); err != nil {
				return nil, err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s, %v\n", round, most, c.ID, time.Since(begin).Round(time.Millisecond))
		}
	}
	for _, c := range held {
		all = append(all, c.Contest)
	}
	return all, nil
}
