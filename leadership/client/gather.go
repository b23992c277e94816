package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

const (
	// maxGroup is how many leases go in one call; a server sends as many to its store at once.
	maxGroup = 100
	// aloneFor is how long each lease is renewed by itself after batches were refused, or have
	// failed again and again.
	aloneFor = 10 * time.Minute
)

// groups gathers the renewals of a client's leases into few calls. Each lease belongs to a group,
// and the leases of a group are renewed at common instants: the marks of the group's grid. A lease
// that is not on a mark yet is renewed up to a tenth of its duration early, once in each period,
// until it is. The first lease that is due takes along all others that are due; none waits. A lease
// that is alone, or whose last renewal has failed, is renewed by itself. See leadership/adr/0019.
type groups struct {
	mu  sync.Mutex // never held while logging, sending or reading the clock
	all []*group   // guarded by mu
}

// group is up to maxGroup leases, each of another election. Its fields are guarded by groups.mu.
type group struct {
	offset time.Duration // of the grid, random: processes that began together spread out
	leases map[leadership.Election]*keeper
	alone  time.Duration // until then, on the client's clock, there are no batches
	doubt  bool          // the last batch has failed
}

// plan is when a lease is renewed next, on the client's clock.
type plan struct {
	due  time.Duration // when it is renewed
	from time.Duration // from when on it may go with another lease that is due
	solo bool          // it is renewed by itself
}

// seat is the place of a lease in a batch.
type seat struct {
	*batch
	at int
}

// join adds a lease to the first group that has room for it. Call with mu held.
func (s *groups) join(k *keeper) {
	for _, g := range s.all {
		if g == k.group {
			return
		}
		if _, there := g.leases[k.request.Election]; !there && len(g.leases) < maxGroup {
			s.drop(k)
			k.group, g.leases[k.request.Election] = g, k
			return
		}
	}
	k.group = &group{offset: rand.N(leadership.MaxLeaseDuration), leases: map[leadership.Election]*keeper{k.request.Election: k}}
	s.all = append(s.all, k.group)
}

// drop removes a lease from its group. Call with mu held.
func (s *groups) drop(k *keeper) {
	if k.group != nil {
		delete(k.group.leases, k.request.Election)
	}
}

func (s *groups) leave(k *keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(k)
}

// sleep plans the next renewal of a lease that was renewed at sent, within pause. From now on a
// batch may take the lease. A lease of a later group moves to an earlier one with room, so that
// groups stay full when leases end.
func (s *groups) sleep(k *keeper, sent, pause time.Duration) plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.join(k)
	k.plan, k.asleep = k.group.plan(k.duration, sent, pause), true
	k.plan.solo = k.client.candidate.Statement
	return k.plan
}

// retry plans the renewal of a lease by itself.
func (s *groups) retry(k *keeper, due time.Duration) plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.plan, k.asleep = plan{due: due, solo: true}, true
	return k.plan
}

// rouse ends the sleep of a lease that is due, and returns its seat in a batch: the batch that has
// already taken it, or a new one with all leases that may go along. The seat has no batch if the
// lease is to be renewed by itself.
func (s *groups) rouse(k *keeper, now time.Duration) seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !k.asleep {
		return <-k.taken // sent with mu held
	}
	k.asleep = false
	if k.plan.solo || now < k.group.alone {
		return seat{}
	}
	with := []*keeper{k}
	for _, other := range k.group.leases {
		if other.asleep && !other.plan.solo && now >= other.plan.from {
			with = append(with, other)
		}
	}
	if len(with) == 1 {
		return seat{}
	}
	b := newBatch(with, now)
	for i, other := range with[1:] {
		other.asleep = false
		other.taken <- seat{b, i + 1}
	}
	return seat{b, 0}
}

// stop ends the sleep of a lease that is over. A batch that has taken it goes on for its others.
func (s *groups) stop(k *keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.asleep = false
	select {
	case s := <-k.taken: // sent with mu held
		s.leave()
	default:
	}
}

// plan returns when to renew next. A lone lease is renewed up to a tenth of the pause early, at
// random.
func (g *group) plan(duration, sent, pause time.Duration) plan {
	latest := sent + pause
	soon := plan{due: sent + early(pause), from: latest - min(duration/10, pause/2)}
	// servers say a third of a lease, less a tenth of that at most; so each pause has a mark
	step := duration / 1000 * 295
	if len(g.leases) == 1 || pause < step {
		return soon
	}
	if mark := g.mark(latest, step); mark >= soon.from {
		// leases that are still on their way to a mark must not draw this one away from it
		return plan{due: mark, from: max(mark-duration/100, soon.from)}
	}
	if mark := g.mark(soon.from+step/5, step/5); mark <= latest {
		soon.due = mark
	}
	return soon
}

// mark returns the last mark of the grid that is not after until.
func (g *group) mark(until, step time.Duration) time.Duration {
	past := (until - g.offset) % step
	if past < 0 {
		past += step
	}
	return until - past
}

// batch is one call that renews several leases.
type batch struct {
	client *Client
	group  *group
	all    []leadership.LeaseRequest

	waiting atomic.Int32 // leases that wait for the answer
	cancel  context.CancelFunc

	answered chan struct{} // closed when the fields below are set
	sent     time.Duration // read before the request left
	results  []leadership.Result
	err      error // of the batch as a whole
}

// newBatch starts the call for leases of a group, the first of which is due now. Call with
// groups.mu held.
func newBatch(leases []*keeper, now time.Duration) *batch {
	first := leases[0]
	b := &batch{client: first.client, group: first.group, answered: make(chan struct{})}
	for _, k := range leases {
		b.all = append(b.all, k.next(now))
	}
	b.waiting.Store(int32(len(leases)))
	ctx, cancel := context.WithCancel(context.WithoutCancel(first.ctx))
	b.cancel = cancel
	go b.run(ctx)
	return b
}

// run makes the call. It lasts no longer than a lease waits for its answer.
func (b *batch) run(ctx context.Context) {
	defer b.cancel()
	b.sent = b.client.clock()
	b.results, b.err = b.client.BatchRenew(ctx, b.all)
	b.client.groups.heed(b, b.client.clock())
	close(b.answered)
	if b.refused() {
		b.client.log.Warn("a batch of renewals was refused; renewing each lease by itself", "leases", len(b.all), "for", aloneFor, "reason", b.err)
	}
}

// heed decides, after a batch was answered, whether the group stops sending batches for a time.
func (s *groups) heed(b *batch, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := b.err != nil
	// an outage fails one batch: until it is over, each lease tries by itself
	if b.refused() || failed && b.group.doubt {
		b.group.alone = now + aloneFor
	}
	b.group.doubt = failed
}

// errRefused says that the lease has to be renewed by itself at once.
var errRefused = errors.New("the batch was refused")

// refused reports whether the server refuses this batch as a whole, for now or for good. That says
// nothing about the leases in it.
func (b *batch) refused() bool {
	return b.err != nil && (!transient(b.err) || errors.Is(b.err, wire.RateLimited))
}

// wait returns the answer to the lease at this place, and when its request left.
func (s seat) wait(ctx context.Context) (sent time.Duration, lease leadership.Lease, err error) {
	select {
	case <-s.answered:
	case <-ctx.Done():
		s.leave()
		return 0, leadership.Lease{}, fmt.Errorf("client: batch renew: %w: %w", leadership.OutcomeUnknown, ctx.Err())
	}
	switch {
	case s.refused():
		return s.sent, leadership.Lease{}, errRefused
	case s.err != nil:
		return s.sent, leadership.Lease{}, s.err
	}
	r := s.results[s.at]
	return s.sent, r.Lease, r.Err
}

// leave ends the lease's wait for the answer. When no lease waits any more, the call is cancelled.
func (s seat) leave() {
	if s.waiting.Add(-1) == 0 {
		s.cancel()
	}
}
