package pubsub_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/instance/pubsub"
)

func TestEveryInstanceHearsEveryEventInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		a, b := s.open(t), s.open(t)
		listeners := []*listener{listenLive(t, a), listenLive(t, b)}
		elections := []leadership.Election{"reports", "backups", "a.b_c-9"}
		var all []leadership.Event
		for i, e := range elections {
			bus := []*pubsub.Bus{a, b}[i%2]
			events := history(e, 1, 150)
			publish(t, bus, events[:1])
			publish(t, bus, events[1:])
			all = append(all, events...)
		}
		for _, l := range listeners {
			heard := l.awaitEvents(t, all)
			for _, e := range elections {
				assert.Empty(t, cmp.Diff(history(e, 1, 150), firsts(heard, e)), "first deliveries of %s (-want +got)", e)
			}
		}
	})
}

func TestASubscriptionIsOfTheInstanceAndGoesWithIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		l := listenLive(t, s.open(t, func(c *pubsub.Config) { c.Instance = "rev-1/ä b" }))
		sub := s.own(t)
		if !regexp.MustCompile(`^` + s.project + `/subscriptions/regent-rev-1---b-[a-z0-9]{16}$`).MatchString(sub.Name) {
			t.Errorf("it is named %s", sub.Name)
		}
		if sub.Topic != s.topic || !sub.EnableMessageOrdering || sub.AckDeadlineSeconds != 10 || sub.MessageRetentionDuration.AsDuration() != 10*time.Minute ||
			sub.ExpirationPolicy.GetTtl().AsDuration() != 24*time.Hour || sub.Labels["regent"] != "instance" || sub.Labels["regent-heartbeat"] == "" {
			t.Errorf("it is %v", sub)
		}
		assert.NoError(t, l.stop())
		if left := s.subscribed(t); len(left) > 0 {
			t.Errorf("there is still %v", left)
		}
		assert.Empty(t, cmp.Diff([]bool{true, false}, l.told()), "live was told (-want +got)")
	})
}

func TestNamesOfSubscriptionsAreWhatPubSubAllows(t *testing.T) {
	t.Parallel()
	s := newFake(t)
	for _, instance := range []string{"", "9", "goog", "a/b:c@d", "\xff", "漢字", strings.Repeat("long", 100)} {
		l := listenLive(t, s.open(t, func(c *pubsub.Config) { c.Instance = instance }))
		id := strings.TrimPrefix(s.own(t).Name, s.project+"/subscriptions/")
		if !regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9_.~+%]{2,254}$`).MatchString(id) || strings.HasPrefix(id, "goog") {
			t.Errorf("instance %q has the subscription %q", instance, id)
		}
		l.stop()
	}
}

func TestMessageThatIsNoEventIsAcknowledgedAndLoggedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		log := newJournal()
		b := s.open(t, log.config)
		l := listenLive(t, b)
		messages := strangers(t)
		size := 9_000_000 // Pub/Sub takes 10 MB
		if s.fake != nil {
			size = 3_900_000 // its server takes 4 MiB
		}
		messages["a huge one"] = &pubsubpb.PubsubMessage{Data: make([]byte, size)}
		n := 0
		for what, m := range messages {
			_, err := s.topics.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: s.topic, Messages: []*pubsubpb.PubsubMessage{m}})
			require.NoError(t, err, what)
			n++
		}
		event := []leadership.Event{takeover()} // of the same ordering key as most of them
		publish(t, b, event)
		assert.Empty(t, cmp.Diff(event, l.awaitEvents(t, event)), "heard (-want +got)")
		awaitAcks(t, s, n+1)
		l.stop()
		close(log)
		logged := 0
		for m := range log {
			if m == "a message of the topic is no event" {
				logged++
			}
		}
		if logged != 1 {
			t.Errorf("%d messages that are no events were logged %d times, not once", n, logged)
		}
	})
}

// awaitAcks waits until n messages were acknowledged, where that can be seen.
func awaitAcks(t *testing.T, s *service, n int) {
	t.Helper()
	for end := time.Now().Add(patience); s.fake != nil; {
		acked := 0
		for _, m := range s.fake.Messages() {
			acked += min(m.Acks, 1)
		}
		if acked == n {
			return
		}
		require.False(t, time.Now().After(end), "%d of %d messages were acknowledged", acked, n)
	}
}

func TestTheTopicIsDeletedAndComesBack(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		b := s.open(t)
		l := listenLive(t, b)
		publish(t, b, history("reports", 1, 5))
		l.awaitEvents(t, history("reports", 1, 5))
		s.deleteTopic(t)
		if acked, err := b.Publish(t.Context(), history("reports", 6, 10)); acked != 0 || status.Code(err) != codes.NotFound {
			t.Errorf("without a topic %d events were acknowledged: %v", acked, err)
		}
		l.awaitLives(t, true, false)
		s.createTopic(t)
		l.awaitLives(t, true, false, true)
		publish(t, b, history("reports", 6, 10))
		assert.Empty(t, cmp.Diff(history("reports", 1, 10), l.awaitEvents(t, history("reports", 6, 10))), "heard (-want +got)")
		if sub := s.own(t); sub.Topic != s.topic {
			t.Errorf("the subscription belongs to %s", sub.Topic)
		}
	})
}

func TestWithoutATopicRunWaitsForOneAndSaysSoOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		log, f := newJournal(), newFault()
		b := s.open(t, log.config, with(f), func(c *pubsub.Config) { c.Probe = 5 * time.Second })
		s.deleteTopic(t)
		tries := make(chan struct{}, 100)
		f.set("CreateSubscription", func(ctx context.Context, invoke func(context.Context) error) error {
			tries <- struct{}{}
			return invoke(ctx)
		})
		l := listen(t, b)
		for range 5 {
			<-tries
		}
		s.createTopic(t)
		l.awaitLives(t, true)
		assert.Empty(t, cmp.Diff([]string{"events are not heard"}, log.await(t, "events are heard")), "the log (-want +got)")
	})
}

func TestAnEndWithoutTheServiceIsReported(t *testing.T) {
	t.Parallel()
	s, f := newFake(t), newFault()
	l := listenLive(t, s.open(t, with(f)))
	f.set("DeleteSubscription", hang)
	assert.ErrorIs(t, l.stop(), context.DeadlineExceeded, "the subscription could not be deleted")
}
