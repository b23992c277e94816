package relay_test

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

	"regent/leadership"
)

// TestEveryChangeIsAnnouncedInOrderWhateverIsKilled makes changes through instances that are killed, stopped for a while, told of changes in the
// wrong order and deaf, on a store and a topic that lose replies, fail, and deliver late.
func TestEveryChangeIsAnnouncedInOrderWhateverIsKilled(t *testing.T) {
	first := rand.Uint64()
	for k := range uint64(10) {
		seed := first + k
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newChaos(t, seed).run(2000) })
		})
	}
}

// chaos is a world in which everything goes wrong until it is calm.
type chaos struct {
	*world
	calm atomic.Bool
	gone atomic.Bool    // the topic is
	late sync.WaitGroup // what happens by itself

	mu    sync.Mutex // guards all below
	rng   *rand.Rand
	procs []*process
	kills int
	stops int
	calls map[string]int // of those that are dead
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, seed)), calls: make(map[string]int)}
	c.topic.hearers = append(c.topic.hearers, c.hear)
	return c
}

// process is an instance that can be killed.
type process struct {
	*instance
	chaos *chaos
	dead  atomic.Bool
	fuse  atomic.Int64 // steps until it dies; it does not burn while it is 0 or less

	mu      sync.Mutex // guards stopped
	stopped chan struct{}
}

var errDead = errors.New("this process is dead")

func (c *chaos) start() *process {
	p := &process{instance: c.instance(leadership.CandidateID(fmt.Sprintf("i%d", c.kills+len(c.procs)))), chaos: c}
	p.before = func(ctx context.Context, call string) error { return p.step(ctx, leadership.StoreUnavailable) }
	p.after = func(ctx context.Context, call string) error { return p.step(ctx, leadership.OutcomeUnknown) }
	p.publish = p.send
	p.tell = p.told
	p.run()
	return p
}

// n is a number from 0 to below the limit.
func (c *chaos) n(limit int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(limit)
}

// one says yes once in so many times, and never when all is calm.
func (c *chaos) one(in int) bool { return c.n(in) == 0 && !c.calm.Load() }

func (c *chaos) nap(upTo time.Duration) { time.Sleep(time.Duration(c.n(int(upTo)))) }

// step is where a process touches the world. It takes a while, and for as long as the process is stopped; ctx does not wake who is stopped. A dead
// process gets no further. Sometimes it fails.
func (p *process) step(ctx context.Context, code leadership.Code) error {
	p.chaos.nap(5 * time.Millisecond)
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	if !p.chaos.calm.Load() && p.fuse.Add(-1) == 0 {
		p.kill()
	}
	if p.dead.Load() {
		return errDead
	}
	if p.chaos.one(200) {
		return fmt.Errorf("%w: %w", code, errPlanted)
	}
	return nil
}

// kill is kill -9: nothing that the process does has any effect from now on.
func (p *process) kill() {
	p.dead.Store(true)
	p.stop()
}

// sleep is kill -STOP, and kill -CONT after a while.
func (p *process) sleep(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return
	}
	p.stopped = make(chan struct{})
	p.chaos.late.Go(func() {
		time.Sleep(d)
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.stopped)
		p.stopped = nil
	})
}

// told tells the relay of a change, sometimes after the next one.
func (p *process) told(events ...leadership.Event) {
	if !p.chaos.one(10) {
		p.relay.Publish(events...)
		return
	}
	p.chaos.late.Go(func() {
		p.chaos.nap(50 * time.Millisecond)
		p.relay.Publish(events...)
	})
}

// send is the topic as the process has it.
func (p *process) send(ctx context.Context, events []leadership.Event) (acked int, err error) {
	if err := p.step(ctx, leadership.StoreUnavailable); err != nil {
		return 0, err
	}
	c := p.chaos
	switch {
	case c.gone.Load() && c.one(4):
		<-ctx.Done()
		return 0, ctx.Err()
	case c.gone.Load():
		return 0, errPlanted
	case c.one(60):
		return p.sendBadly(events)
	}
	for k, e := range events {
		if k > 0 {
			if err := p.step(ctx, leadership.OutcomeUnknown); err != nil {
				return c.n(k + 1), err
			}
		}
		c.topic.accept(e)
	}
	return len(events), p.step(ctx, leadership.OutcomeUnknown)
}

// sendBadly has a part of the events accepted at once and perhaps another part later, and acknowledges no more than a part.
func (p *process) sendBadly(events []leadership.Event) (acked int, err error) {
	c := p.chaos
	k := c.n(len(events) + 1)
	for _, e := range events[:k] {
		c.topic.accept(e)
	}
	acked = c.n(k + 1)
	if rest := events[k:]; c.one(2) {
		c.late.Go(func() {
			for _, e := range rest[:c.n(len(rest)+1)] {
				c.nap(20 * time.Second)
				c.topic.accept(e)
			}
		})
	}
	return acked, errPlanted
}

// hear lets all hear what was announced, but for those who are deaf.
func (c *chaos) hear(e leadership.Event) {
	for _, p := range c.alive() {
		if c.n(3) == 0 {
			continue
		}
		c.late.Go(func() {
			c.nap(100 * time.Millisecond)
			p.relay.Heard(e)
		})
	}
}

func (c *chaos) alive() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var alive []*process
	for _, p := range c.procs {
		if !p.dead.Load() {
			alive = append(alive, p)
		}
	}
	return alive
}

// staff sees to it that three processes run.
func (c *chaos) staff() {
	alive := c.alive()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.procs {
		if p.dead.Load() {
			c.kills++
			c.bury(p)
		}
	}
	for len(alive) < 3 {
		c.procs = alive
		alive = append(alive, c.start())
	}
	c.procs = alive
}

func (c *chaos) bury(p *process) {
	p.instance.mu.Lock()
	defer p.instance.mu.Unlock()
	for call, n := range p.instance.calls {
		c.calls[call] += n
	}
}

// run lets so many changes be tried, and then looks whether all that were made are announced.
func (c *chaos) run(changes int) {
	for range changes {
		c.staff()
		c.mischief()
		alive := c.alive()
		if len(alive) == 0 {
			continue
		}
		p := alive[c.n(len(alive))]
		c.late.Go(func() { c.tryChange(p) })
		c.nap(400 * time.Millisecond)
	}
	c.calm.Store(true)
	c.gone.Store(false)
	c.staff()
	c.late.Wait()
	c.staff()
	c.settle(5 * time.Minute)
	for _, p := range c.alive() {
		p.end()
		c.bury(p)
	}
	c.late.Wait()
	c.judge()
}

// mischief is what happens to processes and to the topic.
func (c *chaos) mischief() {
	alive := c.alive()
	p := alive[c.n(len(alive))]
	switch {
	case c.one(20):
		p.fuse.Store(int64(1 + c.n(40)))
	case c.one(150):
		c.stops++
		p.sleep(time.Duration(c.n(int(45 * time.Second))))
	case c.one(300) && !c.gone.Swap(true):
		time.AfterFunc(time.Duration(c.n(int(time.Minute))), func() { c.gone.Store(false) })
	case c.one(50):
		c.late.Go(func() { p.relay.Sweep(c.t.Context()) })
	}
}

// tryChange makes one change or none.
func (c *chaos) tryChange(p *process) {
	ctx := c.t.Context()
	e := election(c.n(6))
	if c.n(3) == 0 {
		who := leadership.CandidateID(fmt.Sprintf("agent-%d", c.n(3)))
		g, err := p.service.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: who, LeaseDuration: time.Second})
		if err == nil && c.n(2) == 0 {
			c.nap(time.Second)
			p.service.Release(ctx, leadership.LeaseRequest{Election: e, CandidateID: who, Key: g.Key, Token: g.Token})
		}
		return
	}
	lease := leadership.MinLeaseDuration + time.Duration(c.made.Add(1))*time.Millisecond
	p.service.Configure(ctx, leadership.ConfigureRequest{
		Election: e, ConfigureCommand: leadership.ConfigureCommand{Config: leadership.Config{LeaseDuration: lease}},
	})
}

// judge looks at the end at what has happened, and whether that was worth looking at.
func (c *chaos) judge() {
	events := c.topic.checkEV()
	c.t.Logf("%d events, %d duplicates, %d kills, %d stops, %d terms, calls: %v", events, c.topic.duplicates(), c.kills, c.stops, c.terms(), c.calls)
	if events < 1000 || c.kills < 20 || c.calls["read"] < 20 || c.terms() < 1 {
		c.t.Error("too little has happened")
	}
}
