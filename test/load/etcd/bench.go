package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// plan is the extent of a run.
type plan struct {
	Mode        string
	Rounds      int           // that count, after one rehearsal
	Warm, Long  time.Duration // of one entrant in one round: first not counted, then counted
	Connections []int         // of a round, or elections that change their leaders at once
	Handovers   int           // of all elections in a round, or some more
}

var (
	full  = plan{Mode: "full", Rounds: 5, Warm: 250 * time.Millisecond, Long: 2 * time.Second, Connections: []int{1, 64}, Handovers: 100}
	quick = plan{Mode: "quick", Rounds: 1, Warm: 100 * time.Millisecond, Long: 400 * time.Millisecond, Connections: []int{1, 64}, Handovers: 10}
)

// bench is a run.
type bench struct {
	plan
	dir    string // of all data
	binary string // of Regent
	etcd   *etcd
	regent *regent
}

// measure runs all contests.
func measure(ctx context.Context, p plan) (found Result, err error) {
	begin := time.Now()
	b := &bench{plan: p}
	if b.dir, err = os.MkdirTemp("", "bench-*"); err != nil {
		return found, err
	}
	defer os.RemoveAll(b.dir)
	if disk, err := fileSystem(ctx, b.dir); err != nil || disk == inMemory {
		return found, errors.Join(err, errors.New("the data would be in memory, where nothing is durable; choose a folder on a disk with TMPDIR"))
	}
	if b.binary, err = build(ctx, "../../..", "./cmd/regent", b.dir); err != nil {
		return found, err
	}
	found.Facts = Facts{Mode: p.Mode, Rounds: p.Rounds, Long: p.Long}
	if err := found.Facts.gather(ctx, b.dir); err != nil {
		return found, err
	}
	found.Contests, err = b.run(ctx)
	found.Facts.Took = time.Since(begin)
	return found, err
}

func (b *bench) run(ctx context.Context) (all []Contest, err error) {
	if b.etcd, err = startEtcd(ctx, filepath.Join(b.dir, "etcd")); err != nil {
		return nil, err
	}
	defer b.etcd.stop()
	if b.regent, err = startRegent(ctx, b.binary, filepath.Join(b.dir, "state")); err != nil {
		return nil, err
	}
	defer b.regent.stop()
	if all, err = b.runAll(ctx); err != nil {
		err = fmt.Errorf("%w\netcd: %s\nregent: %s", err, b.etcd.log, b.regent.log)
	}
	return all, err
}

// runAll runs every contest once in each round, so that changes in the course of a run affect all
// of them. Round 0 is a rehearsal.
func (b *bench) runAll(ctx context.Context) (all []Contest, err error) {
	contests := b.contests()
	for round := range b.Rounds + 1 {
		for _, c := range contests {
			begin := time.Now()
			if err := c.run(ctx, b.Connections, round); err != nil {
				return nil, err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s, %v\n", round, b.Rounds, c.Title, time.Since(begin).Round(time.Millisecond))
		}
	}
	for _, c := range contests {
		all = append(all, c.Contest)
	}
	return all, nil
}
