package main

import (
	"context"
	"fmt"
	"sync"

	"regent/test/load"
)

// whole is the aspects of a race that measures one thing.
var whole = []string{""}

// batchSize is how many leases one call renews.
const batchSize = 100

// contest is a Contest with what it takes to run it.
type contest struct {
	Contest
	sizes   []int    // of what Contest.Of names
	aspects []string // of what one race measures. A row is an aspect of a size
	rounds  int
	long    bool   // too long to be rehearsed
	races   []race // one for each entrant
}

// race lets one entrant run once, and returns a sample of each aspect.
type race func(ctx context.Context, size int) ([]Sample, error)

// run runs one round. Round 0 leaves no samples. The entrants' order is reversed from round to
// round, so that none always follows the same one.
func (c *contest) run(ctx context.Context, round int) error {
	if c.Rows == nil {
		for _, size := range c.sizes {
			for _, aspect := range c.aspects {
				c.Rows = append(c.Rows, Row{size, aspect, make([][]Sample, len(c.races))})
			}
		}
	}
	for i, size := range c.sizes {
		for k := range c.races {
			if round%2 == 1 {
				k = len(c.races) - 1 - k
			}
			samples, err := c.races[k](ctx, size)
			if err != nil {
				return fmt.Errorf("%s, %s, %d %s: %w", c.Title, c.Entrants[k].Name, size, c.Of, err)
			}
			for j, s := range samples {
				if row := &c.Rows[i*len(samples)+j]; round > 0 {
					row.Samples[k] = append(row.Samples[k], s)
				}
			}
		}
	}
	return nil
}

// prepare makes the i-th connection ready, and returns the operation that it repeats.
type prepare func(ctx context.Context, i int) (operation, error)

// setters is how many connections are prepared at a time.
const setters = 256

// operations prepares n connections.
func operations(ctx context.Context, n int, ready prepare) ([]operation, error) {
	all := make([]operation, n)
	err := load.Each(n, setters, func(i int) (err error) {
		all[i], err = ready(ctx, i)
		return err
	})
	return all, err
}

// flat is a race in which all connections do the same as fast as they can.
func (b *bench) flat(on *server, ready prepare) race {
	return func(ctx context.Context, n int) ([]Sample, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		all, err := operations(ctx, n, ready)
		if err != nil {
			return nil, err
		}
		defer b.regent.rest()
		s, err := drive(ctx, on, all, b.Warm, b.Long)
		return []Sample{s}, err
	}
}

// pool has the clients of one server, each with a connection of its own.
type pool[T any] struct {
	clients []T
	create  func(i int) (T, error)
	mu      sync.Mutex // guards clients
}

// at returns the i-th client, and creates all up to it.
func (p *pool[T]) at(i int) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.clients) <= i {
		c, err := p.create(len(p.clients))
		if err != nil {
			return c, err
		}
		p.clients = append(p.clients, c)
	}
	return p.clients[i], nil
}
