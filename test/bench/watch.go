package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	etcdclient "go.etcd.io/etcd/client/v3"

	"regent/leadership"
	"regent/leadership/client"
)

func (b *bench) watch() *contest {
	return &contest{
		Contest: Contest{
			ID: "watch", Title: "How soon watchers hear", Of: "watchers", Kind: Delays,
			About: "One election changes, and all watchers are told: each by a stream over a connection of its own, read by the system's client, " +
				"as it would be in so many agents. A sample is from when the change was sent, or from when it was answered, to when the last " +
				"of them has it. The next change comes when all have heard of this one.",
			Entrants: []Entrant{
				{"etcd", "a Watch of the key, one gRPC connection each; the changes are a Put and a Delete in turn"},
				{"Regent", "`GET …/events` as `text/event-stream`, one HTTP/1.1 connection each; the changes are `:acquire` and `:release` in turn"},
			},
			Pairs: []Pair{{1, 0, Median, Goal{}}, {1, 0, Late, Goal{}}},
		},
		sizes: []int{b.Watchers}, aspects: []string{"from sent", "from answered"}, rounds: b.Rounds,
		races: []race{b.watchEtcd, b.watchRegent},
	}
}

// crowd counts those who have heard.
type crowd struct {
	size  int64
	count atomic.Int64
	all   chan time.Time // when the last of them has
	fails chan error
}

func newCrowd(size int) *crowd {
	return &crowd{size: int64(size), all: make(chan time.Time, 1), fails: make(chan error, size)}
}

// hear is called by each of them for each thing.
func (c *crowd) hear() {
	if n := c.count.Add(1); n%c.size == 0 {
		c.all <- time.Now()
	}
}

func (c *crowd) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-c.all:
		return at, nil
	case err := <-c.fails:
		return time.Time{}, err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case <-time.After(startTimeout):
		return time.Time{}, errors.New("not all watchers have heard")
	}
}

// gather starts watchers, and waits until all are there: each hears once of how things are.
func (c *crowd) gather(ctx context.Context, watch func(ctx context.Context, i int, hear func()) error) (leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	slots := make(chan struct{}, setters)
	for i := range int(c.size) {
		slots <- struct{}{}
		running.Go(func() {
			inside := sync.OnceFunc(func() { <-slots })
			defer inside()
			err := watch(ctx, i, func() { inside(); c.hear() })
			if ctx.Err() == nil {
				c.fails <- err
			}
		})
	}
	leave = func() { cancel(); running.Wait() }
	if _, err = c.await(ctx); err != nil {
		leave()
	}
	return leave, err
}

// changes makes one change after the other, and measures how long it takes until all have heard.
func (b *bench) changes(ctx context.Context, c *crowd, change func() error) ([]Sample, error) {
	var sent, answered []time.Duration
	begin := time.Now()
	for range b.Changes {
		asked := time.Now()
		if err := change(); err != nil {
			return nil, err
		}
		told := time.Now()
		last, err := c.await(ctx)
		if err != nil {
			return nil, err
		}
		sent, answered = append(sent, last.Sub(asked)), append(answered, max(last.Sub(told), 0))
	}
	return []Sample{sampleOf(begin, sent), sampleOf(begin, answered)}, nil
}

// sampleOf is what took so long each, since begin.
func sampleOf(begin time.Time, took []time.Duration) Sample {
	s := Sample{Count: float64(len(took)), Seconds: time.Since(begin).Seconds()}
	s.delays(took)
	return s
}

func (b *bench) watchEtcd(ctx context.Context, size int) ([]Sample, error) {
	c := newCrowd(size)
	leave, err := c.gather(ctx, func(ctx context.Context, _ int, hear func()) error {
		client, err := b.etcd.dial()
		if err != nil {
			return err
		}
		defer client.Close()
		for told := range client.Watch(ctx, "watched", etcdclient.WithCreatedNotify()) {
			if err := told.Err(); err != nil {
				return err
			}
			hear()
		}
		return errors.New("the watch has ended")
	})
	if err != nil {
		return nil, err
	}
	defer leave()
	caller, err := b.etcd.caller(0)
	if err != nil {
		return nil, err
	}
	there := false
	return b.changes(ctx, c, func() (err error) {
		if there {
			_, err = caller.Delete(ctx, "watched")
		} else {
			_, err = caller.Put(ctx, "watched", "agent-0")
		}
		there = !there
		return err
	})
}

func (b *bench) watchRegent(ctx context.Context, size int) ([]Sample, error) {
	const watched leadership.Election = "watched"
	leader, err := b.regent.agent(0)
	if err != nil {
		return nil, err
	}
	defer b.regent.rest()
	l, err := leader.acquire(ctx, watched, aLongTime, 0) // what was never seen tells nothing
	if err != nil {
		return nil, err
	}
	c := newCrowd(size)
	leave, err := c.gather(ctx, func(ctx context.Context, i int, hear func()) error {
		a, err := b.regent.newAgent("observer", 0)
		if err != nil {
			return err
		}
		defer a.wire.CloseIdleConnections()
		for _, err := range a.Watch(ctx, client.WatchRequest{Election: watched}) {
			if err != nil {
				return err
			}
			hear()
		}
		return errors.New("the watch has ended")
	})
	if err != nil {
		return nil, err
	}
	defer leave()
	held := true
	defer func() {
		if held {
			leader.Release(context.WithoutCancel(ctx), l)
		}
	}()
	return b.changes(ctx, c, func() (err error) {
		if held {
			_, err = leader.Release(ctx, l)
		} else {
			l, err = leader.acquire(ctx, watched, aLongTime, 0)
		}
		held = !held
		return err
	})
}
