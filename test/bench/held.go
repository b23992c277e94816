package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	etcdclient "go.etcd.io/etcd/client/v3"

	"regent/leadership"
)

// keepers is how many connections keep the elections that are held.
const keepers = 64

func (b *bench) held() *contest {
	return &contest{
		Contest: Contest{
			ID: "held", Title: "What elections cost that are held", Of: "elections", Kind: Costs,
			About: fmt.Sprintf("A server that has just begun, and that many elections in it, kept over %d connections. Each has a lease of %v that is "+
				"renewed every %v, the renewals spread evenly. For %v nothing else happens. Memory is what the process has more than before "+
				"the first election; CPU is that of all its threads, the work that it does without elections with it.", keepers, b.HeldLease, b.HeldLease/3, b.HeldFor),
			Entrants: []Entrant{
				{"etcd", "a lease and a key for each; clientv3's KeepAlive; not durable"},
				{"Regent, one by one", "`:renew` of each; durable"},
				{"Regent, batched", "`:batchRenew` of all that one connection keeps; durable"},
			},
			Pairs: []Pair{{1, 0, CPU, Goal{}}, {2, 0, CPU, Goal{}}, {1, 0, Memory, Goal{}}},
		},
		sizes: []int{b.Held}, aspects: whole, rounds: b.HeldRounds, long: true,
		races: []race{b.heldByEtcd, b.heldByRegent(false), b.heldByRegent(true)},
	}
}

// settling is how long a server is left alone before its memory is read.
const settling = 500 * time.Millisecond

// keep measures a server, with its folder, that has just started: begin makes it hold n elections and has their renewals counted until ctx ends.
func (b *bench) keep(ctx context.Context, on *server, n int, begin func(ctx context.Context, k *keeping) error) ([]Sample, error) {
	<-time.After(settling)
	empty, err := usageOf(on.pid())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := &keeping{}
	defer k.running.Wait()
	defer cancel()
	if err := begin(ctx, k); err != nil {
		return nil, err
	}
	<-time.After(b.HeldLease / 3) // each has been renewed
	before, err := usageOf(on.pid())
	if err != nil {
		return nil, err
	}
	counted, begun := k.count.Load(), time.Now()
	<-time.After(b.HeldFor)
	after, err := usageOf(on.pid())
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

// shares divides n among so many, as evenly as can be; nobody's share is nothing.
func shares(n, among int) []int {
	all := make([]int, min(n, among))
	for i := range n {
		all[i%len(all)]++
	}
	return all
}

// scratch is a folder for a server of its own.
func (b *bench) scratch(name string, use func(dir string) ([]Sample, error)) ([]Sample, error) {
	dir, err := os.MkdirTemp(b.dir, name+"-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return use(dir)
}

func (b *bench) heldByEtcd(ctx context.Context, n int) ([]Sample, error) {
	return b.scratch("etcd", func(dir string) ([]Sample, error) {
		s, err := startEtcd(ctx, filepath.Join(dir, "data"))
		if err != nil {
			return nil, err
		}
		defer s.stop()
		defer s.close()
		return b.keep(ctx, s.server, n, func(ctx context.Context, k *keeping) error { return b.keepEtcd(ctx, s, n, k) })
	})
}

// keepEtcd spreads the first keep-alives over the time between two, and so those that follow.
func (b *bench) keepEtcd(ctx context.Context, s *etcd, n int, k *keeping) error {
	period, per := b.HeldLease/3, shares(n, keepers)
	errs := make([]error, len(per))
	var beginning sync.WaitGroup
	for i, share := range per {
		c, err := s.caller(i)
		if err != nil {
			return err
		}
		beginning.Go(func() {
			each := time.NewTicker(period / time.Duration(share))
			defer each.Stop()
			for j := range share {
				<-each.C
				if errs[i] = s.keepOne(ctx, c, fmt.Sprintf("held-%d-%d", i, j), b.HeldLease, k); errs[i] != nil {
					return
				}
			}
		})
	}
	beginning.Wait()
	return firstOf(errs)
}

func (s *etcd) keepOne(ctx context.Context, c *caller, key string, lease time.Duration, k *keeping) error {
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
		k.add(ctx, 0, fmt.Errorf("%s: the lease is kept no more", key))
	})
	return nil
}

func (b *bench) heldByRegent(batched bool) race {
	return func(ctx context.Context, n int) ([]Sample, error) {
		return b.scratch("regent", func(dir string) ([]Sample, error) {
			s, err := startRegent(ctx, b.binary, dir)
			if err != nil {
				return nil, err
			}
			defer s.stop()
			return b.keep(ctx, s.server, n, func(ctx context.Context, k *keeping) error { return b.keepRegent(ctx, s, n, batched, k) })
		})
	}
}

// keepRegent has each connection renew what it holds in turn.
func (b *bench) keepRegent(ctx context.Context, s *regent, n int, batched bool, k *keeping) error {
	per := shares(n, keepers)
	agents, errs := make([]*agent, len(per)), make([]error, len(per))
	var beginning sync.WaitGroup
	for i, share := range per {
		beginning.Go(func() { agents[i], errs[i] = s.hold(ctx, i, share, b.HeldLease) })
	}
	beginning.Wait()
	if err := firstOf(errs); err != nil {
		return err
	}
	period := b.HeldLease / 3
	for i, a := range agents {
		phase := period * time.Duration(i) / time.Duration(len(agents))
		if batched {
			k.running.Go(func() {
				a.every(ctx, period, phase, func(int) { renewed, err := renewAll(ctx, a, a.leases); k.add(ctx, renewed, err) })
			})
			continue
		}
		k.running.Go(func() {
			a.every(ctx, period/time.Duration(len(a.leases)), phase/time.Duration(len(a.leases)), func(turn int) {
				_, err := a.Renew(ctx, a.leases[turn%len(a.leases)])
				k.add(ctx, 1, err)
			})
		})
	}
	return nil
}

// hold makes the i-th agent hold n leases of that duration.
func (s *regent) hold(ctx context.Context, i, n int, lease time.Duration) (*agent, error) {
	a, err := s.agent(i)
	for err == nil && len(a.leases) < n {
		var l leadership.LeaseRequest
		if l, err = a.acquire(ctx, leadership.Election(fmt.Sprintf("held-%d-%d", i, len(a.leases))), lease, 0); err == nil {
			a.leases = append(a.leases, l)
		}
	}
	return a, err
}

// every calls do at the phase and then once in each period, until ctx ends.
func (a *agent) every(ctx context.Context, period, phase time.Duration, do func(turn int)) {
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
