package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

// moment is the state of an election from an instant until the next moment. A held lease is held
// until its end.
type moment struct {
	from     time.Duration
	revision leadership.Revision
	end      time.Duration // of the lease; zero for none
}

// truth is all that ever was true of one election.
type truth struct {
	name  leadership.Election
	start time.Time

	mu      sync.Mutex
	moments []moment
}

func (h *truth) now() time.Duration { return time.Since(h.start) }

// write makes a change: a lease of that duration, or none with 0. It returns the lease as it then
// is.
func (h *truth) write(lease time.Duration) leadership.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := moment{from: h.now(), revision: leadership.Revision(len(h.moments)) + 1}
	if n := len(h.moments); n > 0 {
		next.revision = h.moments[n-1].revision + 1
	}
	if lease > 0 {
		next.end = next.from + lease
	}
	h.moments = append(h.moments, next)
	return h.read()
}

// renew is a change that has no revision; not ok if there is no lease.
func (h *truth) renew(lease time.Duration) (leadership.Lease, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.moments[len(h.moments)-1]
	if last.end <= h.now() {
		return leadership.Lease{}, false
	}
	last.from, last.end = h.now(), max(last.end, h.now()+lease)
	h.moments = append(h.moments, last)
	return h.read(), true
}

// get is a strong read.
func (h *truth) get() leadership.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.read()
}

func (h *truth) read() leadership.Lease {
	last, now := h.moments[len(h.moments)-1], h.now()
	l := leadership.Lease{Election: h.name, State: leadership.Vacant, Revision: last.revision, ReadAt: h.start.Add(now)}
	if last.end > now {
		l.State, l.ExpiresIn = leadership.Held, last.end-now
	}
	return l
}

// was says whether the lease was as the reading has it at some instant from one to another.
func (h *truth) was(r leadership.Reading, from, to time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, m := range h.moments {
		begins, ends := m.from, to
		if i+1 < len(h.moments) {
			ends = h.moments[i+1].from
		}
		if held := r.State == leadership.Held; held {
			ends = min(ends, m.end)
		} else if m.end > 0 {
			begins = m.end
		}
		if m.revision == r.Revision && max(begins, from) <= min(ends, to) {
			return true
		}
	}
	return false
}

// lasts says whether a lease of the reading's revision goes on for as long as the reading says.
func (h *truth) lasts(r leadership.Reading, now time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.moments {
		if m.revision == r.Revision && m.end >= now+r.ExpiresIn {
			return true
		}
	}
	return r.ExpiresIn == 0
}

// node is a cache, and what it must not go back behind.
type node struct {
	*hub.Hub
	shown map[leadership.Election]*atomic.Int64 // the newest revision that a call which has returned showed, or was told
	gets  atomic.Int64
}

func (n *node) saw(e leadership.Election, r leadership.Revision) {
	for {
		last := n.shown[e].Load()
		if last >= int64(r) || n.shown[e].CompareAndSwap(last, int64(r)) {
			return
		}
	}
}

func (n *node) learn(l leadership.Lease, asked time.Duration) {
	n.Hub.Learn(&l, view.Committed, asked)
	n.saw(l.Election, l.Revision)
}

func (n *node) hear(l leadership.Lease) {
	n.Publish(leadership.Event{Election: l.Election, Revision: l.Revision})
	n.saw(l.Election, l.Revision)
}

// trial is one run of several caches on one store, where everything that can go wrong does, at
// random.
type trial struct {
	t         *testing.T
	seed      uint64
	nodes     []*node
	elections []*truth
	end       time.Duration
	reads     atomic.Int64
}

const tick = 50 * time.Millisecond // coarse, so that much happens at the same instant

// some is a random time of less than so many ticks.
func some(random *rand.Rand, ticks int) time.Duration {
	return time.Duration(random.IntN(ticks)) * tick
}

func newTrial(t *testing.T, seed uint64) *trial {
	c := &trial{t: t, seed: seed, end: 2 * time.Minute}
	start := time.Now()
	for i := range 4 {
		h := &truth{name: leadership.Election(fmt.Sprint("jobs-", i)), start: start}
		h.write(0)
		c.elections = append(c.elections, h)
	}
	for range 2 {
		c.nodes = append(c.nodes, c.newNode(start))
	}
	return c
}

func (c *trial) newNode(start time.Time) *node {
	n := &node{shown: make(map[leadership.Election]*atomic.Int64)}
	truths := make(map[leadership.Election]*truth)
	for _, h := range c.elections {
		n.shown[h.name] = new(atomic.Int64)
		truths[h.name] = h
	}
	size := []int{0, 3}[c.seed%2] // sometimes there is not room for all
	n.Hub = newHub(c.t, hub.Config{
		Size: size, Expiry: 3 * time.Second, Now: func() time.Duration { return time.Since(start) },
		Store: stub{get: func(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
			return get(ctx, truths[e], rand.New(rand.NewPCG(c.seed, uint64(n.gets.Add(1)))))
		}},
	})
	return n
}

// get reads a store that is slow at times, both before it looks and after, and fails at times.
func get(ctx context.Context, h *truth, random *rand.Rand) (leadership.Lease, error) {
	slow := []int{1, 2, 20, 40}[random.IntN(4)]
	sleeper(some(random, slow))(ctx)
	l := h.get()
	sleeper(some(random, slow))(ctx)
	if ctx.Err() != nil || random.IntN(10) == 0 {
		return leadership.Lease{}, leadership.StoreUnavailable
	}
	return l, nil
}

// write changes and renews an election, through one of the nodes or elsewhere. Each node hears of a
// change at once, late, or never.
func (c *trial) write(h *truth, random *rand.Rand) {
	for h.now() < c.end {
		time.Sleep(some(random, 40))
		n, asked, lease := c.nodes[random.IntN(len(c.nodes))], h.now(), some(random, 200)*time.Duration(random.IntN(2))
		time.Sleep(some(random, 5))
		var l leadership.Lease
		if random.IntN(3) > 0 {
			l = h.write(lease)
			c.announce(l, random)
		} else if renewed, ok := h.renew(lease); ok {
			l = renewed
		} else {
			continue
		}
		if random.IntN(2) == 0 {
			time.AfterFunc(some(random, 10), func() { n.learn(l, asked) })
		}
	}
}

func (c *trial) announce(l leadership.Lease, random *rand.Rand) {
	for _, n := range c.nodes {
		switch random.IntN(3) {
		case 0:
			n.hear(l)
		case 1:
			time.AfterFunc(some(random, 100), func() { n.hear(l) })
		}
	}
}

// read reads an election through one node after the other, and checks what each says.
func (c *trial) read(h *truth, random *rand.Rand) {
	r := leadership.ReadRequest{Election: h.name}
	for h.now() < c.end {
		time.Sleep(some(random, 20))
		n := c.nodes[random.IntN(len(c.nodes))]
		r.Strong = random.IntN(10) == 0
		switch random.IntN(4) {
		case 0:
			r.Known = 0 // it need not say what it has seen: this node must not go back all the same
		case 1:
			r.Known = h.get().Revision // it has seen the newest, somewhere else
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), some(random, 100)+tick)
		begun, least := h.now(), max(r.Known, leadership.Revision(n.shown[h.name].Load()))
		reading, err := n.Read(ctx, r)
		cancel()
		c.reads.Add(1)
		switch {
		case err == nil:
			c.check(h, r, reading, begun, least)
			n.saw(h.name, reading.Revision)
			r.Known = max(r.Known, reading.Revision)
		case !errors.Is(err, leadership.StoreUnavailable):
			c.t.Errorf("%s, with %d known: %v", h.name, r.Known, err)
		}
	}
}

func (c *trial) check(h *truth, r leadership.ReadRequest, got leadership.Reading, begun time.Duration, least leadership.Revision) {
	now := h.now()
	from, bound := now-got.Age, 3*time.Second
	if r.Strong {
		from, bound = begun, 0
	}
	switch {
	case got.Revision < least:
		c.t.Errorf("%s at %v: %+v goes back behind revision %d", h.name, now, got, least)
	case got.Bound != bound || got.Age > bound || got.Age < 0:
		c.t.Errorf("%s at %v: %+v has an age of %v, want at most %v", h.name, now, got, got.Age, bound)
	case !h.was(got, from, now):
		c.t.Errorf("%s at %v: %+v was not true within its age of %v", h.name, now, got, got.Age)
	case !r.Strong && !h.lasts(got, now):
		c.t.Errorf("%s at %v: %+v promises more than the lease has", h.name, now, got)
	}
}

func (c *trial) run() {
	var all sync.WaitGroup
	for i, h := range c.elections {
		all.Go(func() { c.write(h, rand.New(rand.NewPCG(c.seed, uint64(1000+i)))) })
		for j := range 6 {
			all.Go(func() { c.read(h, rand.New(rand.NewPCG(c.seed, uint64(2000+10*i+j)))) })
		}
	}
	all.Wait()
	time.Sleep(time.Minute) // for late events
	for _, n := range c.nodes {
		n.WaitReads()
	}
}

func TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack(t *testing.T) {
	t.Parallel()
	var reads, gets atomic.Int64
	t.Run("trials", func(t *testing.T) {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := newTrial(t, seed)
					c.run()
					reads.Add(c.reads.Load())
					for _, n := range c.nodes {
						gets.Add(n.gets.Load())
					}
				})
			})
		}
	})
	t.Logf("%d reads, of which the store saw %d", reads.Load(), gets.Load())
	if gets.Load() > reads.Load()/2 {
		t.Errorf("the store saw %d of %d reads: this was no test of a cache", gets.Load(), reads.Load())
	}
}

// Many more events than a store tells at once come within the time that a mark lies back.
func TestAFeedWithoutACursorBeginsAndGoesOnHoweverMuchHappens(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		var elections []leadership.Election
		for n := range 50 {
			elections = append(elections, leadership.Election(fmt.Sprintf("e%02d", n)))
		}
		busy := func(lasting time.Duration) {
			for range lasting / (10 * time.Millisecond) {
				time.Sleep(10 * time.Millisecond)
				for _, e := range elections {
					h.Publish(w.change(e, 1)...)
				}
			}
		}
		busy(4 * time.Second) // 5,000 a second
		f := w.follows(h, "", fromNow)
		seen := sight{}
		for _, e := range elections {
			seen[e] = leadership.Revision(len(w.history(e, 0)))
		}
		busy(2 * time.Second)
		for _, i := range f.items() {
			require.NoError(t, seen.see(i.Event))
		}
		if err := f.ended(); err != nil || seen["e07"] != 600 {
			t.Errorf("a feed got to revision %d, want 600, and then the error %v", seen["e07"], err)
		}
	})
}
