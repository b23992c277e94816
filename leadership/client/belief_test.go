package client_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
)

var oneSeed = flag.Uint64("seed", 0, "play this one scenario of beliefs, a hundred times: the client's own jitter is not in the seed")

// term is a lease as its holder sees it.
type term struct {
	machine *machine
	lease   *client.Lease
	from    time.Duration    // when the holder got it
	first   time.Duration    // its deadline at that time
	token   leadership.Token // so, too
	stopped time.Duration    // when its leader resigned, zero until then; guarded by the testbed's mu
	denied  bool             // it has reported that it is over
}

// until returns when the holder stopped believing in the lease, or will stop if nothing happens: at
// the deadline, on the machine's clock, or when its leader resigned. This holds at every moment,
// whether or not the lease is asked.
func (t *term) until() time.Duration {
	until := t.machine.when(t.lease.Deadline())
	if t.stopped > 0 {
		until = min(until, t.stopped)
	}
	return until
}

// hasStopped reports whether its leader has resigned before now.
func (t *term) hasStopped(now time.Duration) bool {
	t.machine.testbed.mu.Lock()
	defer t.machine.testbed.mu.Unlock()
	return t.stopped > 0 && t.stopped < now
}

// agent campaigns, leads and resigns, again and again, or is killed.
func (m *machine) agent(ctx context.Context, c *client.Client) {
	for ctx.Err() == nil {
		lease, err := c.Campaign(ctx, contested)
		if err != nil {
			pass(ctx, time.Second)
			continue
		}
		m.runs()
		t := &term{machine: m, lease: lease, from: m.testbed.now(), first: lease.Deadline(), token: lease.Token()}
		m.testbed.tell("%s has token %d until %v", m.name, lease.Token(), t.until())
		m.testbed.mu.Lock()
		m.testbed.terms = append(m.testbed.terms, t)
		m.testbed.mu.Unlock()
		m.lead(ctx, t)
	}
}

// company leads an election that no other candidate wants, so that renewals go together.
func (m *machine) company(ctx context.Context, c *client.Client) {
	for ctx.Err() == nil {
		_ = c.Run(ctx, leadership.Election("of-"+m.name), func(ctx context.Context, _ *client.Lease) error {
			<-ctx.Done()
			return nil
		})
	}
}

func (m *machine) lead(ctx context.Context, t *term) {
	done := t.lease.Context().Done()
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(m.draw(1, 1, 8*time.Second)):
		if m.happens(1, 5) {
			m.testbed.tell("%s is killed", m.name)
			m.stop(m.testbed.over)
		}
	}
	m.runs()
	m.testbed.mu.Lock()
	t.stopped = max(m.testbed.now(), 1)
	m.testbed.mu.Unlock()
	m.testbed.tell("%s gives token %d back: %v", m.name, t.lease.Token(), context.Cause(t.lease.Context()))
	resign, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	_ = t.lease.Resign(resign)
}

// scenario runs the faults that the seed selects, for some time, and returns the testbed
// afterwards.
func scenario(t *testing.T, seed uint64, rates []int64) *testbed {
	w := newWorld(t)
	chance := rand.New(rand.NewPCG(seed, 0))
	ctx, cancel := context.WithCancel(t.Context())
	var agents sync.WaitGroup
	for _, name := range []leadership.CandidateID{"ann", "bob", "cy", "dee"}[:2+chance.IntN(3)] {
		m := w.machine(name, rates[chance.IntN(len(rates))])
		m.chance = rand.New(rand.NewPCG(seed, chance.Uint64()))
		c := m.client(client.Candidate{
			LeaseDuration: time.Duration(1+chance.IntN(8)) * time.Second,
			Margin:        []time.Duration{1, 1, 0}[chance.IntN(3)],
		})
		w.tell("%s has a clock that shows %d ms in a second", name, m.rate)
		agents.Go(func() { m.agent(ctx, c) })
		if chance.IntN(2) == 0 {
			agents.Go(func() { m.company(ctx, c) })
		}
	}
	end := time.Now().Add(time.Minute)
	operator, orders := w.machine("olga", 1000).client(client.Candidate{}), chance.IntN(2) == 0
	for asks := chance.IntN(3) > 0; time.Now().Before(end); {
		time.Sleep(time.Duration(chance.Int64N(int64(time.Second))))
		if asks {
			w.ask()
		}
		if orders && chance.IntN(6) == 0 {
			w.epoch(t.Context(), operator)
		}
	}
	w.calm.Store(true)
	close(w.over)
	cancel()
	agents.Wait()
	return w
}

// epoch begins a new epoch for the leader, if there is one.
func (w *testbed) epoch(ctx context.Context, operator *client.Client) {
	lease, err := operator.Get(ctx, contested)
	if err != nil || lease.State != leadership.Held {
		return
	}
	_, err = operator.Do(ctx, leadership.Order{Election: contested, Kind: leadership.OrderApprove, Token: lease.Token, NewEpoch: true, Actor: "olga", Reason: "checkpoint"})
	w.tell("a new epoch follows token %d of %s: %v", lease.Token, lease.LeaderID, err)
}

// ask asks every lease on a running machine whether it is valid.
func (w *testbed) ask() {
	w.mu.Lock()
	terms := slices.Clone(w.terms)
	w.mu.Unlock()
	var leader *term
	for _, t := range terms {
		if !t.machine.runsNow() {
			continue // its machine is stopped
		}
		now, deadline, valid := w.now(), t.lease.Deadline(), t.lease.Valid()
		switch {
		case valid && (t.denied || t.hasStopped(now)):
			w.errorf("%s: token %d is valid again", t.machine.name, t.lease.Token())
		case valid && t.machine.shows(now) >= deadline:
			w.errorf("%s: token %d is valid after its deadline", t.machine.name, t.lease.Token())
		case valid && leader != nil && safe(t) && safe(leader):
			w.errorf("%s and %s both say that they lead", t.machine.name, leader.machine.name)
		}
		t.denied = t.denied || !valid
		if valid {
			leader = t
		}
	}
}

// safe reports whether the machine's clock is no slower than the drift that is allowed for.
func safe(t *term) bool { return t.machine.rate >= 1000-1000/leadership.Drift }

func (w *testbed) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%v: %s", w.now(), fmt.Sprintf(format, args...))
}

// judged sums up the results of scenarios.
type judged struct {
	terms, extended         int // leases that were believed in, and leases whose deadline moved
	lost, expired, resigned int // how they ended
	overlaps                int
	epochs                  int // leases that went on under another token
	batches                 int // calls that renewed such a lease among others
	// shortest time from a deadline to the end of its lease; negative beyond the allowed drift
	closest time.Duration
}

func (j *judged) judge(w *testbed) {
	j.batches += int(w.batches.Load())
	// over before anything could ask
	terms := slices.DeleteFunc(slices.Clone(w.terms), func(t *term) bool { return t.until() <= t.from })
	slices.SortFunc(terms, func(a, b *term) int { return cmp.Compare(a.from, b.from) })
	for i, t := range terms {
		end := w.store.end(t.lease.Token()).Sub(w.start)
		if beyond := t.until() - end; beyond > t.mayBeBeyond() {
			w.errorf("%s believes in token %d until %v, and its lease has ended at %v, %v before: its clock allows for %v",
				t.machine.name, t.lease.Token(), t.until(), end, beyond, t.mayBeBeyond())
		}
		j.terms++
		if t.until() < t.stopped {
			j.closest = min(j.closest, end-t.until())
		}
		j.count(w, t)
		if i == 0 {
			continue
		}
		before := slices.MaxFunc(terms[:i], func(a, b *term) int { return cmp.Compare(a.until(), b.until()) })
		if t.from >= before.until() {
			continue
		}
		j.overlaps++
		if safe(before) && safe(t) {
			w.errorf("%s believes in token %d from %v, and %s believed in token %d until %v",
				t.machine.name, t.lease.Token(), t.from, before.machine.name, before.lease.Token(), before.until())
		}
	}
}

// count counts how the lease ended, and checks that it says so.
func (j *judged) count(w *testbed, t *term) {
	if t.lease.Deadline() > t.first {
		j.extended++
	}
	if t.lease.Token() > t.token {
		j.epochs++
	}
	switch cause := context.Cause(t.lease.Context()); {
	case errors.Is(cause, client.ErrLost):
		j.lost++
	case errors.Is(cause, client.ErrResigned):
		j.resigned++
	case errors.Is(cause, client.ErrExpired) && t.machine.when(t.lease.Deadline()) <= t.stopped:
		j.expired++
	default:
		w.errorf("token %d was given back at %v, could be believed in until %v, and ended because: %v",
			t.lease.Token(), t.stopped, t.until(), cause)
	}
}

// mayBeBeyond returns how long a lease may be believed in after its end: the time that its clock
// takes to show 99.9 % of its duration and of the time in line before it, less that time.
func (t *term) mayBeBeyond() time.Duration {
	const longest = 8*time.Second + patience/2 // in scenarios
	return max(0, longest*999/time.Duration(t.machine.rate)-longest)
}

func seeds(n int) (all []uint64) {
	if *oneSeed != 0 {
		return slices.Repeat([]uint64{*oneSeed}, 100)
	}
	first := rand.Uint64N(1 << 40)
	for i := range n {
		all = append(all, first+uint64(i))
	}
	return all
}

func play(t *testing.T, n int, rates ...int64) judged {
	j := judged{closest: time.Hour}
	for _, seed := range seeds(n) {
		synctest.Test(t, func(t *testing.T) {
			w := scenario(t, seed, rates)
			w.under.Wait()
			time.Sleep(time.Minute) // a batch of leases that are over may still be under way
			if j.judge(w); t.Failed() {
				t.Logf("this was go test ./leadership/client -run '%s' -seed %d\n%s", t.Name(), seed, strings.Join(w.transcript, "\n"))
			}
		})
		if t.Failed() {
			break
		}
	}
	return j
}

func TestBeliefsNeverOverlapWhileClocksAreWithinTheDrift(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays for a minute; make prove runs it")
	}
	t.Parallel()
	j := play(t, 300, 999, 999, 1000, 1001, 1100, 2000)
	t.Logf("%+v", j)
	if (j.closest > time.Millisecond || min(j.expired, j.resigned, j.extended, j.batches, j.epochs) == 0) && *oneSeed == 0 && !t.Failed() {
		t.Error("not enough has happened to say so")
	}
}

func TestBeliefsBeyondTheDriftOverlapByNoMoreThanIsPredicted(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays for a minute; make prove runs it")
	}
	t.Parallel()
	j := play(t, 100, 500, 900, 998, 1000)
	t.Logf("%+v", j)
	if j.overlaps == 0 && *oneSeed == 0 && !t.Failed() {
		t.Error("no beliefs overlap: nothing was tried")
	}
}

// A leader whose renewals are not answered believes in a lease of duration L, for which it waited
// in line for W, until its clock shows leadership.Deadline: slow(slow(W)+L) - margin after it
// asked, where slow(d) is d - d/1000 - 1 ns, and slow(0) is 0. A clock that shows r seconds per
// second shows that after
//
//	(slow(slow(W)+L) - margin) / r, rounded up to the nanosecond,
//
// and a candidate that asks at W+L is granted the lease then. The overlap is the difference, if
// positive. W is in whole milliseconds, as it is sent.
func TestTheOverlapOfAClockBeyondTheDriftIsThePredictedOne(t *testing.T) {
	t.Parallel()
	const lease, margin = time.Hour, 1
	for _, rate := range []int64{500, 900, 998, 999, 1000, 1001, 2000} {
		for _, waited := range []time.Duration{0, 3 * time.Second} {
			asked := waited + lease
			// it has not waited longer than its clock shows
			shown := slow(slow(min(waited, waited*time.Duration(rate)/1000))+lease) - margin
			until := (shown*1000 + time.Duration(rate) - 1) / time.Duration(rate)
			if beyond := rate < 999; beyond != (until > asked) {
				t.Errorf("at a rate of %d/1000 belief ends after %v, the lease after %v", rate, until, asked)
			}
			synctest.Test(t, func(t *testing.T) {
				overlap(t, rate, client.Candidate{LeaseDuration: lease, Margin: margin}, waited, until)
			})
		}
	}
}

func slow(d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return d - d/1000 - 1
}

// overlap compares with the prediction how long a candidate believes in its lease that has waited,
// and then gets no more replies.
func overlap(t *testing.T, rate int64, c client.Candidate, waited, until time.Duration) {
	w := newWorld(t)
	ann, bob, cy := w.machine("ann", rate), w.machine("bob", 1000), w.machine("cy", 1000)
	if waited > 0 {
		before := cy.take(client.Candidate{})
		time.AfterFunc(waited, func() { w.end(before) })
	}
	first, err := ann.client(c).Campaign(t.Context(), contested)
	require.NoError(t, err)
	ann.cut.Store(true)
	over := w.store.end(first.Token()).Sub(w.start)
	if over != waited+c.LeaseDuration {
		t.Errorf("the lease ends at %v, want %v after %v in line", over, c.LeaseDuration, waited)
	}
	w.at(min(over, until) - 1)
	if !first.Valid() {
		t.Errorf("at a rate of %d/1000 belief has ended by %v", rate, w.now())
	}
	w.at(over)
	second := bob.take(client.Candidate{})
	if first.Valid() != (until > over) || !second.Valid() {
		t.Errorf("at a rate of %d/1000, when the lease ends: %v believed in, and its successor %v", rate, first.Valid(), second.Valid())
	}
	if until > over {
		w.at(until - 1)
		if !first.Valid() || !second.Valid() {
			t.Errorf("at a rate of %d/1000 the overlap is less than %v", rate, until-over)
		}
	}
	w.at(until)
	if first.Valid() {
		t.Errorf("at a rate of %d/1000 the overlap is more than %v", rate, until-over)
	}
	t.Logf("at a rate of %d/1000, after %v in line, an overlap of %v", rate, waited, max(until-over, 0))
	w.end(first, second)
}

func TestLeaseIsInvalidRightAfterASuspend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ann := w.machine("ann", 1000)
		l := ann.take(client.Candidate{LeaseDuration: 10 * time.Second})
		w.at(time.Minute)
		calls, now := ann.calls.Load(), w.now()
		ann.suspend(l.Deadline() - ann.shows(now) - 1)
		assert.True(t, l.Valid(), "the lease is over before its deadline")
		ann.suspend(1)
		if l.Valid() || l.Remaining() != 0 || l.Context().Err() == nil {
			t.Error("the lease is valid after a suspend that was longer")
		}
		if ann.calls.Load() != calls || w.now() != now {
			t.Error("that took a call, or time")
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, client.ErrExpired) {
			t.Errorf("it ended because: %v", cause)
		}
		w.end(l)
	})
}

func TestSuspendEndsTheContextWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ann := w.machine("ann", 1000)
		l := ann.take(client.Candidate{LeaseDuration: time.Hour})
		done := l.Context().Done()
		w.at(time.Minute)
		ann.suspend(time.Hour)
		resumed := w.now()
		<-done
		if late := w.now() - resumed; late > time.Second {
			t.Errorf("%v after the machine was resumed", late)
		}
		w.end(l)
	})
}

func TestLeaseIsInvalidRightAfterAStop(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			ann := w.machine("ann", 1000)
			l := ann.take(client.Candidate{LeaseDuration: 10 * time.Second})
			w.at(time.Minute)
			goesOn := make(chan struct{})
			stopped := make(chan struct{})
			go func() { <-ann.on; close(stopped); <-goesOn; ann.on <- struct{}{} }()
			<-stopped
			answer := make(chan bool)
			go func() { ann.runs(); answer <- l.Valid() }()
			time.Sleep(12 * time.Second)
			close(goesOn)
			if <-answer {
				t.Error("the leader believes in a lease that has ended while it was stopped")
			}
			w.end(l)
		})
	}
}

func TestRenewalAnsweredAfterTheDeadlineDoesNotReviveTheLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		answered time.Duration // answer to the first renewal, which is sent after about 3 s
		asked    bool          // whether the lease is asked before that
		counts   bool
	}{
		{"in time", 8500 * time.Millisecond, false, true},
		{"late, not asked before", 9500 * time.Millisecond, false, false},
		{"late, and asked before", 9500 * time.Millisecond, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			ann := w.machine("ann", 1000)
			ann.serve = func(r *http.Request) (*http.Response, error) {
				reply, err := ann.deliver(r)
				if strings.HasSuffix(r.URL.Path, ":renew") && w.now() < c.answered {
					// even past the timeout: the machine was suspended with the reply in its
					// buffers
					w.at(c.answered)
				}
				return reply, err
			}
			l := ann.take(client.Candidate{LeaseDuration: 10 * time.Second})
			before := l.Deadline()
			w.at(c.answered - 1)
			if c.asked && l.Valid() {
				t.Errorf("%s: the lease is valid after its deadline", c.name)
			}
			w.at(c.answered)
			synctest.Wait()
			if l.Valid() != c.counts || (l.Deadline() > before) != c.counts {
				t.Errorf("%s: valid is %v, the deadline was %v and is %v", c.name, l.Valid(), before, l.Deadline())
			}
			if end := w.store.end(l.Token()).Sub(w.start); end <= w.now() {
				t.Errorf("%s: the store has not renewed the lease, which would end at %v", c.name, end)
			}
			if cause := context.Cause(l.Context()); !c.counts && !errors.Is(cause, client.ErrExpired) {
				t.Errorf("%s: it ended because: %v", c.name, cause)
			}
			w.end(l)
		})
	}
}
