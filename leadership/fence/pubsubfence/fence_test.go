package pubsubfence_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/fencetest"
	"regent/leadership/fence/httpfence"
	"regent/leadership/fence/pubsubfence"
)

func stamped(t *testing.T, token leadership.Token, data string) *pubsub.Message {
	t.Helper()
	m := &pubsub.Message{Data: []byte(data)}
	require.NoError(t, pubsubfence.Stamp(m, fence.Mark{Election: "planner", Token: token}))
	return m
}

// receiver is a fence before a handler that notes what it handles.
type receiver struct {
	receive func(context.Context, *pubsub.Message)
	nack    bool       // Refused calls Nack
	mu      sync.Mutex // guards what follows
	handled []string
	refused []error
}

func newReceiver(t *testing.T, c pubsubfence.Config) *receiver {
	t.Helper()
	r := new(receiver)
	c.Election = "planner"
	c.Refused = func(m *pubsub.Message, err error) {
		if r.nack {
			m.Nack()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused = append(r.refused, err)
	}
	f, err := pubsubfence.New(c)
	require.NoError(t, err)
	r.receive = f.Wrap(func(ctx context.Context, m *pubsub.Message) {
		w, _ := pubsubfence.FromContext(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.handled = append(r.handled, fmt.Sprintf("%s by %d", m.Data, w.Token))
		m.Ack()
	})
	return r
}

func TestASubscriberIsAFence(t *testing.T) {
	t.Parallel()
	fencetest.Run(t, func(testing.TB) fencetest.Place {
		marks, values := new(httpfence.Memory), map[string]int64{}
		return fencetest.Place{
			Write: func(ctx context.Context, resource string, w fence.Mark, value int64) (refused error) {
				m := &pubsub.Message{Data: []byte(resource)}
				if err := pubsubfence.Stamp(m, w); err != nil {
					return err
				}
				f, err := pubsubfence.New(pubsubfence.Config{
					Election: w.Election, Marks: marks,
					Resource: func(m *pubsub.Message) string { return string(m.Data) },
					Refused:  func(_ *pubsub.Message, err error) { refused = err },
				})
				if err != nil {
					return err
				}
				f.Wrap(func(context.Context, *pubsub.Message) { values[resource] = value })(ctx, m)
				return refused
			},
			Read: func(_ testing.TB, resource string) (fence.Mark, int64) { return marks.Mark(resource), values[resource] },
		}
	})
}

func TestAMessageWithoutAValidStampIsNotHandled(t *testing.T) {
	t.Parallel()
	valid := map[string]string{"election": "planner", "fencingToken": "34"}
	for name, c := range map[string]struct {
		attribute, value, field string
	}{
		"no token":                {"fencingToken", "", "fencingToken"},
		"a token of another form": {"fencingToken", "034", "fencingToken"},
		"a token of zero":         {"fencingToken", "0", "fencingToken"},
		"too high a token":        {"fencingToken", "9007199254740992", "fencingToken"},
		"no election":             {"election", "", "election"},
		"another election":        {"election", "gardener", "election"},
		"no possible election":    {"election", "-", "election"},
	} {
		r := newReceiver(t, pubsubfence.Config{})
		m := &pubsub.Message{Attributes: map[string]string{}}
		maps.Copy(m.Attributes, valid)
		m.Attributes[c.attribute] = c.value
		r.receive(t.Context(), m)
		var e *leadership.Error
		if len(r.handled) > 0 || len(r.refused) != 1 || !errors.As(r.refused[0], &e) || e.Code != leadership.InvalidArgument || e.Field != c.field {
			t.Errorf("%s: handled %q, refused %v", name, r.handled, r.refused)
		}
		r.receive(t.Context(), stamped(t, 1, "later"))
		if len(r.handled) != 1 {
			t.Errorf("%s: it has raised the mark: %v", name, r.refused)
		}
	}
	assert.ErrorIs(t, pubsubfence.Stamp(new(pubsub.Message), fence.Mark{Election: "planner"}), leadership.InvalidArgument, "a stamp without a token")
	if _, err := pubsubfence.New(pubsubfence.Config{}); err == nil {
		t.Error("a fence without an election")
	}
}

// failing are Marks that cannot be raised once.
type failing struct{ calls int }

func (f *failing) Raise(context.Context, string, fence.Mark) error {
	if f.calls++; f.calls == 1 {
		return leadership.StoreUnavailable
	}
	return nil
}

// Pub/Sub sees which messages are acknowledged: late ones are, and do not come again, unless
// Refused calls Nack; one whose mark could not be raised comes again, and is handled then.
func TestALateMessageIsAcknowledgedAndOneThatCouldNotBeComparedComesAgain(t *testing.T) {
	t.Parallel()
	server := pstest.NewServer()
	defer server.Close()
	conn, err := grpc.NewClient("passthrough:///"+server.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	require.NoError(t, err)
	defer conn.Close()
	client, err := pubsub.NewClient(t.Context(), "p", option.WithGRPCConn(conn))
	require.NoError(t, err)
	marks := new(failing)
	for i, c := range []struct {
		marks  pubsubfence.Marks
		nack   bool
		tokens []leadership.Token
		want   []string
		acks   []int
	}{
		{nil, false, []leadership.Token{34, 33, 35}, []string{"34 by 34", "35 by 35"}, []int{1, 1, 1}},
		{marks, false, []leadership.Token{36}, []string{"36 by 36"}, []int{1}},
		{nil, true, []leadership.Token{38, 37}, []string{"38 by 38"}, []int{1, 0}},
	} {
		topic, subscription := fmt.Sprint("projects/p/topics/commands-", i), fmt.Sprint("projects/p/subscriptions/worker-", i)
		_, err := client.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic})
		require.NoError(t, err)
		_, err = client.SubscriptionAdminClient.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: subscription, Topic: topic, AckDeadlineSeconds: 600})
		require.NoError(t, err)
		r := newReceiver(t, pubsubfence.Config{Marks: c.marks})
		r.nack = c.nack
		var ids []string
		publish := func() { // one after the other: their order counts
			m := stamped(t, c.tokens[len(ids)], fmt.Sprint(c.tokens[len(ids)]))
			ids = append(ids, server.Publish(topic, m.Data, m.Attributes))
		}
		publish()
		ctx, cancel := context.WithCancel(t.Context())
		sub := client.Subscriber(subscription)
		sub.ReceiveSettings.NumGoroutines = 1
		err = sub.Receive(ctx, func(ctx context.Context, m *pubsub.Message) {
			before := marks.calls
			r.receive(ctx, m)
			switch {
			case c.marks != nil && before == 0: // it comes again
			case len(ids) < len(c.tokens):
				publish()
			default:
				cancel()
			}
		})
		cancel()
		require.NoError(t, err)
		if !slices.Equal(r.handled, c.want) {
			t.Errorf("handled %q, want %q; refused %v", r.handled, c.want, r.refused)
		}
		for i, id := range ids {
			if m := server.Message(id); m.Acks != c.acks[i] {
				t.Errorf("the message of token %d was acknowledged %d times, want %d", c.tokens[i], m.Acks, c.acks[i])
			}
		}
	}
}
