package pubsub_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership/instance/pubsub"
)

// messages returns one instance's connection to the topic of messages.
func (s *service) messages(t *testing.T) *pubsub.Messages {
	t.Helper()
	m, err := pubsub.OpenMessages(t.Context(), pubsub.Config{Topic: s.topic, Instance: "test", Emulator: s.addr})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, m.Close())
	})
	return m
}

// heard is what one instance has heard of messages.
type heard struct {
	live chan bool
	what chan []byte
	stop func() error
}

func hearing(t *testing.T, m *pubsub.Messages) *heard {
	h := &heard{live: make(chan bool, 10), what: make(chan []byte, 100)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- m.Run(ctx, func(message []byte) { h.what <- slices.Clone(message) }, func(live bool) { h.live <- live })
	}()
	h.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { h.stop() })
	if !<-h.live {
		t.Fatal("hearing began with its end")
	}
	return h
}

func TestEveryInstanceHearsEveryMessageOfMembers(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		a, b := s.messages(t), s.messages(t)
		all := []*heard{hearing(t, a), hearing(t, b)}
		want := [][]byte{[]byte("short"), bytes.Repeat([]byte{0, 0xff}, 300_000), {'x'}}
		for i, message := range want {
			require.NoError(t, []*pubsub.Messages{a, b}[i%2].Publish(t.Context(), message))
		}
		for _, h := range all {
			missing := slices.Clone(want)
			for len(missing) > 0 {
				got := <-h.what
				missing = slices.DeleteFunc(missing, func(m []byte) bool { return bytes.Equal(m, got) })
			}
		}
	})
}

func TestTheSubscriptionOfMessagesIsUnorderedAndGoesWithItsInstance(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		h := hearing(t, s.messages(t))
		if sub := s.own(t); sub.EnableMessageOrdering || sub.Topic != s.topic || sub.Labels["regent"] != "instance" {
			t.Errorf("it is %v", sub)
		}
		assert.NoError(t, h.stop())
		if left := s.subscribed(t); len(left) > 0 {
			t.Errorf("there is still %v", left)
		}
		if <-h.live {
			t.Error("the last word is that messages are heard")
		}
	})
}

func TestAMessageThatFindsNoTopicEndsHearing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		m := s.messages(t)
		h := hearing(t, m)
		s.deleteTopic(t)
		if err := m.Publish(t.Context(), []byte("lost")); err == nil {
			t.Error("a message without a topic was published")
		}
		if <-h.live {
			t.Error("messages are heard without a topic")
		}
		s.createTopic(t)
		if !<-h.live {
			t.Error("it ended twice")
		}
	})
}
