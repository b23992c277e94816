package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// plan says how much is measured.
type plan struct {
	Mode          string
	Rounds        int           // that count; there is one before them
	Warm, Long    time.Duration // of one entrant in one round: first not counted, then counted
	Connections   []int
	Watchers      int
	Changes       int   // that they are told of in a round
	HandoverSizes []int // how many elections change their leaders at once
	Handovers     int   // of all of them in a round, or some more
	Deaths        int   // rounds
	Orphaned      int   // elections of a leader that is killed
	HeldRounds    int
	Held          int
	HeldLease     time.Duration
	HeldFor       time.Duration
	Growth        []int
	Led           []int // elections of one client
	LedLease      time.Duration
	LedLeases     int // for which calls are counted
	// with spindle
	Leases         []time.Duration // that take-overs are measured with
	TakeOvers      int             // of each lease in a round, each in processes of its own
	TakeOverRounds int
	CallLeases     []time.Duration // that calls are counted with
	CallsFor       time.Duration   // how long
}

var (
	full = plan{
		Mode: "full", Rounds: 5, Warm: 250 * time.Millisecond, Long: 2 * time.Second, Connections: []int{1, 64},
		Watchers: 1000, Changes: 40, HandoverSizes: []int{1, 64}, Handovers: 100, Deaths: 5, Orphaned: 25,
		HeldRounds: 2, Held: 5000, HeldLease: 15 * time.Second, HeldFor: 10 * time.Second, Growth: []int{1, 10, 100, 1000, 10_000},
		Led: []int{1, 10, 100, 1000}, LedLease: 3 * time.Second, LedLeases: 5,
		Leases: []time.Duration{2 * time.Second, 5 * time.Second}, TakeOvers: 5, TakeOverRounds: 3,
		CallLeases: []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}, CallsFor: time.Minute,
	}
	quick = plan{
		Mode: "quick", Rounds: 1, Warm: 100 * time.Millisecond, Long: 400 * time.Millisecond, Connections: []int{1, 64},
		Watchers: 500, Changes: 10, HandoverSizes: []int{1, 64}, Handovers: 10, Deaths: 1, Orphaned: 10,
		HeldRounds: 1, Held: 500, HeldLease: 3 * time.Second, HeldFor: 2 * time.Second, Growth: []int{1, 100, 1000},
		Led: []int{1, 100}, LedLease: 3 * time.Second, LedLeases: 1,
		Leases: []time.Duration{time.Second}, TakeOvers: 3, TakeOverRounds: 1, CallLeases: []time.Duration{time.Second}, CallsFor: 6 * time.Second,
	}
)

// bench is a run.
type bench struct {
	plan
	dir    string // of all data
	binary string // of Regent
	etcd   *etcd
	regent *regent
	killed int // leaders so far

	emulator string // host:port of Spanner's; "" to start one
}

// measure runs the contests that are picked.
func measure(ctx context.Context, p plan, o options, pick *regexp.Regexp) (found Result, err error) {
	begin := time.Now()
	if _, err := os.Stat(o.folder()); err != nil {
		return found, err
	}
	b, remove, err := newBench(ctx, p, o)
	if err != nil {
		return found, err
	}
	defer remove()
	found.Facts = Facts{Mode: p.Mode, Rounds: p.Rounds, Long: p.Long}
	if err := found.Facts.gather(ctx, b.dir); err != nil {
		return found, err
	}
	if found.Contests, err = b.besideEtcd(ctx, pick); err != nil {
		return found, err
	}
	if pick.MatchString("growth") {
		if found.Growth, err = b.grow(ctx); err != nil {
			return found, err
		}
	}
	found.Spanner, err = b.besideSpindle(ctx, pick.MatchString)
	found.Facts.Took = time.Since(begin)
	return found, err
}

// newBench returns a bench with a folder of its own, and a function that removes the folder.
func newBench(ctx context.Context, p plan, o options) (b *bench, remove func(), err error) {
	b = &bench{plan: p, binary: o.program}
	dir, err := os.MkdirTemp(o.dir, "bench-*")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	if b.dir, err = filepath.Abs(dir); err == nil && b.binary == "" {
		b.binary, err = b.build(ctx)
	}
	if err != nil {
		remove()
	}
	return b, remove, err
}

// again measures only beside spindle, and replaces that part of the last result.
func again(ctx context.Context, p plan, o options) (found Result, err error) {
	if found, err = readResult(o.folder()); err != nil {
		return found, err
	}
	b, remove, err := newBench(ctx, p, o)
	if err != nil {
		return found, err
	}
	defer remove()
	found.Spanner, err = b.besideSpindle(ctx, func(string) bool { return true })
	return found, err
}

// build builds the program that is shipped, and returns its path.
func (b *bench) build(ctx context.Context) (string, error) {
	root, err := rootFolder(ctx)
	if err != nil {
		return "", err
	}
	return build(ctx, root, "./cmd/regent", b.dir)
}

// besideEtcd runs the contests with etcd that are picked.
func (b *bench) besideEtcd(ctx context.Context, pick *regexp.Regexp) (all []Contest, err error) {
	if b.etcd, err = startEtcd(ctx, filepath.Join(b.dir, "etcd")); err != nil {
		return nil, err
	}
	defer b.etcd.stop()
	if b.regent, err = startRegent(ctx, b.binary, filepath.Join(b.dir, "state")); err != nil {
		return nil, err
	}
	defer b.regent.stop()
	if all, err = b.runAll(ctx, pick); err != nil {
		err = fmt.Errorf("%w\netcd: %s\nregent: %s", err, b.etcd.log(), b.regent.log())
	}
	return all, err
}

// runAll runs every contest once in each round, so that what changes in the course of a run meets
// all of them. Round 0 is a rehearsal of those that are short.
func (b *bench) runAll(ctx context.Context, pick *regexp.Regexp) (all []Contest, err error) {
	var picked []*contest
	most := 0
	for _, c := range b.contests() {
		if pick.MatchString(c.ID) {
			picked, most = append(picked, c), max(most, c.rounds)
		}
	}
	for round := range most + 1 {
		for _, c := range picked {
			if round == 0 && c.long || round > c.rounds {
				continue
			}
			begin := time.Now()
			if err := c.run(ctx, round); err != nil {
				return nil, err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s, %v\n", round, most, c.ID, time.Since(begin).Round(time.Millisecond))
		}
	}
	for _, c := range picked {
		all = append(all, c.Contest)
	}
	return all, nil
}

// scratch returns a new folder for a server of its own, and a function that removes it.
func (b *bench) scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(b.dir, "server-*")
	return dir, func() { os.RemoveAll(dir) }, err
}
