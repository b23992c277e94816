package hub_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
)

const (
	jobs leadership.Election = "jobs"
	poll                     = view.Poll
)

var errStore = errors.New("a planted fault")

// cluster is a store that several hubs stand on. Nothing is published but by the test.
type cluster struct {
	t       *testing.T
	store   *memory.Store
	service *service.Service
	changes int

	mu  sync.Mutex
	log map[leadership.Election][]leadership.Event // all that was committed
}

// inCluster runs a test in a bubble.
func inCluster(t *testing.T, test func(t *testing.T, w *cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		test(t, newCluster(t, memory.Config{}))
	})
}

func newCluster(t *testing.T, c memory.Config) *cluster {
	w := &cluster{t: t, store: memory.New(c), log: make(map[leadership.Election][]leadership.Event)}
	w.service = service.New(w.store, w)
	return w
}

// Publish implements service.Publisher: it remembers what was committed.
func (w *cluster) Publish(events ...leadership.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		w.log[e.Election] = append(w.log[e.Election], e)
	}
}

// change makes n changes to the election, and returns their events.
func (w *cluster) change(e leadership.Election, n int) []leadership.Event {
	w.t.Helper()
	for range n {
		w.changes++
		r := leadership.Configure{Election: e}
		r.Config.LeaseDuration = time.Second + time.Duration(w.changes)*time.Millisecond
		_, err := w.service.Do(context.Background(), r)
		require.NoError(w.t, err)
	}
	events := w.history(e, 0)
	return events[len(events)-n:]
}

// history is what was committed after a revision.
func (w *cluster) history(e leadership.Election, after leadership.Revision) []leadership.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.log[e]
	return all[min(int(after), len(all)):]
}

// instance is a hub, and what it asks the store.
type instance struct {
	*hub.Hub
	*asked
}

// hub returns a hub that runs until the test ends.
func (w *cluster) hub(live bool) *instance { return runs(w.t, service.New(w.store), live) }

// runs returns such a hub on any history.
func runs(t *testing.T, store hub.Store, live bool) *instance {
	a := &asked{Store: store}
	i := &instance{newHub(t, hub.Config{Store: a, Live: live}), a}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() { i.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return i
}

// newHub returns a hub whose clock is that of the test's bubble, unless it has one.
func newHub(t testing.TB, c hub.Config) *hub.Hub {
	t.Helper()
	start := time.Now()
	if c.Now == nil {
		c.Now = func() time.Duration { return time.Since(start) }
	}
	h, err := hub.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		h.Close(errTestOver)
		h.WaitReads()
	})
	return h
}

var errTestOver = errors.New("the test is over")

// listener is what a line is: woken when there is news of an election.
type listener struct {
	hub      *instance
	election *view.Election
	c        chan struct{}
}

func (i *instance) listen(e leadership.Election) *listener {
	l := &listener{hub: i, c: make(chan struct{}, 1)}
	i.View(func(v *view.View, _ time.Duration) { l.election = v.Wait(e, l.c) })
	return l
}

func (l *listener) C() <-chan struct{} { return l.c }

// newest is the newest revision that is known of.
func (l *listener) newest() (r leadership.Revision) {
	l.hub.View(func(v *view.View, _ time.Duration) { r = v.Newest(l.election.Name()) })
	return r
}

func (l *listener) Close() {
	l.hub.View(func(v *view.View, _ time.Duration) { v.Unwait(l.election, l.c) })
}

// listened reports whether the election has a listener or a watch.
func (i *instance) listened(e leadership.Election) (yes bool) {
	i.View(func(v *view.View, _ time.Duration) { yes = v.Listened(e) })
	return yes
}

// asked is a history that counts how often it is read, and that fails or waits as told.
type asked struct {
	hub.Store

	takes time.Duration // how long the way back of an answer is

	mu     sync.Mutex
	under  int           // reads that are under way
	most   int           // of those at the same time
	events int           // reads of one election
	since  int           // reads of all
	now    int           // reads of the clock
	fails  func() error  // nil for never
	gate   chan struct{} // reads wait until it is closed, once they know the answer; nil for not at all
}

func (a *asked) Events(ctx context.Context, r leadership.EventsRequest) ([]leadership.Event, error) {
	return answer(ctx, a, &a.events, func() ([]leadership.Event, error) { return a.Store.Events(ctx, r) })
}

func (a *asked) Since(ctx context.Context, at time.Time) (rule.Recent, error) {
	return answer(ctx, a, &a.since, func() (rule.Recent, error) { return a.Store.Since(ctx, at) })
}

func (a *asked) Now(ctx context.Context) (time.Time, error) {
	return answer(ctx, a, &a.now, func() (time.Time, error) { return a.Store.Now(ctx) })
}

func answer[T any](ctx context.Context, a *asked, count *int, read func() (T, error)) (found T, err error) {
	a.mu.Lock()
	*count++
	a.under++
	a.most = max(a.most, a.under)
	fails, gate := a.fails, a.gate
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.under--
	}()
	if fails != nil {
		err = fails()
	}
	if err == nil {
		found, err = read()
	}
	sleep(ctx, a.takes)
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
	return found, cmp.Or(ctx.Err(), err)
}

// set changes how the history answers.
func (a *asked) set(fails func() error, gate chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails, a.gate = fails, gate
}

// away is a store that cannot be reached.
func away() error { return fmt.Errorf("%w: %w", leadership.StoreUnavailable, errStore) }

// reads returns how often the history was read since it was last asked for.
func (a *asked) reads() (events, since, now int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	events, since, now = a.events, a.since, a.now
	a.events, a.since, a.now = 0, 0, 0
	return events, since, now
}

// wants checks how often the history was read since the last check.
func (i *instance) wants(t *testing.T, events, since int, when string) {
	t.Helper()
	synctest.Wait()
	if e, s, _ := i.reads(); e != events || s != since {
		t.Errorf("%s: the history was read %d times for one election and %d times for all, want %d and %d", when, e, s, events, since)
	}
}

// reader reads a watch until the test ends.
type reader struct {
	t        *testing.T
	watch    *hub.Watch
	election leadership.Election
	from     leadership.Revision

	mu   sync.Mutex
	got  []leadership.Event
	errs []error
}

// watches lets a reader watch the election from a revision on. Errors it remembers, and reads on.
func (w *cluster) watches(h *instance, e leadership.Election, after leadership.Revision) *reader {
	r := &reader{t: w.t, watch: h.Watch(e, after), election: e, from: after}
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	reading.Go(func() { r.read(ctx) })
	w.t.Cleanup(func() {
		cancel()
		reading.Wait()
		r.watch.Close()
	})
	return r
}

func (r *reader) read(ctx context.Context) {
	for ctx.Err() == nil {
		events, err := r.watch.Next(ctx)
		r.mu.Lock()
		r.got = append(r.got, events...)
		if err != nil {
			r.errs = append(r.errs, err)
		}
		r.mu.Unlock()
		if err != nil {
			sleep(ctx, time.Second)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// wants checks what the reader has got so far: these revisions, and no error.
func (r *reader) wants(when string, revisions ...leadership.Revision) {
	r.t.Helper()
	synctest.Wait()
	r.has(when, revisions...)
}

// has is wants for a moment at which no goroutine runs.
func (r *reader) has(when string, revisions ...leadership.Revision) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := revisionsOf(r.got); !slices.Equal(got, revisions) || len(r.errs) > 0 {
		r.t.Errorf("%s: a watch from %d on got the revisions %v and the errors %v; want %v", when, r.from, got, r.errs, revisions)
	}
}

func revisionsOf(events []leadership.Event) []leadership.Revision {
	revisions := []leadership.Revision{}
	for _, e := range events {
		revisions = append(revisions, e.Revision)
	}
	return revisions
}

// follower reads a feed until it ends.
type follower struct {
	t    *testing.T
	feed *hub.Feed

	mu  sync.Mutex
	got []hub.Item
	err error // that ended the feed
}

// follows lets a follower read a feed from a cursor on.
func (w *cluster) follows(h *instance, prefix string, after hub.Cursor) *follower {
	w.t.Helper()
	feed, err := h.Feed(context.Background(), leadership.Selection{Prefix: prefix}, after)
	require.NoError(w.t, err)
	f := &follower{t: w.t, feed: feed}
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	reading.Go(func() { f.read(ctx) })
	w.t.Cleanup(func() {
		cancel()
		reading.Wait()
		f.feed.Close()
	})
	return f
}

func (f *follower) read(ctx context.Context) {
	for {
		items, err := f.feed.Next(ctx)
		f.mu.Lock()
		f.got = append(f.got, items...)
		f.err = err
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// items are what the follower has got so far.
func (f *follower) items() []hub.Item {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

// ended is what ended the feed, nil if it goes on.
func (f *follower) ended() error {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// wants checks what the follower has got so far, "jobs 1" and so on.
func (f *follower) wants(when string, events ...string) {
	f.t.Helper()
	var got []string
	for _, i := range f.items() {
		got = append(got, fmt.Sprintf("%s %d", i.Event.Election, i.Event.Revision))
	}
	if err := f.ended(); !slices.Equal(got, events) || err != nil {
		f.t.Errorf("%s: a feed got %q and the error %v, want %q", when, got, err, events)
	}
}
