package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	etcdclient "go.etcd.io/etcd/client/v3"

	"regent/test/load"
)

// keepers is how many connections keep the elections that are held.
const keepers = 64

func (b *bench) held() *contest {
	return &contest{
		Contest: Contest{
			ID: "held", Title: "What held elections cost", Of: "elections", Kind: Costs, Other: etcdName,
			About: fmt.Sprintf("A new server, and that many elections in it, kept over %d connections. Each has a lease of %v that is "+
				"renewed every %v, the renewals spread evenly. For %v nothing else happens. Memory is what the process has more than before "+
				"the first election; CPU is that of all its threads, including the work that it does without elections.", keepers, b.HeldLease, b.HeldLease/3, b.HeldFor),
			Entrants: []Entrant{
				{"etcd", "a lease and a key for each; clientv3's KeepAlive; not durable"},
				{"Regent, one by one", "`:renew` of each; durable"},
				{"Regent, batched", "`:batchRenew` of all that one connection keeps; durable"},
			},
			Pairs: []Pair{{1, 0, CPU, "", nil}, {2, 0, CPU, "", nil}, {1, 0, Memory, "", nil}},
		},
		sizes: []int{b.Held}, aspects: whole, rounds: b.HeldRounds, long: true,
		races: []race{b.heldByEtcd, b.heldByRegent(false), b.heldByRegent(true)},
	}
}

// settling is how long a server is left alone before its memory is read.
const settling = 500 * time.Millisecond

// keep measures a server that has just started. begin makes it hold n elections and has their
// renewals counted until ctx ends.
func (b *bench) keep(ctx context.Context, on *server, n int, begin func(ctx context.Context, k *keeping) error) ([]Sample, error) {
	<-time.After(settling)
	empty, err := on.usage()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	k := &keeping{}
	defer k.running.Wait()
	defer cancel()
	if err := begin(ctx, k); err != nil {
		return nil, err
	}
	<-time.After(b.HeldLease / 3) // each has been renewed
	before, err := on.usage()
	if err != nil {
		return nil, err
	}
	counted, begun := k.count.Load(), time.Now()
	<-time.After(b.HeldFor)
	after, err := on.usage()
	s := Sample{
		Count: float64(k.count.Load() - counted), Errors: int(k.errors.Load()), Seconds: time.Since(begun).Seconds(), Held: n,
		CPU: after.minus(before).CPU.Seconds(), Empty: float64(empty.Memory) / mega, Memory: float64(after.Memory) / mega,
	}
	if failure := k.failure.Load(); failure != nil {
		s.Failure = (*failure).Error()
	}
	return []Sample{s}, err
}

// keeping counts renewals.
type keeping struct {
	running       sync.WaitGroup
	count, errors atomic.Int64
	failure       atomic.Pointer[error]
}

func (k *keeping) add(ctx context.Context, n int, err error) {
	if err != nil && ctx.Err() == nil {
		k.errors.Add(1)
		k.failure.Store(&err)
	}
	k.count.Add(int64(n))
}

func (b *bench) heldByEtcd(ctx context.Context, n int) ([]Sample, error) {
	dir, remove, err := b.scratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	s, err := startEtcd(ctx, filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	return b.keep(ctx, s.server, n, func(ctx context.Context, k *keeping) error { return b.keepEtcd(ctx, s, n, k) })
}

// keepEtcd spreads the first keep-alives over the time between two, and so those that follow.
func (b *bench) keepEtcd(ctx context.Context, s *etcd, n int, k *keeping) error {
	period, per := b.HeldLease/3, shares(n, keepers)
	return load.Each(len(per), keepers, func(i int) error {
		c, err := s.callers.at(i)
		if err != nil {
			return err
		}
		each := time.NewTicker(period / time.Duration(per[i]))
		defer each.Stop()
		for j := range per[i] {
			<-each.C
			if err := c.keepOne(ctx, fmt.Sprintf("held-%d-%d", i, j), b.HeldLease, k); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *caller) keepOne(ctx context.Context, key string, lease time.Duration, k *keeping) error {
	g, err := c.Grant(ctx, int64(seconds(lease)))
	if err != nil {
		return err
	}
	if _, err := c.Put(ctx, key, "leader", etcdclient.WithLease(g.ID)); err != nil {
		return err
	}
	answers, err := c.KeepAlive(ctx, g.ID)
	if err != nil {
		return err
	}
	k.running.Go(func() {
		for range answers {
			k.add(ctx, 1, nil)
		}
		k.add(ctx, 0, fmt.Errorf("%s: the lease is no longer kept", key))
	})
	return nil
}

func (b *bench) heldByRegent(batched bool) race {
	return func(ctx context.Context, n int) ([]Sample, error) {
		dir, remove, err := b.scratch()
		if err != nil {
			return nil, err
		}
		defer remove()
		s, err := startRegent(ctx, b.binary, dir)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		return b.keep(ctx, s.server, n, func(ctx context.Context, k *keeping) error { return b.keepRegent(ctx, s, n, batched, k) })
	}
}

// keepRegent lets each connection renew in turn what it holds.
func (b *bench) keepRegent(ctx context.Context, s *regent, n int, batched bool, k *keeping) error {
	per := shares(n, keepers)
	err := load.Each(len(per), keepers, func(i int) error {
		_, err := s.hold(ctx, i, per[i], b.HeldLease)
		return err
	})
	if err != nil {
		return err
	}
	for i, a := range s.agents.clients {
		period := b.HeldLease / 3
		renew := func(int) { renewed, err := renewAll(ctx, a, a.leases); k.add(ctx, renewed, err) }
		if !batched {
			period /= time.Duration(len(a.leases))
			renew = func(turn int) {
				_, err := a.Renew(ctx, a.leases[turn%len(a.leases)])
				k.add(ctx, 1, err)
			}
		}
		phase := period * time.Duration(i) / time.Duration(len(per))
		k.running.Go(func() { every(ctx, period, phase, renew) })
	}
	return nil
}

// every calls do after the phase and then once in each period, until ctx ends.
func every(ctx context.Context, period, phase time.Duration, do func(turn int)) {
	select {
	case <-time.After(phase):
	case <-ctx.Done():
		return
	}
	t := time.NewTicker(period)
	defer t.Stop()
	for turn := 0; ; turn++ {
		do(turn)
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}
