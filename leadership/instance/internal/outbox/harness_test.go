package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/outbox"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

// The promises of the package.
const (
	parallel  = 64
	markDelay = 100 * time.Millisecond
	interval  = 15 * time.Second
	bound     = 32 * time.Second // for another instance to announce what one has left behind
)

var errPlanted = errors.New("a planted fault")

// inBubble runs a test on a fleet of its own in fake time.
func inBubble(t *testing.T, test func(t *testing.T, f *fleet)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newFleet(t)) })
}

// fleet is one store and one topic, and instances on them.
type fleet struct {
	t     *testing.T
	store *memory.Store
	topic *topic
	start time.Time
	log   *log
	made  atomic.Int64 // changes
}

func newFleet(t *testing.T) *fleet {
	store := memory.New(memory.Config{})
	return &fleet{t: t, store: store, topic: newTopic(t, store), start: time.Now(), log: &log{}}
}

func (f *fleet) clock() time.Duration { return time.Since(f.start) }

// wait lets time pass, and all that happens in it.
func (f *fleet) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// waiting returns how many events are not marked as announced.
func (f *fleet) waiting() int {
	f.t.Helper()
	events, err := f.store.Unannounced(f.t.Context(), "", 1_000_000)
	require.NoError(f.t, err)
	return len(events)
}

// settle waits until the outbox is empty, and returns how long that took.
func (f *fleet) settle(within time.Duration) time.Duration {
	f.t.Helper()
	began := time.Now()
	for synctest.Wait(); f.waiting() > 0; f.wait(100 * time.Millisecond) {
		if time.Since(began) > within {
			f.t.Fatalf("after %v %d events still wait to be announced", within, f.waiting())
		}
	}
	return time.Since(began)
}

// log is what the instances logged.
type log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *log) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.all.Bytes(), []byte(text))
}

// instance is one process. Its store and its topic fail as its fields say.
type instance struct {
	*outbox.Outbox
	fleet   *fleet
	store   *storetest.Fake
	service *service.Service

	// Set these before the instance runs; nil is for no fault.
	before  func(ctx context.Context, call string) error // an error fails a call of the store
	after   func(ctx context.Context, call string) error // an error loses its reply
	publish func(ctx context.Context, events []leadership.Event) (acked int, err error)
	tell    func(events ...leadership.Event) // in place of Publish

	mu         sync.Mutex // guards all below
	calls      map[string]int
	publishing map[leadership.Election]bool
	found      []leadership.EventID
	stop       context.CancelFunc
	ended      chan struct{}
}

// instance returns one that does not run. It hears nothing unless the test arranges that.
func (f *fleet) instance(name string) *instance {
	i := &instance{fleet: f, calls: make(map[string]int), publishing: make(map[leadership.Election]bool)}
	i.store = &storetest.Fake{Store: f.store, Around: i.around}
	i.service = service.New(i.store, publisher{i})
	i.Outbox = outbox.New(outbox.Config{
		Store: i.store, Topic: topicOf{i}, Found: i.note, Clock: f.clock,
		Log: slog.New(slog.NewTextHandler(f.log, nil)).With("instance", name),
	})
	return i
}

func (f *fleet) running(n int) (all []*instance) {
	for k := range n {
		all = append(all, f.instance(fmt.Sprint(k)).run())
	}
	return all
}

// run starts the instance. The test ends it at the latest.
func (i *instance) run() *instance {
	ctx, stop := context.WithCancel(context.WithoutCancel(i.fleet.t.Context()))
	i.stop, i.ended = stop, make(chan struct{})
	i.fleet.t.Cleanup(i.end)
	go func() {
		defer close(i.ended)
		i.Run(ctx)
	}()
	return i
}

// end ends the instance as SIGTERM does, and waits for it.
func (i *instance) end() {
	i.stop()
	<-i.ended
}

type publisher struct{ *instance }

func (p publisher) Publish(events ...leadership.Event) {
	if p.tell != nil {
		p.tell(events...)
		return
	}
	p.Outbox.Publish(events...)
}

func (i *instance) note(events ...leadership.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range events {
		i.found = append(i.found, e.ID())
	}
}

// enter counts a call of the store and reports how it fails.
func (i *instance) enter(ctx context.Context, call string) error {
	i.mu.Lock()
	i.calls[call]++
	i.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", leadership.StoreUnavailable, err)
	}
	if i.before == nil {
		return nil
	}
	return i.before(ctx, call)
}

// count returns how many calls of that name there were.
func (i *instance) count(call string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[call]
}

// around names a call as the tests do, counts it, lets it fail, and checks the marks. A look is
// a read of the outbox without an election.
func (i *instance) around(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
	call := map[string]string{"Update": "update", "Unannounced": "read", "MarkAnnounced": "mark"}[c.Method]
	if call == "read" && c.Election == "" {
		call = "look"
	}
	if call == "" {
		return next(ctx)
	}
	if err := i.enter(ctx, call); err != nil {
		return err
	}
	if call == "mark" {
		i.checkMark(c.Marked)
	}
	err := next(context.WithoutCancel(ctx))
	if i.after != nil {
		if lost := i.after(ctx, call); lost != nil {
			return lost
		}
	}
	return err
}

func (i *instance) checkMark(ids []leadership.EventID) {
	if n := len(ids); n == 0 || n > leadership.MaxBatch {
		i.fleet.t.Errorf("%d events are marked in one call", n)
	}
	for _, id := range ids {
		if !i.fleet.topic.isOut(id) {
			i.fleet.t.Errorf("%s is marked and was not announced", name(id))
		}
	}
}

// topicOf is the topic as one instance reaches it.
type topicOf struct{ *instance }

func (i topicOf) Publish(ctx context.Context, events []leadership.Event) (acked int, err error) {
	i.beginPublish(events)
	defer i.endPublish(events[0].Election)
	if i.publish != nil {
		return i.publish(ctx, events)
	}
	return i.acceptAll(ctx, events)
}

func (i *instance) acceptAll(_ context.Context, events []leadership.Event) (acked int, err error) {
	for _, e := range events {
		i.fleet.topic.accept(e)
	}
	return len(events), nil
}

func (i *instance) beginPublish(events []leadership.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls["publish"]++
	e := events[0].Election
	assert.False(i.fleet.t, i.publishing[e], "%q is published twice at the same time", e)
	if n := len(events); n > 100 {
		i.fleet.t.Errorf("%d events are published in one call", n)
	}
	i.publishing[e] = true
}

func (i *instance) endPublish(e leadership.Election) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.publishing[e] = false
}

// change makes one event.
func (i *instance) change(e leadership.Election) {
	i.fleet.t.Helper()
	lease := leadership.MinLeaseDuration + time.Duration(i.fleet.made.Add(1))*time.Millisecond
	_, err := i.service.Do(i.fleet.t.Context(), leadership.Configure{
		Election: e, Config: leadership.Config{LeaseDuration: lease},
	})
	require.NoError(i.fleet.t, err)
}

func (i *instance) changes(e leadership.Election, n int) {
	i.fleet.t.Helper()
	for range n {
		i.change(e)
	}
}

// topic accepts copies of events. Of each it checks that it was committed, and that the event
// before it is out.
type topic struct {
	t     *testing.T
	store *memory.Store

	overtakes bool // an event may come before the one in front of it

	mu       sync.Mutex // guards all below
	accepted []leadership.Event
	out      map[leadership.EventID]time.Time // when it was accepted first
	hearers  []func(leadership.Event)
}

func newTopic(t *testing.T, store *memory.Store) *topic {
	return &topic{t: t, store: store, out: make(map[leadership.EventID]time.Time)}
}

// accept takes a copy and delivers it to all hearers.
func (p *topic) accept(e leadership.Event) {
	p.t.Helper()
	ctx := context.WithoutCancel(p.t.Context()) // the last copies come when the test is over
	if committed, err := p.store.Events(ctx, e.Election, e.Revision-1, 1); err != nil || len(committed) != 1 || committed[0] != e {
		p.t.Errorf("%s was announced and never committed: %v, %v", name(e.ID()), committed, err)
	}
	p.mu.Lock()
	before := leadership.EventID{Election: e.Election, Revision: e.Revision - 1}
	if p.out[e.ID()].IsZero() {
		if e.Revision > 1 && p.out[before].IsZero() && !p.overtakes {
			p.t.Errorf("%s overtook %s", name(e.ID()), name(before))
		}
		p.out[e.ID()] = time.Now()
	}
	p.accepted = append(p.accepted, e)
	hearers := slices.Clone(p.hearers)
	p.mu.Unlock()
	for _, hear := range hearers {
		hear(e)
	}
}

func (p *topic) isOut(id leadership.EventID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.out[id].IsZero()
}

// duplicates returns how many copies were accepted beyond the first.
func (p *topic) duplicates() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.accepted) - len(p.out)
}

// expect says which copies of an election must have been accepted, in order.
func (p *topic) expect(e leadership.Election, want ...leadership.Revision) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var got []leadership.Revision
	for _, a := range p.accepted {
		if a.Election == e {
			got = append(got, a.Revision)
		}
	}
	assert.Empty(p.t, cmp.Diff(want, got), "announced of %q (-want +got)", e)
}

// expectAll says that every revision of every election must be out, and the outbox empty. It
// returns how many events there are.
func (p *topic) expectAll() (events int) {
	p.t.Helper()
	listing, err := p.store.List(p.t.Context(), "", "", 1000)
	if err != nil || listing.Next != "" {
		p.t.Fatalf("list: %v, next %q", err, listing.Next)
	}
	for _, snap := range listing.Snapshots {
		for r := range snap.Record.Revision {
			if id := (leadership.EventID{Election: snap.Record.Election, Revision: r + 1}); !p.isOut(id) {
				p.t.Errorf("%s was never announced", name(id))
			}
		}
		events += int(snap.Record.Revision)
	}
	if left, err := p.store.Unannounced(p.t.Context(), "", 10); err != nil || len(left) > 0 {
		p.t.Errorf("the outbox still has %v, %v", left, err)
	}
	return events
}

func (p *topic) expectDuplicates(most int) {
	p.t.Helper()
	if n := p.duplicates(); n > most {
		p.t.Errorf("%d duplicates, want at most %d", n, most)
	}
}

func name(id leadership.EventID) string { return fmt.Sprintf("%s/%d", id.Election, id.Revision) }

func election(n int) leadership.Election { return leadership.Election(fmt.Sprintf("e%06d", n)) }

// seq is 1 to n.
func seq(n int) []leadership.Revision {
	var all []leadership.Revision
	for r := range n {
		all = append(all, leadership.Revision(r+1))
	}
	return all
}
