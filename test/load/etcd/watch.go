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
			ID: "watch", Title: "How soon watchers learn of a change", Of: "watchers", Kind: Delays, Other: etcdName,
			About: "One election changes, and all watchers are told: each by a stream over a connection of its own, read by the system's client, " +
				"as it would be in so many agents. A sample is from when the change was sent, or from when it was answered, to when the last " +
				"of them has received it. The next change comes when all have received this one.",
			Entrants: []Entrant{
				{"etcd", "a Watch of the key, one gRPC connection each; the changes are a Put and a Delete in turn"},
				{"Regent", "`GET …/events` as `text/event-stream`, one HTTP/1.1 connection each; the changes are `:acquire` and `:release` in turn"},
			},
			Pairs: []Pair{{1, 0, Median, "", nil}, {1, 0, Late, "", nil}},
		},
		sizes: []int{b.Watchers}, aspects: []string{"from sent", "from answered"}, rounds: b.Rounds,
		races: []race{b.watchEtcd, b.watchRegent},
	}
}

// watchers count the events that each watcher has received.
type watchers struct {
	size  int64
	count atomic.Int64
	all   chan time.Time // when the last of them has
	fails chan error
}

// hear is called by each of them for each change.
func (w *watchers) hear() {
	if n := w.count.Add(1); n%w.size == 0 {
		w.all <- time.Now()
	}
}

// await returns when the last watcher has received the event under way.
func (w *watchers) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-w.all:
		return at, nil
	case err := <-w.fails:
		return time.Time{}, err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case <-time.After(startTimeout):
		return time.Time{}, errors.New("not all watchers have received the change")
	}
}

// watching starts so many watchers, each of which receives the present state first, and then
// measures how long changes take until the last of them has them. Change i is sent and answered by
// change.
func (b *bench) watching(ctx context.Context, size int, watch func(ctx context.Context, hear func()) error, change func(i int) error) ([]Sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchers{size: int64(size), all: make(chan time.Time, 1), fails: make(chan error, size)}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	slots := make(chan struct{}, setters)
	for range size {
		slots <- struct{}{}
		running.Go(func() {
			free := sync.OnceFunc(func() { <-slots })
			defer free()
			err := watch(ctx, func() { free(); w.hear() })
			if ctx.Err() == nil {
				w.fails <- err
			}
		})
	}
	if _, err := w.await(ctx); err != nil {
		return nil, err
	}
	var sent, answered []time.Duration
	begin := time.Now()
	for i := range b.Changes {
		asked := time.Now()
		if err := change(i); err != nil {
			return nil, err
		}
		told := time.Now()
		last, err := w.await(ctx)
		if err != nil {
			return nil, err
		}
		sent, answered = append(sent, last.Sub(asked)), append(answered, max(last.Sub(told), 0))
	}
	return []Sample{sampleOf(begin, sent), sampleOf(begin, answered)}, nil
}

var errWatchEnded = errors.New("the watch has ended")

func (b *bench) watchEtcd(ctx context.Context, size int) ([]Sample, error) {
	caller, err := b.etcd.callers.at(0)
	if err != nil {
		return nil, err
	}
	watch := func(ctx context.Context, hear func()) error {
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
		return errWatchEnded
	}
	return b.watching(ctx, size, watch, func(i int) (err error) {
		if i%2 == 0 {
			_, err = caller.Put(ctx, "watched", "agent-0")
		} else {
			_, err = caller.Delete(ctx, "watched")
		}
		return err
	})
}

func (b *bench) watchRegent(ctx context.Context, size int) ([]Sample, error) {
	const watched leadership.Election = "watched"
	leader, err := b.regent.agents.at(0)
	if err != nil {
		return nil, err
	}
	defer b.regent.rest()
	// an election never seen has no present state to tell
	l, err := leader.acquire(ctx, watched, longLease, 0)
	if err != nil {
		return nil, err
	}
	defer func() { leader.Release(context.WithoutCancel(ctx), l) }()
	watch := func(ctx context.Context, hear func()) error {
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
		return errWatchEnded
	}
	return b.watching(ctx, size, watch, func(i int) (err error) {
		if i%2 == 0 {
			_, err = leader.Release(ctx, l)
		} else {
			l, err = leader.acquire(ctx, watched, longLease, 0)
		}
		return err
	})
}
