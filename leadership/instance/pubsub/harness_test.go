package pubsub_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/instance/pubsub"
)

// patience is for how long a test waits for what has to happen.
const patience = 40 * time.Second

// onBoth runs a test against the library's fake and against the emulator.
func onBoth(t *testing.T, test func(*testing.T, *service)) {
	t.Parallel()
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		test(t, newFake(t))
	})
	t.Run("emulator", func(t *testing.T) {
		t.Parallel()
		test(t, newService(t, emulators.PubSub(t)))
	})
}

// service is a Pub/Sub emulator with a project of the test's own, and direct access to it.
type service struct {
	addr, project, topic string
	topics               *apiv1.TopicAdminClient
	subscriptions        *apiv1.SubscriptionAdminClient
	fake                 *pstest.Server // nil if this is the emulator
}

func newFake(tb testing.TB, options ...pstest.ServerReactorOption) *service {
	tb.Helper()
	server := pstest.NewServer(options...)
	tb.Cleanup(func() { server.Close() })
	s := newService(tb, server.Addr)
	s.fake = server
	return s
}

func newService(tb testing.TB, addr string) *service {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	require.NoError(tb, err)
	tb.Cleanup(func() { conn.Close() })
	s := &service{addr: addr, project: "projects/" + emulators.Name(tb)}
	s.topic = s.project + "/topics/regent"
	if s.topics, err = apiv1.NewTopicAdminClient(tb.Context(), option.WithGRPCConn(conn)); err != nil {
		tb.Fatal(err)
	}
	if s.subscriptions, err = apiv1.NewSubscriptionAdminClient(tb.Context(), option.WithGRPCConn(conn)); err != nil {
		tb.Fatal(err)
	}
	return s
}

// open returns a bus of one instance.
func (s *service) open(tb testing.TB, change ...func(*pubsub.Config)) *pubsub.Bus {
	tb.Helper()
	c := pubsub.Config{Topic: s.topic, Instance: "test", Emulator: s.addr, Probe: 2 * time.Second}
	for _, f := range change {
		f(&c)
	}
	b, err := pubsub.Open(tb.Context(), c)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NoError(tb, b.Close())
	})
	return b
}

func dialOption(o grpc.DialOption) func(*pubsub.Config) {
	return func(c *pubsub.Config) { c.Options = append(c.Options, option.WithGRPCDialOption(o)) }
}

func (s *service) createTopic(tb testing.TB) {
	tb.Helper()
	_, err := s.topics.CreateTopic(tb.Context(), &pubsubpb.Topic{Name: s.topic})
	require.NoError(tb, err)
}

func (s *service) deleteTopic(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.topics.DeleteTopic(tb.Context(), &pubsubpb.DeleteTopicRequest{Topic: s.topic}))
}

// subscribe creates a subscription of a foreign hand.
func (s *service) subscribe(tb testing.TB, id string, labels map[string]string) string {
	tb.Helper()
	return s.subscribeTo(tb, s.topic, id, labels)
}

func (s *service) subscribeTo(tb testing.TB, topic, id string, labels map[string]string) string {
	tb.Helper()
	sub := &pubsubpb.Subscription{Name: s.project + "/subscriptions/" + id, Topic: topic, Labels: labels, EnableMessageOrdering: true, AckDeadlineSeconds: 10}
	_, err := s.subscriptions.CreateSubscription(tb.Context(), sub)
	require.NoError(tb, err)
	return sub.Name
}

// subscribed are the subscriptions that there are, by name.
func (s *service) subscribed(tb testing.TB) map[string]*pubsubpb.Subscription {
	tb.Helper()
	found := map[string]*pubsubpb.Subscription{}
	for sub, err := range s.subscriptions.ListSubscriptions(context.WithoutCancel(tb.Context()), &pubsubpb.ListSubscriptionsRequest{Project: s.project}).All() {
		require.NoError(tb, err)
		found[sub.Name] = sub
	}
	return found
}

// own is the one subscription that there is.
func (s *service) own(tb testing.TB) *pubsubpb.Subscription {
	tb.Helper()
	found := s.subscribed(tb)
	if len(found) != 1 {
		tb.Fatalf("there are %d subscriptions, not 1: %v", len(found), found)
	}
	for _, sub := range found {
		return sub
	}
	panic("unreachable")
}

// listener is what an instance has heard.
type listener struct {
	mu      sync.Mutex
	events  []leadership.Event
	lives   []bool
	changed chan struct{} // closed at the next change
	stop    func() error  // ends Run, and returns its error
}

// listen runs the bus until the test, or stop, ends it.
func listen(tb testing.TB, b *pubsub.Bus) *listener {
	tb.Helper()
	l := &listener{changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, l.hear, l.live) }()
	l.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	tb.Cleanup(func() { l.stop() })
	return l
}

// listenLive is listen, and waits until hearing has begun.
func listenLive(tb testing.TB, b *pubsub.Bus) *listener {
	tb.Helper()
	l := listen(tb, b)
	l.awaitLives(tb, true)
	return l
}

func (l *listener) hear(e leadership.Event) {
	l.change(func() { l.events = append(l.events, e) })
}

func (l *listener) live(live bool) {
	l.change(func() { l.lives = append(l.lives, live) })
}

func (l *listener) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until what was heard satisfies enough.
func (l *listener) await(tb testing.TB, what string, enough func() bool) {
	tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		l.mu.Lock()
		done, changed := enough(), l.changed
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			l.mu.Lock()
			defer l.mu.Unlock()
			tb.Fatalf("waited in vain for %s; live was %v, and %d events were heard", what, l.lives, len(l.events))
		}
	}
}

// awaitLives waits until live has been told that, at the beginning.
func (l *listener) awaitLives(tb testing.TB, want ...bool) {
	tb.Helper()
	l.await(tb, fmt.Sprintf("live%v", want), func() bool { return len(l.lives) >= len(want) })
	if got := l.told(); !slices.Equal(got[:len(want)], want) {
		tb.Fatalf("live was told %v, not %v", got, want)
	}
}

// awaitEvents waits until each of the events was heard, and returns all that were.
func (l *listener) awaitEvents(tb testing.TB, want []leadership.Event) []leadership.Event {
	tb.Helper()
	missing := map[leadership.Event]bool{}
	for _, e := range want {
		missing[e] = true
	}
	seen := 0
	l.await(tb, fmt.Sprintf("%d events", len(want)), func() bool {
		for _, e := range l.events[seen:] {
			delete(missing, e)
		}
		seen = len(l.events)
		return len(missing) == 0
	})
	return l.heard()
}

func (l *listener) heard() []leadership.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

func (l *listener) told() []bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lives)
}

// firsts are the first deliveries of one election.
func firsts(events []leadership.Event, election leadership.Election) []leadership.Event {
	var found []leadership.Event
	for _, e := range events {
		if e.Election == election && !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	return found
}

// history makes the revisions from first to last of an election, in which ann and bob take turns.
func history(election leadership.Election, first, last leadership.Revision) []leadership.Event {
	var events []leadership.Event
	for r := first; r <= last; r++ {
		e := leadership.Event{
			Election: election, Revision: r, Type: leadership.EventAcquired, At: epoch.Add(time.Duration(r) * time.Millisecond),
			LeaderID: "ann", Token: leadership.Token(r+1) / 2, RequestID: fmt.Sprintf("req-%d", r),
		}
		if r%2 == 0 {
			e.Type, e.LeaderID, e.PreviousLeaderID = leadership.EventReleased, "", "bob@host:1"
		}
		events = append(events, e)
	}
	return events
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// publish publishes all, or fails the test.
func publish(tb testing.TB, b *pubsub.Bus, events []leadership.Event) {
	tb.Helper()
	if acked, err := b.Publish(tb.Context(), events); err != nil || acked != len(events) {
		tb.Fatalf("%d of %d events were acknowledged: %v", acked, len(events), err)
	}
}
