package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/leadership/wire"
	"regent/store/memory"
)

// past is a store with many former elections: of each 101, one has a leader, fifty were released
// and fifty deleted. It counts the pages that are read, and keeps none in memory.
type past struct {
	service.Store
	elections   int
	held, lists atomic.Int64
	revision    leadership.Revision // of each election
	beforeList  func(n int64)       // may block
}

func newPast(elections int) *past {
	return &past{Store: memory.New(memory.Config{}), elections: elections, revision: 2, beforeList: func(int64) {}}
}

func (p *past) name(n int) leadership.Election {
	return leadership.Election(fmt.Sprintf("job-%06d", n))
}

func (p *past) snapshot(n int) rule.Snapshot {
	now := time.Now()
	r := rule.Record{Election: p.name(n), Revision: p.revision, Token: 1, HeartbeatAt: now, AcquiredAt: now.Add(-time.Hour), LeaseDuration: time.Hour}
	switch {
	case n%101 == 0:
		r.LeaderID = "ann"
	case n%2 == 0:
		r.Deleted = true
	}
	return rule.Snapshot{Record: r, Now: now}
}

// page returns the elections after the given one, at intervals of step.
func (p *past) page(after leadership.Election, step, limit int) (l rule.Listing) {
	n := 0
	if after != "" {
		fmt.Sscanf(string(after), "job-%06d", &n)
		n += step
	}
	for ; n < p.elections && len(l.Snapshots) < limit; n += step {
		l.Snapshots = append(l.Snapshots, p.snapshot(n))
	}
	if n < p.elections {
		l.Next = l.Snapshots[limit-1].Record.Election
	}
	return l
}

func (p *past) Held(_ context.Context, after leadership.Election, limit int) (rule.Listing, error) {
	p.held.Add(1)
	return p.page(after, 101, limit), nil
}

func (p *past) List(ctx context.Context, _ string, after leadership.Election, limit int) (rule.Listing, error) {
	p.beforeList(p.lists.Add(1))
	if ctx.Err() != nil {
		return rule.Listing{}, leadership.StoreUnavailable
	}
	return p.page(after, 1, limit), nil
}

// pages returns the number of pages in the store's lists.
func (p *past) pages() int64 { return int64(p.elections / leadership.MaxPageSize) }

// counting reads a census, and counts the elections.
type counting struct {
	*instance.Census
	store       *past
	led, vacant int
	more        bool
}

func (p *past) instance(t *testing.T) *instance.Instance {
	inst, err := instance.New(instance.Config{Store: p, Alone: true})
	require.NoError(t, err)
	return inst
}

func (p *past) begin(t *testing.T, inst *instance.Instance) *counting {
	c, err := inst.Census(t.Context(), leadership.Selection{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &counting{Census: c, store: p, more: true}
}

// read reads at most the given number of pages.
func (c *counting) read(t *testing.T, pages int) {
	t.Helper()
	for ; c.more && pages > 0; pages-- {
		leases, more, err := c.Next(t.Context())
		require.NoError(t, err)
		c.more = more
		for _, l := range leases {
			switch {
			case l.Deleted:
				t.Fatalf("a deleted election: %+v", l)
			case l.State == leadership.Held && c.vacant > 0:
				t.Fatalf("an election with a leader after some that have none, or twice: %+v", l)
			case l.State == leadership.Held:
				c.led++
			default:
				c.vacant++
			}
		}
	}
}

func (c *counting) complete(t *testing.T) {
	t.Helper()
	if led := c.store.elections / 101; c.more || c.led != led || c.vacant != 50*led {
		t.Errorf("a census has %d elections with a leader and %d without, more %t; want %d and %d", c.led, c.vacant, c.more, led, 50*led)
	}
}

func TestALaterCallerReadsOnWhereTheCensusUnderWayIs(t *testing.T) {
	t.Parallel()
	store := newPast(30_300)
	inst := store.instance(t)
	first := store.begin(t, inst)
	first.read(t, 16)
	later := store.begin(t, inst)
	for first.more {
		later.read(t, 1)
		first.read(t, 1)
	}
	whole := store.lists.Load()
	later.read(t, 1000)
	first.complete(t)
	later.complete(t)
	if n := store.lists.Load(); whole > store.pages()+2 || n > store.pages()+20 {
		t.Errorf("%d pages were read until the first census was over, and %d for both; it has %d, and the other came after 15", whole, n, store.pages())
	}
	alone := store.begin(t, inst)
	alone.read(t, 1000)
	if alone.complete(t); store.lists.Load() < 2*store.pages() {
		t.Error("a census that began after the others is made of their pages")
	}
}

// A stream would miss changes between an older page and its own beginning.
func TestNoPageOfACensusIsOlderThanTheCensus(t *testing.T) {
	t.Parallel()
	store := newPast(30_300)
	inst := store.instance(t)
	first := store.begin(t, inst)
	first.read(t, 3)
	store.revision++
	later := store.begin(t, inst)
	for range 4 {
		leases, _, err := later.Next(t.Context())
		if err != nil || len(leases) == 0 || leases[0].Revision != store.revision {
			t.Fatalf("%d elections, %v, the first %+v; want revision %d, which was there before the census", len(leases), err, leases[:min(1, len(leases))], store.revision)
		}
	}
}

// A page that a caller has begun and given up is read by the others.
func TestACallerThatLeavesDoesNotBreakTheCensusOfOthers(t *testing.T) {
	t.Parallel()
	store := newPast(30_300)
	entered, leave := make(chan struct{}), make(chan struct{})
	store.beforeList = func(n int64) {
		if n == 1 {
			close(entered)
			<-leave
		}
	}
	inst := store.instance(t)
	leaver, stays := store.begin(t, inst), store.begin(t, inst)
	leaver.read(t, 1)
	stays.read(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { leaver.Next(ctx) })
	<-entered
	all.Go(func() { stays.read(t, 1000) })
	cancel()
	close(leave)
	all.Wait()
	stays.complete(t)
}

func TestAStreamOfAllElectionsBeginsAtOnceHoweverManyThereWere(t *testing.T) {
	store := newPast(20_200)
	half, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan struct{})
	store.beforeList = func(n int64) {
		<-first
		if n == store.pages()/2 {
			close(half)
			<-goOn
		}
	}
	l := newLiveOn(t, httpapi.Config{}, store.instance(t), nil)
	l.client = new(http.Client) // without the contract's checks, because the stream is long
	before := liveHeap()
	const callers = 3
	var streams []reader
	for range callers {
		streams = append(streams, l.stream("/v1/events"))
	}
	for _, s := range streams {
		s.want("snapshot", "", `"state":"held"`) // although the store has not answered for the others
	}
	if n := store.held.Load(); n > callers {
		t.Errorf("%d pages were read before the first byte of %d streams", n, callers)
	}
	close(first)
	var all sync.WaitGroup
	counts := make([]int, callers)
	for i, s := range streams {
		all.Go(func() {
			for counts[i] = 2; ; counts[i]++ {
				if e, ok := s.next(); !ok || e.name != "snapshot" {
					if e.name != "ready" || e.data != `{"elections":10200}` {
						t.Errorf("after %d snapshots came %+v", counts[i]-1, e)
					}
					return
				}
			}
		})
	}
	<-half
	if grown := int64(liveHeap()) - int64(before); grown > 6<<20 { // 100,000 former elections would take 30 MiB
		t.Errorf("%d streams that have read half of the elections take %d MiB", callers, grown>>20)
	}
	close(goOn)
	all.Wait()
	for _, n := range counts {
		if n != 10_201 {
			t.Errorf("a stream told of %d elections, want 10,200", n-1)
		}
	}
}

// A reader that was not told of all elections must begin again.
func TestAStreamThatEndsBeforeItIsReadyGivesNoCursor(t *testing.T) {
	t.Parallel()
	store := newPast(30_300)
	goOn := make(chan struct{})
	store.beforeList = func(int64) { <-goOn }
	l := newLiveOn(t, httpapi.Config{}, store.instance(t), nil)
	l.client = new(http.Client)
	s := l.stream("/v1/events")
	l.instance.Drain(t.Context(), wire.Draining)
	close(goOn)
	for {
		e, ok := s.next()
		if ok && e.name == "snapshot" && e.id == "" {
			continue
		}
		if !ok || e.name != "end" || e.id != "" || e.data != `{"reason":"draining"}` {
			t.Errorf("after the snapshots came %+v, %t; want an end without an id", e, ok)
		}
		return
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // pools keep their contents for one more collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
