package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
)

// slack is how much the clock of a store on this machine may differ from ours during a lease, its
// guard included.
const slack = 100 * time.Millisecond

// pair is two instances on one store, or one in both roles: changes are made at one, and watched at
// the other.
type pair struct {
	t        *testing.T
	a, b     *server
	recorder checker.Recorder
	begin    time.Time
	base     context.Context // ends when all is over
	over     context.CancelFunc
	watching sync.WaitGroup

	mu    sync.Mutex                                       // guards all below
	sight map[string]map[leadership.Revision]time.Duration // by who: when a revision, or a later one, was seen first
	seen  chan struct{}                                    // closed and made anew with each sight
	top   map[string]leadership.Revision
}

// planner is the election of a pair.
const planner leadership.Election = "planner"

// newPair starts to watch at b, and to read at both.
func newPair(t *testing.T, a, b *server) *pair {
	t.Helper()
	p := &pair{
		t: t, a: a, b: b, begin: time.Now(), seen: make(chan struct{}),
		sight: make(map[string]map[leadership.Revision]time.Duration), top: make(map[string]leadership.Revision),
	}
	p.base, p.over = context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(p.stop)
	if err := configure(p.base, a, planner, 0); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	p.watching.Go(func() { p.follow(begun) })
	p.watching.Go(func() { p.read("reads at A", a, 10*time.Millisecond) })
	p.watching.Go(func() { p.read("reads", b, time.Millisecond) })
	<-begun
	return p
}

// stop ends the watching.
func (p *pair) stop() {
	p.over()
	p.watching.Wait()
}

func (p *pair) now() time.Duration { return time.Since(p.begin) }

// follow reads the stream at b.
func (p *pair) follow(begun chan<- struct{}) {
	f := listener("stream", streamOf(planner), &p.recorder)
	ready, got := f.ready, f.got
	f.ready = func() { ready(); close(begun) }
	f.got = func(e leadership.Event) { got(e); p.sees("stream", e.Revision) }
	for p.base.Err() == nil {
		if err := f.follow(p.base, p.b); err != nil && p.base.Err() == nil {
			p.t.Errorf("the stream broke off: %v", err)
			return
		}
	}
}

// read reads all the time.
func (p *pair) read(name string, s *server, pause time.Duration) {
	for p.base.Err() == nil {
		x, err := p.readOnce(name, s)
		switch {
		case err == nil:
			p.recorder.Read(x)
			p.sees(name, x.Revision)
		case p.base.Err() == nil:
			p.t.Errorf("%s: %v", name, err)
			return
		}
		<-time.After(pause)
	}
}

func (p *pair) readOnce(name string, s *server) (checker.Reading, error) {
	x := checker.Reading{Reader: name, Election: planner, Asked: p.now()}
	request, err := http.NewRequestWithContext(p.base, http.MethodGet, s.URL+wire.Path(planner, ""), nil)
	if err != nil {
		return x, err
	}
	var l wire.Lease
	header, err := exchange(plain, request, &l)
	x.Answered = p.now()
	if err != nil {
		return x, err
	}
	age, err := strconv.Atoi(header.Get("Age"))
	x.Age, x.Bound = time.Duration(age)*time.Second, time.Duration(l.MaxStalenessMs)*time.Millisecond
	x.Revision, x.State, x.Leader, x.Token = l.Revision, l.State, l.LeaderID, l.FencingToken
	return x, err
}

func (p *pair) sees(who string, r leadership.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sight[who] == nil {
		p.sight[who] = make(map[leadership.Revision]time.Duration)
	}
	now := p.now()
	for missed := p.top[who] + 1; missed <= r; missed++ {
		p.sight[who][missed] = now
	}
	if r > p.top[who] {
		p.top[who] = r
		close(p.seen)
		p.seen = make(chan struct{})
	}
}

// await waits until the revision was seen, and returns when.
func (p *pair) await(who string, r leadership.Revision) (time.Duration, error) {
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		at, ok := p.sight[who][r]
		seen := p.seen
		p.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-seen:
		case <-deadline:
			return 0, fmt.Errorf("%s: revision %d is not seen within %v", who, r, patience)
		}
	}
}

// patience is how long anything may take that should take milliseconds: no promise, but an end to
// the waiting for what never comes.
const patience = 2 * time.Minute

// agent is a candidate with a key for one term.
type agent struct {
	id    leadership.CandidateID
	key   leadership.Key
	token leadership.Token
}

const leaseOfPair = time.Hour

// acquire makes the call at a server, and notes the time.
func (p *pair) acquire(s *server, who *agent, wait time.Duration) (change, error) {
	who.key = leadership.NewKey()
	asked := p.now()
	g, err := s.client.Acquire(p.base, leadership.AcquireRequest{Election: planner, CandidateID: who.id, Key: &who.key, LeaseDuration: leaseOfPair, Wait: wait})
	if err != nil {
		return change{}, err
	}
	who.token = g.Token
	return p.change(g.Revision, asked), nil
}

func (p *pair) release(s *server, who *agent) (change, error) {
	asked := p.now()
	l, err := s.client.Release(p.base, leadership.LeaseRequest{Election: planner, CandidateID: who.id, Key: who.key, Token: who.token})
	if err != nil {
		return change{}, err
	}
	return p.change(l.Revision, asked), nil
}

// change is a change that was made, and its time.
type change struct {
	revision        leadership.Revision
	asked, answered time.Duration
}

func (p *pair) change(r leadership.Revision, asked time.Duration) change {
	c := change{r, asked, p.now()}
	p.recorder.Change(checker.Change{Election: planner, Revision: r, Asked: c.asked, Answered: c.answered})
	return c
}

// round lets ann, which leads through a, hand over to bob, which waits at b, and bob to ann. It
// adds the delays to took.
func (p *pair) round(ann, bob *agent, took delays) error {
	type answer struct {
		change
		err error
	}
	waiting := make(chan answer, 1)
	go func() {
		c, err := p.acquire(p.b, bob, leadership.MaxWait)
		waiting <- answer{c, err}
	}()
	<-time.After(30 * time.Millisecond) // bob stands in line
	released, err := p.release(p.a, ann)
	if err != nil {
		return err
	}
	grant := <-waiting
	if grant.err != nil {
		return grant.err
	}
	took.add("queue", released, grant.answered)
	back, err := p.release(p.a, bob)
	if err != nil {
		return err
	}
	again, err := p.acquire(p.a, ann, 0)
	if err != nil {
		return err
	}
	for _, c := range []change{released, back, again} {
		for _, who := range []string{"stream", "reads"} {
			at, err := p.await(who, c.revision)
			if err != nil {
				return err
			}
			took.add(who, c, at)
		}
	}
	return nil
}

// check compares everything that was seen with the history. A single stream must not repeat an
// event.
func (p *pair) check() {
	p.t.Helper()
	history := wholeHistory(p.base, p.t, p.a)
	for _, e := range history {
		if e.Election == planner {
			if _, err := p.await("stream", e.Revision); err != nil {
				p.t.Error(err)
				break
			}
		}
	}
	p.stop()
	recording := p.recorder.Recording(history)
	events, readings := checker.EV(recording), checker.BS(recording, slack)
	if err := errors.Join(events.Err(), readings.Err()); err != nil || events.Duplicates > 0 {
		p.t.Errorf("%v; %d duplicates\n%s", err, events.Duplicates, keep(p.t, recording))
	}
	p.t.Logf("%d changes, %d readings", len(history), readings.Checked)
}

// delays has, for each reader of a change, how long it took: from before the call, and from its
// answer. The latter may be negative.
type delays map[string]*delay

type delay struct{ call, answer []time.Duration }

func (d delays) add(who string, c change, seen time.Duration) {
	if d[who] == nil {
		d[who] = &delay{}
	}
	d[who].call = append(d[who].call, seen-c.asked)
	d[who].answer = append(d[who].answer, seen-c.answered)
}

// String is a table.
func (d delays) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-8s %5s   %-36s %s\n", "", "n", "from the answer: p50 p90 p99 max", "from the call: p50 p90 p99 max")
	for _, who := range []string{"reads", "stream", "last", "queue"} {
		if one, ok := d[who]; ok {
			fmt.Fprintf(&text, "%-8s %5d   %-36s %s\n", who, len(one.answer), distribution(one.answer), distribution(one.call))
		}
	}
	return text.String()
}

func distribution(all []time.Duration) string {
	var parts []string
	for _, q := range []float64{0.5, 0.9, 0.99, 1} {
		parts = append(parts, fmt.Sprintf("%.1f", float64(quantile(all, q))/float64(time.Millisecond)))
	}
	return strings.Join(parts, " ") + " ms"
}

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(float64(len(sorted))*q+0.999999)-1, 0)]
}

// worst is the longest of all.
func (d delays) worst() (longest time.Duration) {
	for _, one := range d {
		longest = max(longest, slices.MaxFunc(one.answer, cmp.Compare))
	}
	return longest
}
