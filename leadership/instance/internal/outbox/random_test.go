package outbox_test

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

// TestEveryChangeIsAnnouncedInOrderWhateverIsKilled makes changes through instances that are
// killed, stopped for a while, told of changes in the wrong order, deaf, or cut from the topic,
// that sweep at the same time, on a store and a topic that lose replies, fail, and deliver late.
func TestEveryChangeIsAnnouncedInOrderWhateverIsKilled(t *testing.T) {
	const runs = 5
	var all tally
	t.Cleanup(func() { // after the runs, which are parallel
		if all.events < 1000*runs || all.kills < 20*runs || all.reads < 20*runs || all.duplicates < runs {
			t.Errorf("too little has gone wrong: %d events, %d duplicates, %d kills, %d reads", all.events, all.duplicates, all.kills, all.reads)
		}
	})
	first := rand.Uint64()
	for k := range uint64(runs) {
		seed := first + k
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newFaulty(t, seed).run(2000, &all) })
		})
	}
}

// TestOrderHoldsWhileManyInstancesSweepTheSameElections has eight instances sweep two elections all
// the time, while others that cannot reach the topic change them.
func TestOrderHoldsWhileManyInstancesSweepTheSameElections(t *testing.T) {
	const runs = 10
	var all tally
	t.Cleanup(func() {
		if all.duplicates < runs {
			t.Errorf("seldom have two instances swept the same election: %d duplicates", all.duplicates)
		}
	})
	first := rand.Uint64()
	for k := range uint64(runs) {
		seed := first + k
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { manySweepers(newFaulty(t, seed), &all) })
		})
	}
}

// tally is what has happened in all runs of a test: in a single one it can be too little.
type tally struct {
	mu                               sync.Mutex // guards the rest until all runs have ended
	events, duplicates, kills, reads int
}

func (a *tally) add(events int, f *faulty) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events += events
	a.duplicates += f.topic.duplicates()
	a.kills += f.kills
	a.reads += f.calls["read"]
}

func manySweepers(f *faulty, all *tally) {
	dead := f.instance("dead")
	for range 8 {
		f.mu.Lock()
		p := f.start()
		f.mu.Unlock()
		f.late.Go(func() {
			for range 100 {
				f.sleep(3 * time.Second)
				p.Sweep(f.t.Context())
			}
		})
	}
	for range 1000 {
		dead.change(election(f.n(2)))
		f.sleep(400 * time.Millisecond)
	}
	f.calm.Store(true)
	f.late.Wait()
	f.settle(2 * time.Minute)
	for _, p := range f.alive() {
		p.end()
	}
	f.late.Wait()
	all.add(f.topic.expectAll(), f)
	f.t.Logf("%d duplicates", f.topic.duplicates())
}

// faulty is a fleet in which everything fails until it is calm.
type faulty struct {
	*fleet
	calm     atomic.Bool
	topicOut atomic.Bool
	late     sync.WaitGroup // goroutines that fail or deliver later

	mu    sync.Mutex // guards all below
	rng   *rand.Rand
	procs []*process
	kills int
	stops int
	calls map[string]int // of dead processes
}

func newFaulty(t *testing.T, seed uint64) *faulty {
	f := &faulty{fleet: newFleet(t), rng: rand.New(rand.NewPCG(seed, seed)), calls: make(map[string]int)}
	f.topic.hearers = append(f.topic.hearers, f.hear)
	return f
}

// process is an instance that can be killed.
type process struct {
	*instance
	faulty *faulty
	dead   atomic.Bool
	cut    bool         // from the topic
	steps  atomic.Int64 // until it dies; 0 or less: it does not

	mu      sync.Mutex // guards stopped
	stopped chan struct{}
}

var errDead = errors.New("this process is dead")

// start starts a process. Call it with mu held.
func (f *faulty) start() *process {
	p := &process{instance: f.instance(fmt.Sprintf("i%d", f.kills+len(f.procs))), faulty: f, cut: f.rng.IntN(10) == 0}
	p.before = func(ctx context.Context, call string) error { return p.step(leadership.StoreUnavailable) }
	p.after = func(ctx context.Context, call string) error { return p.step(leadership.OutcomeUnknown) }
	p.publish = p.send
	p.tell = p.told
	p.run()
	f.procs = append(f.procs, p)
	return p
}

// n returns a number from 0 to below the limit.
func (f *faulty) n(limit int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(limit)
}

// one is true once in so many times, and never when all is calm.
func (f *faulty) one(in int) bool { return f.n(in) == 0 && !f.calm.Load() }

func (f *faulty) sleep(upTo time.Duration) { time.Sleep(time.Duration(f.n(int(upTo)))) }

// step is called where a process reaches store or topic. It takes a while, as long as the process
// is stopped. A dead process gets no further. Sometimes the step fails.
func (p *process) step(code leadership.Code) error {
	p.faulty.sleep(5 * time.Millisecond)
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	if !p.faulty.calm.Load() && p.steps.Add(-1) == 0 {
		p.kill()
	}
	if p.dead.Load() {
		return errDead
	}
	if p.faulty.one(200) {
		return fmt.Errorf("%w: %w", code, errPlanted)
	}
	return nil
}

// kill is kill -9: nothing that the process does has any effect from now on.
func (p *process) kill() {
	p.dead.Store(true)
	p.stop()
}

// halt is kill -STOP, and kill -CONT after a while.
func (p *process) halt(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return
	}
	p.stopped = make(chan struct{})
	p.faulty.late.Go(func() {
		time.Sleep(d)
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.stopped)
		p.stopped = nil
	})
}

// told tells the outbox of a change, sometimes after the next one.
func (p *process) told(events ...leadership.Event) {
	if !p.faulty.one(10) {
		p.Outbox.Publish(events...)
		return
	}
	p.faulty.late.Go(func() {
		p.faulty.sleep(50 * time.Millisecond)
		p.Outbox.Publish(events...)
	})
}

// send is the topic as the process reaches it.
func (p *process) send(ctx context.Context, events []leadership.Event) (acked int, err error) {
	if err := p.step(leadership.StoreUnavailable); err != nil {
		return 0, err
	}
	f := p.faulty
	out := (p.cut || f.topicOut.Load()) && !f.calm.Load()
	switch {
	case out && f.one(4):
		<-ctx.Done()
		return 0, ctx.Err()
	case out:
		return 0, errPlanted
	case f.one(60):
		return p.sendBadly(events)
	}
	for k, e := range events {
		if k > 0 {
			if err := p.step(leadership.OutcomeUnknown); err != nil {
				return f.n(k + 1), err
			}
		}
		f.topic.accept(e)
	}
	return len(events), p.step(leadership.OutcomeUnknown)
}

// sendBadly has a part of the events accepted at once and perhaps another part later, and
// acknowledges no more than a part.
func (p *process) sendBadly(events []leadership.Event) (acked int, err error) {
	f := p.faulty
	k := f.n(len(events) + 1)
	for _, e := range events[:k] {
		f.topic.accept(e)
	}
	acked = f.n(k + 1)
	if rest := events[k:]; f.one(2) {
		f.late.Go(func() {
			for _, e := range rest[:f.n(len(rest)+1)] {
				f.sleep(20 * time.Second)
				f.topic.accept(e)
			}
		})
	}
	return acked, errPlanted
}

// hear delivers what was announced to most processes, in any order.
func (f *faulty) hear(e leadership.Event) {
	for _, p := range f.alive() {
		if f.n(3) == 0 {
			continue
		}
		f.late.Go(func() {
			f.sleep(100 * time.Millisecond)
			p.Heard(e)
		})
	}
}

func (f *faulty) alive() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var alive []*process
	for _, p := range f.procs {
		if !p.dead.Load() {
			alive = append(alive, p)
		}
	}
	return alive
}

// refill starts processes until three run.
func (f *faulty) refill() {
	alive := f.alive()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.procs {
		if p.dead.Load() {
			f.kills++
			f.add(p)
		}
	}
	for f.procs = alive; len(f.procs) < 3; {
		f.start()
	}
}

// add adds up the calls of a process.
func (f *faulty) add(p *process) {
	p.instance.mu.Lock()
	defer p.instance.mu.Unlock()
	for call, n := range p.instance.calls {
		f.calls[call] += n
	}
}

// run tries so many changes, and then checks that all that were made are announced.
func (f *faulty) run(changes int, all *tally) {
	for range changes {
		f.refill()
		f.fault()
		alive := f.alive()
		if len(alive) == 0 {
			continue
		}
		p := alive[f.n(len(alive))]
		f.late.Go(func() { f.tryChange(p) })
		f.sleep(400 * time.Millisecond)
	}
	f.calm.Store(true)
	f.topicOut.Store(false)
	f.refill()
	f.late.Wait()
	f.refill()
	f.settle(2 * time.Minute)
	for _, p := range f.alive() {
		p.end()
		f.add(p)
	}
	f.late.Wait()
	f.check(all)
}

// fault makes something happen to processes or the topic.
func (f *faulty) fault() {
	alive := f.alive()
	p := alive[f.n(len(alive))]
	switch {
	case f.one(20):
		p.steps.Store(int64(1 + f.n(40)))
	case f.one(150):
		f.stops++
		p.halt(time.Duration(f.n(int(45 * time.Second))))
	case f.one(300) && !f.topicOut.Swap(true):
		time.AfterFunc(time.Duration(f.n(int(time.Minute))), func() { f.topicOut.Store(false) })
	case f.one(50):
		f.late.Go(func() { p.Sweep(f.t.Context()) })
	}
}

// tryChange makes one change or none.
func (f *faulty) tryChange(p *process) {
	ctx := f.t.Context()
	e := election(f.n(6))
	if f.n(3) == 0 {
		id := leadership.CandidateID(fmt.Sprintf("agent-%d", f.n(3)))
		g, err := p.service.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: id, LeaseDuration: time.Second})
		if err == nil && f.n(2) == 0 {
			f.sleep(time.Second)
			p.service.Do(ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: e, CandidateID: id, Key: g.Key, Token: g.Token}})
		}
		return
	}
	lease := leadership.MinLeaseDuration + time.Duration(f.made.Add(1))*time.Millisecond
	p.service.Do(ctx, leadership.Configure{
		Election: e, Config: leadership.Config{LeaseDuration: lease},
	})
}

// check checks at the end what was announced, and adds up what has gone wrong.
func (f *faulty) check(all *tally) {
	events := f.topic.expectAll()
	f.t.Logf("%d events, %d duplicates, %d kills, %d stops, calls: %v", events, f.topic.duplicates(), f.kills, f.stops, f.calls)
	all.add(events, f)
}
