package line_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/line"
	"regent/leadership/instance/internal/view"
	"regent/store/memory"
)

// crowd is so many who wait for one election, on the machine's clock.
type crowd struct {
	service *leadership.Service
	hub     *hub.Hub
	queue   *line.Queue
	grant   leadership.Grant
	end     context.CancelFunc
	calls   sync.WaitGroup
}

const tenThousand = 10_000

func gather(b testing.TB, n int) *crowd {
	s := leadership.New(memory.New(memory.Config{}))
	h := newHub(b, hub.Config{Store: s, Live: true})
	c := &crowd{service: s, hub: h, queue: line.NewQueue(line.Config{Acquire: s.Acquire, Release: s.Release, Withdraw: s.Withdraw, Hub: h})}
	grant, err := s.Acquire(b.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "ann", LeaseDuration: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	c.grant = grant
	ctx, cancel := context.WithCancel(b.Context())
	c.end = cancel
	b.Cleanup(func() { c.queue.Close(context.Background(), errTestOver) })
	b.Cleanup(c.calls.Wait)
	b.Cleanup(cancel)
	for i := range n {
		r := keyed(request(leadership.CandidateID(fmt.Sprint("agent-", i))))
		c.calls.Go(func() { c.queue.Acquire(ctx, r) })
	}
	for c.queue.Callers(jobs) < n {
		runtime.Gosched()
	}
	return c
}

func TestAWaiterTakesLessThanTwoKiB(t *testing.T) {
	before := memoryInUse()
	c := gather(t, tenThousand)
	each := (memoryInUse() - before) / tenThousand
	t.Logf("%d bytes for each waiter, the goroutine and the request that a caller brings included, its stack not", each)
	if each > 2<<10 {
		t.Errorf("a waiter takes %d bytes, want 2 KiB at most", each)
	}
	runtime.KeepAlive(c)
}

func memoryInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkJoinAndLeave(b *testing.B) {
	for _, n := range []int{1, tenThousand} {
		b.Run(fmt.Sprint("of-", n), func(b *testing.B) {
			c := gather(b, n)
			gone, cancel := context.WithCancel(b.Context())
			cancel()
			r := request("bob")
			for b.Loop() {
				c.queue.Acquire(gone, r)
			}
		})
	}
}

// BenchmarkTakeover measures the time from a release to the next leader's answer, with so many
// candidates in line, each of which joins again.
func BenchmarkTakeover(b *testing.B) {
	for _, n := range []int{2, tenThousand} {
		b.Run(fmt.Sprint("of-", n), func(b *testing.B) {
			c := gather(b, 0)
			ctx, cancel := context.WithCancel(b.Context())
			b.Cleanup(cancel)
			granted := make(chan leadership.Grant)
			for i := range n {
				c.calls.Go(func() {
					for ctx.Err() == nil {
						if g, err := c.queue.Acquire(ctx, request(leadership.CandidateID(fmt.Sprint("agent-", i)))); err == nil {
							granted <- g
						}
					}
				})
			}
			for c.queue.Callers(jobs) < n {
				runtime.Gosched()
			}
			leader := c.grant
			for b.Loop() {
				l, err := c.service.Release(ctx, of(leader))
				if err != nil {
					b.Fatal(err)
				}
				c.hub.Learn(l, view.Committed, c.hub.Now())
				leader = <-granted
			}
		})
	}
}

func BenchmarkLearn(b *testing.B) {
	for name, n := range map[string]int{"without-a-line": 0, "with-a-line": 1} {
		b.Run(name, func(b *testing.B) {
			c := gather(b, n)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c.hub.Learn(c.grant.Lease, view.Committed, c.hub.Now())
				}
			})
		})
	}
}
