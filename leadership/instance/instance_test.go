package instance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

// took returns what was counted since the last call, without the looks into the outbox.
func took(c *storetest.Counter) string {
	n := c.Take()
	return fmt.Sprintf("%d reads, %d updates, %d renewals, %d histories", n["Get"], n["Update"], n["Renew"], n["Events"])
}

// bus carries events between instances in one process, until it is cut.
type bus struct {
	mu   sync.Mutex // guards all below
	cut  bool
	ears map[*ear]struct{}
}

type ear struct {
	hear func(leadership.Event)
	live func(bool)
}

var errCut = errors.New("the bus is cut")

func (b *bus) Publish(_ context.Context, events []leadership.Event) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut {
		return 0, errCut
	}
	for e := range b.ears {
		for _, event := range events {
			e.hear(event)
		}
	}
	return len(events), nil
}

func (b *bus) Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error {
	e := &ear{hear, live}
	b.mu.Lock()
	b.ears[e] = struct{}{}
	live(!b.cut)
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.ears, e)
	return nil
}

func (b *bus) setCut(cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut = cut
	for e := range b.ears {
		e.live(!cut)
	}
}

// cluster is two instances on one store, each with a count of its own.
type cluster struct {
	*testing.T
	bus    *bus
	a, b   *instance.Instance
	ca, cb storetest.Counter
	store  service.Store // not counted
	keys   map[leadership.CandidateID]leadership.Key
	lines  map[*instance.Instance]*line // from an instance to the bus
}

// line is how one instance reaches the bus.
type line struct {
	*bus
	mute atomic.Bool // it cannot publish
}

func (l *line) Publish(ctx context.Context, events []leadership.Event) (int, error) {
	if l.mute.Load() {
		return 0, errCut
	}
	return l.bus.Publish(ctx, events)
}

// inCluster runs a test on a cluster in a bubble.
func inCluster(t *testing.T, test func(*testing.T, *cluster)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newCluster(t)) })
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	store := memory.New(memory.Config{})
	c := &cluster{T: t, bus: &bus{ears: make(map[*ear]struct{})}, keys: make(map[leadership.CandidateID]leadership.Key), store: store}
	c.lines = make(map[*instance.Instance]*line)
	c.a = c.start("a", &storetest.Fake{Store: store, Around: c.ca.Count})
	c.b = c.start("b", &storetest.Fake{Store: store.Open(), Around: c.cb.Count})
	synctest.Wait()
	return c
}

// start starts an instance, which runs until the test ends.
func (c *cluster) start(name string, store service.Store) *instance.Instance {
	c.Helper()
	begin := time.Now()
	own := &line{bus: c.bus}
	i, err := instance.New(instance.Config{Store: store, Name: name, Bus: own, Now: func() time.Duration { return time.Since(begin) }})
	require.NoError(c, err)
	runs(c.T, i)
	c.lines[i] = own
	return i
}

// runs runs the instance until the test or end ends it.
func runs(t *testing.T, i *instance.Instance) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.Run(ctx)
	}()
	end = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(end)
	return end
}

// take forgets what was counted so far.
func (c *cluster) take() {
	synctest.Wait()
	c.ca.Take()
	c.cb.Take()
}

func (c *cluster) ask(candidate leadership.CandidateID, wait time.Duration) leadership.AcquireRequest {
	if _, ok := c.keys[candidate]; !ok {
		c.keys[candidate] = leadership.NewKey()
	}
	return leadership.AcquireRequest{Election: "jobs", CandidateID: candidate, Key: new(c.keys[candidate]), Wait: wait}
}

func (c *cluster) lead(on *instance.Instance, candidate leadership.CandidateID) leadership.LeaseRequest {
	c.Helper()
	g, err := on.Acquire(c.Context(), c.ask(candidate, 0))
	require.NoError(c, err)
	return leadership.LeaseRequest{Election: "jobs", CandidateID: candidate, Key: g.Key, Token: g.Token}
}

// renew keeps the lease for so long.
func (c *cluster) renew(on *instance.Instance, lease leadership.LeaseRequest, during time.Duration) {
	c.Helper()
	for begin := time.Now(); time.Since(begin) < during; {
		time.Sleep(10 * time.Second)
		_, err := on.Renew(c.Context(), lease)
		require.NoError(c, err)
	}
}

func (c *cluster) release(on *instance.Instance, lease leadership.LeaseRequest) {
	c.Helper()
	_, err := on.Do(c.Context(), leadership.Release{LeaseRequest: lease})
	require.NoError(c, err)
}

func (c *cluster) read(on *instance.Instance) leadership.Reading {
	c.Helper()
	r, err := on.Read(c.Context(), leadership.ReadRequest{Election: "jobs"})
	require.NoError(c, err)
	return r
}

func TestWhatOneInstanceChangesTheOtherShowsAtOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		lease := c.lead(c.a, "ann")
		c.read(c.b)
		c.take()
		for range 100 {
			c.read(c.b)
		}
		assert.Equal(t, "0 reads, 0 updates, 0 renewals, 0 histories", took(&c.cb), "100 cached reads")
		c.release(c.a, lease)
		synctest.Wait()
		if r := c.read(c.b); r.State != leadership.Vacant || r.Revision != 2 {
			t.Errorf("after the release the other instance shows %+v", r)
		}
	})
}

func TestAnIdleElectionCostsItsLeadersRenewalsAndNothingElse(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		lease := c.lead(c.a, "ann")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 100 {
			all.Go(func() { c.waitFor(ctx, c.a, leadership.CandidateID(fmt.Sprint("agent-", n))) })
			all.Go(func() { watch(ctx, c.a) })
			all.Go(func() { await(ctx, c.a) })
		}
		synctest.Wait()
		c.take()
		c.renew(c.a, lease, 2*time.Minute)
		assert.Equal(t, "0 reads, 0 updates, 12 renewals, 0 histories", took(&c.ca), "two minutes of 100 candidates, watchers and long polls")
		assert.Equal(t, "0 reads, 0 updates, 0 renewals, 0 histories", took(&c.cb), "two minutes of an unused instance")
		cancel()
		all.Wait()
	})
}

// waitFor stands in line until ctx ends.
func (c *cluster) waitFor(ctx context.Context, on *instance.Instance, candidate leadership.CandidateID) {
	r := leadership.AcquireRequest{Election: "jobs", CandidateID: candidate, Key: new(leadership.NewKey()), Wait: time.Minute}
	for ctx.Err() == nil {
		on.Acquire(ctx, r)
	}
}

func watch(ctx context.Context, on *instance.Instance) {
	_, w, err := on.Watch(ctx, leadership.WatchRequest{Election: "jobs"})
	if err != nil {
		return
	}
	defer w.Close()
	for err == nil {
		_, err = w.Next(ctx)
	}
}

// await polls, each time until there is news or half a minute is over.
func await(ctx context.Context, on *instance.Instance) {
	for known := leadership.Revision(1); ctx.Err() == nil; {
		r, news, err := on.Await(ctx, leadership.ReadRequest{Election: "jobs", Known: known}, 30*time.Second)
		if err == nil && news {
			known = r.Revision
		}
	}
}

func TestWithoutTheBusReadsStayWithinTheirBoundAndWatchersHearLater(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		lease := c.lead(c.a, "ann")
		c.read(c.b)
		_, w, err := c.b.Watch(t.Context(), leadership.WatchRequest{Election: "jobs"})
		require.NoError(t, err)
		defer w.Close()
		c.bus.setCut(true)
		if c.b.Degraded() == "" {
			t.Error("the instance does not say that it is degraded")
		}
		c.release(c.a, lease)
		released := time.Now()
		if r := c.read(c.b); r.State != leadership.Held || r.Bound != 5*time.Second || r.Age > r.Bound {
			t.Errorf("a cached read: %+v", r)
		}
		events, err := w.Next(t.Context())
		if err != nil || len(events) != 1 || events[0].Revision != 2 || time.Since(released) > 6*time.Second {
			t.Errorf("after %v the watch has %v, %v", time.Since(released), events, err)
		}
		time.Sleep(time.Until(released.Add(5*time.Second + time.Millisecond)))
		if r := c.read(c.b); r.State != leadership.Vacant {
			t.Errorf("beyond the bound: %+v", r)
		}
		c.bus.setCut(false)
		time.Sleep(time.Minute) // until what was left behind is announced
		assert.Empty(t, c.b.Degraded(), "healed, and")
	})
}

func TestAnInstanceSaysWhyItIsDegraded(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		says := func(i *instance.Instance, want ...instance.Trouble) {
			t.Helper()
			if got := i.Troubles(); !slices.Equal(got, want) || (i.Degraded() == "") != (len(want) == 0) {
				t.Errorf("troubles %v (%q), want %v", got, i.Degraded(), want)
			}
		}
		says(c.a)
		c.lines[c.a].mute.Store(true)
		c.lead(c.a, "ann")
		time.Sleep(time.Second)
		says(c.a, instance.CannotAnnounce)
		says(c.b)
		for c.b.Degraded() == "" {
			time.Sleep(time.Second)
		}
		says(c.b, instance.OthersCannotAnnounce)
		time.Sleep(5 * time.Minute)
		says(c.a, instance.CannotAnnounce) // still, though another has announced it
		says(c.b)                          // and nothing else was left behind
		c.bus.setCut(true)
		c.lead(c.a, "bob")
		time.Sleep(time.Minute)
		says(c.a, instance.CannotAnnounce, instance.CannotHear)
		says(c.b, instance.CannotAnnounce, instance.CannotHear)
		c.lines[c.a].mute.Store(false)
		c.bus.setCut(false)
		time.Sleep(time.Second)
		says(c.a)
		time.Sleep(time.Minute)
		says(c.a)
		says(c.b)
	})
}

func TestDrainAnswersWaitingCallers(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		lease := c.lead(c.a, "ann")
		gone := errors.New("gone")
		answers := make(chan error, 4)
		go func() {
			_, err := c.a.Acquire(t.Context(), c.ask("bob", time.Minute))
			answers <- err
		}()
		go func() {
			_, _, err := c.a.Await(t.Context(), leadership.ReadRequest{Election: "jobs", Known: 1}, time.Minute)
			answers <- err
		}()
		go func() {
			_, w, err := c.a.Watch(t.Context(), leadership.WatchRequest{Election: "jobs"})
			if err == nil {
				defer w.Close()
				_, err = w.Next(t.Context())
			}
			answers <- err
		}()
		go func() {
			// Bob, who waits, is one of the two.
			_, err := c.a.AwaitAcknowledgement(t.Context(), leadership.AcknowledgementRequest{Election: "jobs", Token: lease.Token, Need: 2, Wait: time.Minute})
			answers <- err
		}()
		synctest.Wait()
		c.a.Drain(t.Context(), gone)
		for range 4 {
			assert.ErrorIs(t, <-answers, gone)
		}
	})
}

// failing is a store whose calls of that method are answered by fail, unless it returns nil.
func failing(store service.Store, method string, fail func(leadership.Election) error) service.Store {
	return &storetest.Fake{Store: store, Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method == method {
			if err := fail(c.Election); err != nil {
				return err
			}
		}
		return next(ctx)
	}}
}

// alone returns the only instance on a store, which does not run.
func alone(t *testing.T, store service.Store) *instance.Instance {
	t.Helper()
	i, err := instance.New(instance.Config{Store: store, Name: "a", Alone: true})
	require.NoError(t, err)
	return i
}

func TestALongPollThatCannotKnowDoesNotSayThatNothingCame(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("the history: %w: %w", leadership.StoreUnavailable, context.DeadlineExceeded)
	i := alone(t, failing(memory.New(memory.Config{}), "Events", func(leadership.Election) error { return away }))
	_, err := i.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
	require.NoError(t, err)
	_, news, err := i.Await(t.Context(), leadership.ReadRequest{Election: "jobs", Known: 1}, time.Minute)
	if news || !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("news %t, %v; want that the store is away", news, err)
	}
}

func TestAStrongLongPollAsksTheStore(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Config{})
	i, elsewhere := alone(t, store), service.New(store.Open())
	key := leadership.NewKey()
	_, err := elsewhere.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: &key})
	require.NoError(t, err)
	_, w, err := i.Watch(t.Context(), leadership.WatchRequest{Election: "jobs"})
	require.NoError(t, err)
	defer w.Close()
	if _, err := w.Ready(t.Context()); err != nil { // from now on the instance believes to know
		t.Fatal(err)
	}
	_, err = elsewhere.Do(t.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: key, Token: 1}})
	require.NoError(t, err)
	r, news, err := i.Await(t.Context(), leadership.ReadRequest{Election: "jobs", Known: 1, Strong: true}, time.Minute)
	if err != nil || !news || r.Revision != 2 {
		t.Errorf("%+v, %t, %v; want the release", r, news, err)
	}
}

func TestATickGoesOnPastWhatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := asleep(t, failing(overdue(t, 0), "Update", func(e leadership.Election) error {
			if e == "b" {
				return leadership.RecordCorrupt
			}
			return nil
		}), &bus{cut: true})
		if done, err := i.Tick(t.Context()); done.Expired != 2 || !errors.Is(err, leadership.RecordCorrupt) || !errors.Is(err, errCut) {
			t.Errorf("%+v, %v; want the other two expired, and both failures", done, err)
		}
	})
}

func TestLoneInstanceServesWithoutTheTopicAndReportsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bus{cut: true, ears: make(map[*ear]struct{})}
		c := &cluster{T: t, bus: b, keys: make(map[leadership.CandidateID]leadership.Key)}
		store := memory.New(memory.Config{})
		i, err := instance.New(instance.Config{Store: store, Name: "a", Alone: true, Bus: b})
		require.NoError(t, err)
		runs(t, i)
		synctest.Wait()
		if i.Degraded() == "" {
			t.Error("nothing is said of the topic")
		}
		lease := c.lead(i, "ann")
		_, w, err := i.Watch(t.Context(), leadership.WatchRequest{Election: "jobs"})
		require.NoError(t, err)
		began := time.Now()
		c.release(i, lease)
		if events, err := w.Next(t.Context()); err != nil || len(events) != 1 || time.Since(began) > 0 {
			t.Errorf("after %v: %v, %v", time.Since(began), events, err)
		}
		w.Close()
		b.setCut(false)
		time.Sleep(time.Minute) // until what was left behind is announced
		assert.Empty(t, i.Degraded(), "healed, and")
	})
}

// The caller of a change gives up during its commit, and the instance is the only one, so that no
// bus brings the event.
func TestOthersHearOfAChangeWhoseCallerDidNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lose atomic.Bool
		i := alone(t, &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			err := next(ctx)
			if err == nil && c.Method == "Update" && lose.Swap(false) {
				return leadership.OutcomeUnknown
			}
			return err
		}})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		var running sync.WaitGroup
		running.Go(func() { i.Run(ctx) })
		defer running.Wait()
		defer stop()
		ann, err := i.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: time.Hour})
		require.NoError(t, err)
		_, watch, err := i.Watch(ctx, leadership.WatchRequest{Election: "jobs"})
		require.NoError(t, err)
		defer watch.Close()
		heard := func(want leadership.EventType) {
			if events, err := watch.Next(ctx); err != nil || events[0].Type != want {
				t.Errorf("one who watches hears %+v, %v; want %q", events, err, want)
			}
		}
		lose.Store(true)
		_, err = i.Do(ctx, leadership.Release{LeaseRequest: lease(ann)})
		require.ErrorIs(t, err, leadership.OutcomeUnknown)
		heard(leadership.EventReleased)
		ann, err = i.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: time.Hour})
		require.NoError(t, err)
		heard(leadership.EventAcquired)
		var waits sync.WaitGroup
		defer waits.Wait()
		waits.Go(func() {
			if g, err := i.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "bob", Wait: time.Minute}); err != nil || g.Token != 3 {
				t.Errorf("one who waits gets %+v, %v", g.Lease, err)
			}
		})
		synctest.Wait()
		lose.Store(true)
		_, err = i.Do(ctx, leadership.Release{LeaseRequest: lease(ann)})
		require.ErrorIs(t, err, leadership.OutcomeUnknown)
		heard(leadership.EventReleased)
	})
}

// Without a wait and without a key of the caller's own: no one else could release the lease.
func TestALeaseWhoseCallerIsGoneIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"granted": nil, "unknown": leadership.OutcomeUnknown} {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var first atomic.Bool
		i := alone(t, &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			err := next(ctx)
			if err == nil && c.Method == "Update" && !first.Swap(true) {
				leave()
				return outcome
			}
			return err
		}})
		if g, err := i.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: time.Hour}); err == nil {
			t.Errorf("%s: one that is gone got %+v", name, g.Lease)
		}
		if l, err := i.Get(t.Context(), "jobs"); err != nil || l.State != leadership.Vacant || l.Token != 1 {
			t.Errorf("%s: %+v, %v; want it free again", name, l, err)
		}
	}
}
