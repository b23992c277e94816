package hub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/store/memory"
)

// chaos is a store and some hubs, where for a while everything goes wrong that may.
type chaos struct {
	*cluster
	lossless bool        // every hub hears of every event, at some time, and stays
	over     atomic.Bool // nothing goes wrong any more

	hubs   [3]atomic.Pointer[instance]
	faults sync.WaitGroup // the goroutines that end with the storm
	users  sync.WaitGroup // those that end before the check, with ctx
	ctx    context.Context
}

const (
	rounds    = 2
	guard     = 50 * time.Millisecond // what the clocks of the store's servers differ by
	storm     = 5 * time.Minute
	elections = 6
)

// inChaos runs a test a few times: begin before the storm, and check when it has been over for a
// while.
func inChaos[T any](t *testing.T, lossless bool, begin func(*chaos) T, check func(*chaos, T)) {
	t.Parallel()
	for round := range rounds {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				c := &chaos{cluster: newCluster(t, memory.Config{Now: skewed}), lossless: lossless, ctx: ctx}
				for n := range c.hubs {
					c.crash(n)
				}
				c.faults.Go(c.commit)
				c.faults.Go(c.waver)
				begun := begin(c)
				time.Sleep(storm)
				c.calm()
				cancel()
				c.users.Wait()
				check(c, begun)
			})
		})
	}
}

// skewed is a store's clock of which each time is told by another server.
func skewed() time.Time { return time.Now().Add(rand.N(guard) - guard/2) }

func chance(percent int) bool { return rand.N(100) < percent }

// until says whether the storm goes on after a time of about that length.
func (c *chaos) until(mean time.Duration) bool {
	time.Sleep(rand.N(2 * mean))
	return !c.over.Load()
}

// crash replaces a hub by a new one; the old one never does anything again.
func (c *chaos) crash(n int) {
	h := c.hub(c.lossless || chance(50))
	h.Shrink(10)
	h.takes = rand.N(50 * time.Millisecond)
	h.set(func() error {
		if !c.over.Load() && chance(10) {
			return away()
		}
		return nil
	}, nil)
	if old := c.hubs[n].Swap(h); old != nil {
		old.Close(errCrash)
	}
}

var errCrash = errors.New("crashed")

// waver lets hubs crash, and be told that they are live, or not.
func (c *chaos) waver() {
	for !c.lossless && c.until(10*time.Second) {
		n := rand.N(len(c.hubs))
		if chance(30) {
			c.crash(n)
		} else {
			c.hubs[n].Load().SetLive(chance(70))
		}
	}
}

// commit makes changes, and lets the hubs hear of them.
func (c *chaos) commit() {
	for c.until(500 * time.Millisecond) {
		for _, event := range c.change(election(), 1+rand.N(3)) {
			for n := range c.hubs {
				c.announce(n, event)
			}
		}
	}
}

// announce delivers an event to a hub: at once, later, twice, or not at all. Now and then it
// delivers one that was never committed.
func (c *chaos) announce(n int, event leadership.Event) {
	times := rand.N(3)
	if c.lossless {
		times = 1 + rand.N(2)
	}
	for range times {
		var late time.Duration
		if chance(50) {
			late = rand.N(3 * time.Second)
		}
		time.AfterFunc(late, func() { c.hubs[n].Load().Publish(event) })
	}
	if chance(3) {
		madeUp := event
		madeUp.Revision += 1 << 30
		c.hubs[n].Load().Publish(madeUp)
	}
}

// calm ends the storm, and lets all that was under way arrive. If something was lost, the hubs are
// told so.
func (c *chaos) calm() {
	c.over.Store(true)
	c.faults.Wait()
	time.Sleep(10 * time.Second)
	for n := range c.hubs {
		if !c.lossless {
			c.hubs[n].Load().SetLive(true)
		}
	}
	time.Sleep(time.Minute)
}

// any is one of the hubs.
func (c *chaos) any() *instance { return c.hubs[rand.N(len(c.hubs))].Load() }

// election is one of those that are changed.
func election() leadership.Election {
	return leadership.Election(fmt.Sprintf("%c-%d", "ab"[rand.N(2)], rand.N(elections/2)))
}

// use calls do again and again, each time for a while; for long, if nothing is lost, so that each
// has to hear of everything where it is.
func (c *chaos) use(do func(context.Context)) {
	while := 20 * time.Second
	if c.lossless {
		while = 10 * storm
	}
	c.users.Go(func() {
		for c.ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(c.ctx, rand.N(while))
			do(ctx)
			cancel()
			sleep(c.ctx, rand.N(2*time.Second))
		}
	})
}

// expected says whether an error of a hub may be, in a storm.
func expected(err error) bool {
	return err == nil || errors.Is(err, errStore) || errors.Is(err, errCrash) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) || errors.Is(err, hub.ErrSlow)
}

// observer watches one election, on one hub after another.
type observer struct {
	*chaos
	election leadership.Election
	from     leadership.Revision
	got      []leadership.Event
}

func (o *observer) observe(ctx context.Context) {
	watch := o.any().Watch(o.election, o.from+leadership.Revision(len(o.got)))
	defer watch.Close()
	for ctx.Err() == nil {
		events, err := watch.Next(ctx)
		o.got = append(o.got, events...)
		if !expected(err) {
			o.t.Error(err)
		}
		if errors.Is(err, errCrash) {
			return
		}
		sleep(ctx, rand.N(3*time.Second))
	}
}

func TestNoWatchMissesAnything(t *testing.T) {
	inChaos(t, false, func(c *chaos) (all []*observer) {
		for n := range 20 {
			o := &observer{chaos: c, election: election(), from: leadership.Revision(n % 3 * 50)}
			c.use(o.observe)
			all = append(all, o)
		}
		return all
	}, func(c *chaos, all []*observer) {
		for _, o := range all {
			want := c.history(o.election, 0)
			want = want[min(int(o.from), len(want)):]
			if !slices.Equal(o.got, want) {
				c.t.Errorf("a watch of %s from %d on got %v, want %v", o.election, o.from, o.got, want)
			}
		}
	})
}

// witness follows all elections of a prefix, on one hub after another, and sometimes goes back to
// where it has been.
type witness struct {
	*chaos
	prefix string
	places []place // where it can go on
	fed    int     // feeds that it has read
	slow   int     // that ended because it was slow
}

// place is where a witness can go on: a cursor that it was given, and what it had seen then.
type place struct {
	cursor hub.Cursor
	seen   sight
}

// follow reads a feed for a while.
func (w *witness) follow(ctx context.Context) {
	p := place{seen: sight{}}
	if n := len(w.places); n > 0 {
		back := 1
		if chance(30) {
			back = 10
		}
		if chance(3) {
			back = n
		}
		p = w.places[n-1-rand.N(min(back, n))]
	}
	feed, err := w.any().Feed(ctx, leadership.Selection{Prefix: w.prefix}, p.cursor)
	if !expected(err) {
		w.t.Errorf("from %v: %v", p.cursor, err)
	}
	if err != nil {
		return
	}
	defer feed.Close()
	if p.cursor.IsZero() {
		p.seen = w.present()
	}
	w.fed++
	seen, told := maps.Clone(p.seen), sight{}
	for ctx.Err() == nil {
		w.places = append(w.places, place{feed.Cursor(), maps.Clone(seen)})
		items, err := feed.Next(ctx)
		for _, i := range items {
			w.check(i.Event, seen, told)
			if chance(20) {
				w.places = append(w.places, place{i.Cursor, maps.Clone(seen)})
			}
		}
		if !expected(err) {
			w.t.Error(err)
		}
		if errors.Is(err, hub.ErrSlow) {
			w.slow++
		}
		if err != nil {
			return
		}
		switch {
		case chance(1):
			sleep(w.ctx, 2*time.Minute) // and is too slow
			ctx = w.ctx
		case chance(10):
			sleep(ctx, rand.N(10*time.Second))
		}
	}
}

// check takes an event that a feed told of: nothing may be missing before it, and no feed tells of
// an event twice.
func (w *witness) check(e leadership.Event, seen, told sight) {
	if before, ok := told[e.Election]; ok && e.Revision != before+1 {
		w.t.Errorf("a feed told of revision %d of %s after %d", e.Revision, e.Election, before)
	}
	if e.Revision > seen[e.Election]+1 {
		w.t.Errorf("revision %d of %s came when no more than %d was seen", e.Revision, e.Election, seen[e.Election])
	}
	if committed := w.history(e.Election, e.Revision-1); len(committed) == 0 || committed[0] != e {
		w.t.Errorf("a feed told of %v, which was not committed", e)
	}
	if !strings.HasPrefix(string(e.Election), w.prefix) {
		w.t.Errorf("a feed of %q told of %s", w.prefix, e.Election)
	}
	told[e.Election] = e.Revision
	seen[e.Election] = max(seen[e.Election], e.Revision)
}

// present is the sight of a reader that has seen the present state of every election.
func (w *cluster) present() sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := sight{}
	for e, events := range w.log {
		s[e] = leadership.Revision(len(events))
	}
	return s
}

func TestNoFeedMissesAnything(t *testing.T) { followInChaos(t, false) }

func TestNoFeedMissesAnythingThatTheHubHears(t *testing.T) { followInChaos(t, true) }

func followInChaos(t *testing.T, lossless bool) {
	inChaos(t, lossless, func(c *chaos) (all []*witness) {
		for n := range 6 {
			o := &witness{chaos: c, prefix: []string{"", "a", "b-"}[n%3]}
			c.use(o.follow)
			all = append(all, o)
		}
		return all
	}, func(c *chaos, all []*witness) {
		for n, o := range all {
			c.t.Logf("witness %d of %q has read %d feeds, %d too slowly, and can go on from %d places", n, o.prefix, o.fed, o.slow, len(o.places))
			for range 20 {
				c.completes(c.any(), o.prefix, o.places[rand.N(len(o.places))])
			}
		}
	})
}

// completes checks that a reader that resumes from the place sees everything.
func (c *chaos) completes(h *instance, prefix string, p place) {
	c.t.Helper()
	f := c.follows(h, prefix, p.cursor)
	o := &witness{chaos: c, prefix: prefix}
	seen, told := maps.Clone(p.seen), sight{}
	for _, i := range f.items() {
		o.check(i.Event, seen, told)
	}
	for e, last := range c.present() {
		if strings.HasPrefix(string(e), prefix) && seen[e] != last {
			c.t.Errorf("who went on from %v saw revision %d of %s, want %d", p.cursor, seen[e], e, last)
		}
	}
	f.feed.Close()
}
