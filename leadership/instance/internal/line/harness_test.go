package line_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/line"
	"regent/leadership/instance/internal/view"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
)

const (
	jobs  = leadership.Election("jobs")
	lease = 12 * time.Second
)

// guard is that of a cloud store.
const guard = 50 * time.Millisecond

// guarded is a store whose servers' clocks may differ.
type guarded struct{ service.Store }

func (s guarded) Update(ctx context.Context, e leadership.Election, x rule.Expect,
	decide func(rule.Snapshot) (rule.Change, error),
) (rule.Snapshot, error) {
	snap, err := s.Store.Update(ctx, e, x, func(snap rule.Snapshot) (rule.Change, error) {
		snap.Guard = guard
		return decide(snap)
	})
	snap.Guard = guard
	return snap, err
}

func (s guarded) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	snap, err := s.Store.Get(ctx, e)
	snap.Guard = guard
	return snap, err
}

// cluster is one store and the instances on it.
type cluster struct {
	*testing.T
	store     service.Store
	delay     time.Duration // of events from one instance to another
	instances []*instance

	mu   sync.Mutex
	told time.Time // when the last event reaches the other instances; guarded by mu
}

// in runs a test in a bubble with one clock for the store and all instances.
func in(t *testing.T, test func(*testing.T, *cluster)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		test(t, &cluster{T: t, store: guarded{memory.New(memory.Config{Now: time.Now})}, delay: 5 * time.Millisecond})
	})
}

// alone is in with one instance.
func alone(t *testing.T, test func(*testing.T, *instance)) {
	in(t, func(t *testing.T, w *cluster) { test(t, w.instance()) })
}

// instance is one process that serves.
type instance struct {
	*cluster
	*service.Service
	hub       *hub.Hub
	queue     *line.Queue
	calls     atomic.Int64 // of the store, by the queue
	given     atomic.Int64 // leases that the queue gave back
	withdrawn atomic.Int64 // bids and challenges that it withdrew by calls of their own
	how       atomic.Pointer[hook]

	telling   atomic.Bool  // the hub, of the grants that the queue brings about
	suspended atomic.Int64 // for how long the process was
}

func newHub(t testing.TB, c hub.Config) *hub.Hub {
	t.Helper()
	h, err := hub.New(c)
	require.NoError(t, err)
	return h
}

// listened reports whether the view still has a listener for the election.
func (i *instance) listened(e leadership.Election) (yes bool) {
	i.hub.View(func(v *view.View, _ time.Duration) { yes = v.Listened(e) })
	return yes
}

// learns is what the API does with the store's answers.
func (i *instance) learns(l leadership.Lease) { i.hub.Learn(&l, view.Committed, i.hub.Now()) }

type acquire func(context.Context, leadership.AcquireRequest) (leadership.Grant, error)

// hook stands between the queue and the store.
type hook func(context.Context, leadership.AcquireRequest, acquire) (leadership.Grant, error)

// hooks puts a hook in the way of the attempts that come.
func (i *instance) hooks(h hook) {
	synctest.Wait()
	i.how.Store(&h)
}

// once is the hook for one attempt; those that follow are as ever.
func once(h hook) hook {
	var done atomic.Bool
	return func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
		if done.Swap(true) {
			return ask(ctx, r)
		}
		return h(ctx, r, ask)
	}
}

// instance starts one more, with what the test wants changed.
func (w *cluster) instance(change ...func(*line.Config)) *instance {
	i := &instance{cluster: w}
	start := time.Now()
	i.hub = newHub(w.T, hub.Config{
		Store: service.New(w.store), Live: true,
		Now: func() time.Duration { return time.Since(start) + time.Duration(i.suspended.Load()) },
	})
	i.Service = service.New(w.store, i)
	c := line.Config{
		Acquire: i.acquire,
		Do: func(ctx context.Context, c leadership.Command) (leadership.Lease, error) {
			if _, ok := c.(leadership.Release); ok {
				i.given.Add(1)
			} else {
				i.withdrawn.Add(1)
			}
			return i.Service.Do(ctx, c)
		},
		Hub: i.hub, Instance: uint32(len(w.instances) + 1),
	}
	for _, f := range change {
		f(&c)
	}
	i.queue = line.NewQueue(c)
	w.instances = append(w.instances, i)
	w.Cleanup(func() {
		assert.NoError(w, i.queue.Close(context.Background(), errTestOver))
	})
	return i
}

// latest is the jitter that puts everything off by as much as can be.
func latest(c *line.Config) {
	c.Jitter = func(limit time.Duration) time.Duration { return limit - 1 }
}

var errTestOver = errors.New("the test is over")

// Publish tells this instance at once and the others a little later.
func (i *instance) Publish(events ...leadership.Event) {
	i.hub.Publish(events...)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.told = time.Now().Add(max(i.delay, time.Until(i.told)+1)) // in order
	for _, other := range i.instances {
		if other != i {
			time.AfterFunc(time.Until(i.told), func() { other.hub.Publish(events...) })
		}
	}
}

func (i *instance) acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	i.calls.Add(1)
	if h := i.how.Load(); h != nil && *h != nil {
		return (*h)(ctx, r, i.ask)
	}
	return i.ask(ctx, r)
}

func (i *instance) ask(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	g, err := i.Service.Acquire(ctx, r)
	if err == nil && i.telling.Load() {
		i.learns(g.Lease)
	}
	return g, err
}

// called returns how often the queue has asked the store since it was asked last.
func (i *instance) called() int64 { return i.calls.Swap(0) }

// wants fails the test if the queue has asked the store more or less often than so since it was
// asked last.
func (i *instance) wants(calls int64, when string) {
	i.Helper()
	if got := i.called(); got != calls {
		i.Errorf("%s: the store was asked %d times, want %d", when, got, calls)
	}
}

// leads makes the candidate lead, through this instance and without the queue's doing.
func (i *instance) leads(c leadership.CandidateID) leadership.Grant {
	i.Helper()
	return i.leadsFor(c, lease)
}

func (i *instance) leadsFor(c leadership.CandidateID, d time.Duration) leadership.Grant {
	i.Helper()
	g, err := i.Service.Acquire(i.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: c, LeaseDuration: d})
	require.NoError(i, err)
	i.learns(g.Lease)
	return g
}

// renews keeps the lease, as the API would do it.
func (i *instance) renews(g leadership.Grant) {
	i.Helper()
	l, err := i.Renew(i.Context(), of(g))
	require.NoError(i, err)
	i.learns(l)
}

// releases ends the lease, as the API would do it.
func (i *instance) releases(g leadership.Grant) {
	i.Helper()
	l, err := i.Do(i.Context(), leadership.Release{LeaseRequest: of(g)})
	require.NoError(i, err)
	i.learns(l)
}

// locks sets the election's lock delay.
func (i *instance) locks(delay time.Duration) {
	i.Helper()
	_, err := i.Do(i.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{LockDelay: delay}})
	require.NoError(i, err)
}

// deletes deletes the election by force.
func (i *instance) deletes() leadership.Lease {
	i.Helper()
	l, err := i.Do(i.Context(), leadership.Delete{Election: jobs, Force: true})
	require.NoError(i, err)
	return l
}

// unlocks ends the wait for the election as an operator does that has read the refusal.
func (i *instance) unlocks() {
	i.Helper()
	r := leadership.Unlock{Election: jobs, Reason: "the host is gone", Actor: "olga"}
	_, err := i.Do(i.Context(), r)
	var refusal *leadership.Error
	if !errors.As(err, &refusal) {
		i.Fatalf("unlocked without an acknowledgement: %v", err)
	}
	_, r.Acknowledge, _ = strings.Cut(refusal.Detail, "acknowledge: ")
	_, err = i.Do(i.Context(), r)
	require.NoError(i, err)
}

func of(g leadership.Grant) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}
}

// request asks to lead, and to wait as long as can be.
func request(c leadership.CandidateID) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: jobs, CandidateID: c, LeaseDuration: lease, Wait: leadership.MaxWait}
}

// keyed is the request with a key of the candidate's own.
func keyed(r leadership.AcquireRequest) leadership.AcquireRequest {
	r.Key = new(leadership.NewKey())
	return r
}

// waiter is a call that waits.
type waiter struct {
	*instance
	candidate leadership.CandidateID
	began     time.Time
	cancel    context.CancelFunc
	done      chan struct{}
	ended     time.Time
	grant     leadership.Grant
	err       error
	panicked  any
}

// waits begins a call, and returns when it stands in line or is answered.
func (i *instance) waits(r leadership.AcquireRequest, as ...string) *waiter {
	w := i.begins(r, as...)
	synctest.Wait()
	return w
}

func (i *instance) begins(r leadership.AcquireRequest, as ...string) *waiter {
	ctx, cancel := context.WithCancel(i.Context())
	if len(as) > 0 {
		ctx = leadership.WithActor(ctx, as[0], as[1:]...)
	}
	w := &waiter{instance: i, candidate: r.CandidateID, began: time.Now(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer func() { w.panicked = recover() }()
		w.grant, w.err = i.queue.Acquire(ctx, r)
		w.ended = time.Now()
	}()
	return w
}

// answered says whether the call has ended.
func (w *waiter) answered() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// leads waits until the call is answered with a lease.
func (w *waiter) leads() leadership.Grant {
	w.Helper()
	<-w.done
	if w.err != nil || w.grant.LeaderID != w.candidate {
		w.Fatalf("%s got %+v, %v; want the lease", w.candidate, w.grant, w.err)
	}
	return w.grant
}

// refused waits until the call is answered with that error.
func (w *waiter) refused(want error) *leadership.Error {
	w.Helper()
	<-w.done
	if !errors.Is(w.err, want) {
		w.Fatalf("%s got %+v, %v; want %v", w.candidate, w.grant, w.err, want)
	}
	refusal, _ := errors.AsType[*leadership.Error](w.err)
	return refusal
}

// waiting fails the test if the call was answered.
func (w *waiter) waiting(when string) {
	w.Helper()
	if w.answered() {
		w.Fatalf("%s was answered %s: %+v, %v", w.candidate, when, w.grant, w.err)
	}
}

// after fails the test if the call did not take from least to most.
func (w *waiter) after(least, most time.Duration) {
	w.Helper()
	<-w.done
	if took := w.ended.Sub(w.began); took < least || took > most {
		w.Errorf("%s was answered after %v, want %v to %v", w.candidate, took, least, most)
	}
}

// slowly is a hook by which the answers that the store gave are kept on their way until release is
// called. sent is sent to by each.
func slowly() (h hook, sent chan struct{}, release func()) {
	sent = make(chan struct{}, 100)
	gate := make(chan struct{})
	return func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
		g, err := ask(ctx, r)
		sent <- struct{}{}
		<-gate
		return g, err
	}, sent, sync.OnceFunc(func() { close(gate) })
}

// held returns a hook that keeps attempts under way until release is called, and lets them go on
// then. begun is sent to by each.
func held() (h hook, begun chan struct{}, release func()) {
	begun = make(chan struct{}, 100)
	gate := make(chan struct{})
	return func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
		begun <- struct{}{}
		<-gate
		return ask(ctx, r)
	}, begun, sync.OnceFunc(func() { close(gate) })
}
