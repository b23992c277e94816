package main

import (
	"context"
	"fmt"
	"sync"

	"regent/test/load"
)

// batchSize is how many leases one call renews.
const batchSize = 100

// contest is a Contest with the functions that run it.
type contest struct {
	Contest
	races []race // one for each entrant
}

// race lets one entrant run once.
type race func(ctx context.Context, size int) (Sample, error)

// run runs one round. Round 0 leaves no samples. The entrants' order is reversed from round to
// round, so that no entrant always follows the same one.
func (c *contest) run(ctx context.Context, sizes []int, round int) error {
	for i, size := range sizes {
		if round == 0 {
			c.Rows = append(c.Rows, Row{size, make([][]Sample, len(c.races))})
		}
		for k := range c.races {
			if round%2 == 1 {
				k = len(c.races) - 1 - k
			}
			sample, err := c.races[k](ctx, size)
			if err != nil {
				return fmt.Errorf("%s, %s, %d %s: %w", c.Title, c.Entrants[k].Name, size, c.Of, err)
			}
			if round > 0 {
				c.Rows[i].Samples[k] = append(c.Rows[i].Samples[k], sample)
			}
		}
	}
	return nil
}

// prepare makes the i-th connection ready, and returns the operation that it repeats.
type prepare func(ctx context.Context, i int) (operation, error)

// setters is how many connections are prepared at a time.
const setters = 256

// flat returns a race in which all connections do the same as fast as they can.
func (b *bench) flat(on *server, ready prepare) race {
	return func(ctx context.Context, n int) (Sample, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		all := make([]operation, n)
		err := load.Each(n, setters, func(i int) (err error) {
			all[i], err = ready(ctx, i)
			return err
		})
		if err != nil {
			return Sample{}, err
		}
		defer b.regent.rest()
		return drive(ctx, on, all, b.Warm, b.Long)
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
