package relay_test

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

	"regent/leadership"
	"regent/leadership/relay"
	"regent/store/memory"
)

// world is one store and one topic, and the instances of the service on them. It lives in a bubble.
type world struct {
	t     *testing.T
	store *memory.Store
	topic *topic
	start time.Time
	log   *log
	made  atomic.Int64 // changes
}

func newWorld(t *testing.T) *world {
	store := memory.New(memory.Config{})
	return &world{t: t, store: store, topic: newTopic(t, store), start: time.Now(), log: &log{}}
}

// clock is the time that the bubble has.
func (w *world) clock() time.Duration { return time.Since(w.start) }

// log is what the relays had to say.
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

// instance is one process. All that it does to the world goes through its store and its topic.
type instance struct {
	leadership.Store
	world   *world
	relay   *relay.Relay
	service *leadership.Service

	// before is called before each call to the store, with its name, and says whether it fails. Set it before the instance starts.
	before func(ctx context.Context, call string) error
	// after is called after each call that was done, and may take its reply away.
	after func(ctx context.Context, call string) error
	// publish is what the topic does. nil: it accepts all and says so.
	publish func(ctx context.Context, events []leadership.Event) (acked int, err error)
	// tell is called in place of the relay's Publish.
	tell func(events ...leadership.Event)
	// hide keeps events out of what the store says of its outbox.
	hide func(leadership.Event) bool
	// suspended is for how long the machine was: its clock went on, and its timers did not.
	suspended atomic.Int64

	mu         sync.Mutex // guards all below
	calls      map[string]int
	publishing map[leadership.Election]bool
	stop       context.CancelFunc
	ended      chan struct{}
}

// instance returns one that is not started. What comes out of the topic it does not hear, unless the test arranges that.
func (w *world) instance(name leadership.CandidateID) *instance {
	i := &instance{Store: w.store, world: w, calls: make(map[string]int), publishing: make(map[leadership.Election]bool)}
	i.service = leadership.New(i, teller{i})
	i.relay = relay.New(relay.Config{
		Store: i, Service: i.service, Topic: topicOf{i}, Instance: name,
		Clock: func() time.Duration { return w.clock() + time.Duration(i.suspended.Load()) },
		Log:   slog.New(slog.NewTextHandler(w.log, nil)).With("instance", name),
	})
	return i
}

// run starts the instance. It ends with the test at the latest.
func (i *instance) run() *instance {
	ctx, stop := context.WithCancel(context.WithoutCancel(i.world.t.Context()))
	i.stop, i.ended = stop, make(chan struct{})
	i.world.t.Cleanup(i.end)
	go func() {
		defer close(i.ended)
		i.relay.Run(ctx)
	}()
	return i
}

// end ends the instance as SIGTERM does, and waits for it.
func (i *instance) end() {
	i.stop()
	<-i.ended
}

type teller struct{ *instance }

func (t teller) Publish(events ...leadership.Event) {
	if t.tell != nil {
		t.tell(events...)
		return
	}
	t.relay.Publish(events...)
}

// enter counts a call and asks whether it goes on.
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

func (i *instance) leave(ctx context.Context, call string) error {
	if i.after == nil {
		return nil
	}
	return i.after(ctx, call)
}

// count is how many calls of that name there were.
func (i *instance) count(call string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[call]
}

func (i *instance) Update(ctx context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) (leadership.Snapshot, error) {
	call := "update"
	if e == relay.Election {
		call = "update relay"
	}
	if err := i.enter(ctx, call); err != nil {
		return leadership.Snapshot{}, err
	}
	snap, err := i.Store.Update(context.WithoutCancel(ctx), e, decide)
	if lost := i.leave(ctx, call); lost != nil {
		return leadership.Snapshot{}, lost
	}
	return snap, err
}

func (i *instance) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	if err := i.enter(ctx, "renew"); err != nil {
		return []leadership.Renewed{{Err: err}}
	}
	return i.Store.Renew(ctx, leases)
}

func (i *instance) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	call := "read"
	if e == "" {
		call = "look"
	}
	if err := i.enter(ctx, call); err != nil {
		return nil, err
	}
	events, err := i.Store.Unannounced(context.WithoutCancel(ctx), e, limit)
	if i.hide != nil {
		events = slices.DeleteFunc(events, i.hide)
	}
	if lost := i.leave(ctx, call); lost != nil {
		return nil, lost
	}
	return events, err
}

func (i *instance) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	if err := i.enter(ctx, "mark"); err != nil {
		return err
	}
	if n := len(ids); n == 0 || n > leadership.MaxBatch {
		i.world.t.Errorf("%d events are marked in one call", n)
	}
	for _, id := range ids {
		if !i.world.topic.isOut(id) {
			i.world.t.Errorf("%s is marked and was not announced", name(id))
		}
	}
	err := i.Store.MarkAnnounced(context.WithoutCancel(ctx), ids)
	if lost := i.leave(ctx, "mark"); lost != nil {
		return lost
	}
	return err
}

// topicOf is the topic as one instance sees it.
type topicOf struct{ *instance }

func (i topicOf) Publish(ctx context.Context, events []leadership.Event) (acked int, err error) {
	e := events[0].Election
	i.enterPublish(e)
	defer i.leavePublish(e)
	if i.publish != nil {
		return i.publish(ctx, events)
	}
	return i.acceptAll(ctx, events)
}

func (i *instance) acceptAll(_ context.Context, events []leadership.Event) (acked int, err error) {
	for _, e := range events {
		i.world.topic.accept(e)
	}
	return len(events), nil
}

func (i *instance) enterPublish(e leadership.Election) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls["publish"]++
	if i.publishing[e] {
		i.world.t.Errorf("two publish events of %q at the same time", e)
	}
	i.publishing[e] = true
}

func (i *instance) leavePublish(e leadership.Election) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.publishing[e] = false
}

// change makes one event.
func (i *instance) change(e leadership.Election) {
	i.world.t.Helper()
	lease := leadership.MinLeaseDuration + time.Duration(i.world.made.Add(1))*time.Millisecond
	_, err := i.service.Configure(i.world.t.Context(), leadership.ConfigureRequest{
		Election: e, ConfigureCommand: leadership.ConfigureCommand{Config: leadership.Config{LeaseDuration: lease}},
	})
	if err != nil {
		i.world.t.Fatal(err)
	}
}

// changes makes n events.
func (i *instance) changes(e leadership.Election, n int) {
	i.world.t.Helper()
	for range n {
		i.change(e)
	}
}

// outbox is how many events wait to be announced.
func (w *world) outbox() int {
	w.t.Helper()
	events, err := w.store.Unannounced(w.t.Context(), "", 1_000_000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(events)
}

// settle lets everything go on until the outbox is empty and nobody relays.
func (w *world) settle(within time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(within); !w.settled(); w.wait(250 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("after %v %d events still wait to be announced", within, w.outbox())
		}
	}
}

func (w *world) settled() bool {
	events, err := w.store.Unannounced(w.t.Context(), "", 1)
	if err != nil {
		w.t.Fatal(err)
	}
	snap, err := w.store.Get(w.t.Context(), relay.Election)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(events) == 0 && !snap.Live()
}

// wait lets some time pass, and whatever happens in it.
func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var errPlanted = errors.New("a planted fault")

// inBubble runs a test in a world of its own whose time is not real.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}
