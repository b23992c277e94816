package main

import (
	"context"
	"fmt"
	"sync"
)

// whole is what a race measures that measures one thing.
var whole = []string{""}

// batchSize is how many leases one call renews.
const batchSize = 100

// contest is a Contest with what it takes to hold it.
type contest struct {
	Contest
	sizes   []int    // what there is of Contest.Of
	aspects []string // of what one race measures. A row is an aspect of a size
	rounds  int
	long    bool   // too long to be rehearsed
	races   []race // of each entrant
}

// race lets one entrant do it once, and returns a sample of each aspect.
type race func(ctx context.Context, size int) ([]Sample, error)

// hold holds one round of the contest. Nothing is kept of a rehearsal.
func (c *contest) hold(ctx context.Context, rehearsal bool) error {
	if c.Rows == nil {
		c.Rows = c.rows()
	}
	for i, size := range c.sizes {
		for k, race := range c.races {
			samples, err := race(ctx, size)
			if err != nil {
				return fmt.Errorf("%s, %s, %d %s: %w", c.Title, c.Entrants[k].Name, size, c.Of, err)
			}
			for j, s := range samples {
				if row := &c.Rows[i*len(samples)+j]; !rehearsal {
					row.Samples[k] = append(row.Samples[k], s)
				}
			}
		}
	}
	return nil
}

func (c *contest) rows() []Row {
	var rows []Row
	for _, size := range c.sizes {
		for _, aspect := range c.aspects {
			rows = append(rows, Row{size, aspect, make([][]Sample, len(c.races))})
		}
	}
	return rows
}

// ready makes the i-th connection ready, and returns what it repeats.
type ready func(ctx context.Context, i int) (step, error)

// setters is how many connections are made ready at a time.
const setters = 256

// steps makes n connections ready.
func steps(ctx context.Context, n int, make1 ready) ([]step, error) {
	all, errs := make([]step, n), make([]error, n)
	slots := make(chan struct{}, setters)
	var running sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			all[i], errs[i] = make1(ctx, i)
		})
	}
	running.Wait()
	return all, firstOf(errs)
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// flat is a race in which all connections do the same as fast as they can.
func (b *bench) flat(on *server, make1 ready) race {
	return func(ctx context.Context, n int) ([]Sample, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		all, err := steps(ctx, n, make1)
		if err != nil {
			return nil, err
		}
		defer b.regent.rest()
		s, err := drive(ctx, on, all, b.Warm, b.Long)
		return []Sample{s}, err
	}
}
