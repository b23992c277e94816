package test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/wire"
)

// topic is a Pub/Sub topic of the test's own on the emulator.
type topic struct {
	name, project, host string
	conn                *grpc.ClientConn
}

func newTopic(t testing.TB) topic {
	t.Helper()
	host, project := emulators.PubSub(t), "projects/"+emulators.Name(t)
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	name := project + "/topics/leadership"
	if _, err := pubsubpb.NewPublisherClient(conn).CreateTopic(t.Context(), &pubsubpb.Topic{Name: name}); err != nil {
		t.Fatal(err)
	}
	return topic{name, project, host, conn}
}

// consume gives each event that is announced from now on to got, in the order in which the topic
// delivers them, until the test ends.
func (on topic) consume(t testing.TB, got func(leadership.Event)) {
	t.Helper()
	client := pubsubpb.NewSubscriberClient(on.conn)
	subscription := on.project + "/subscriptions/consumer"
	_, err := client.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		// the longest there is: on a busy machine a short one runs out, and then the emulator was
		// seen to deliver a message before the one in front of it
		Name: subscription, Topic: on.name, EnableMessageOrdering: true, AckDeadlineSeconds: 600,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := pull(ctx, client, subscription, got); err != nil && ctx.Err() == nil {
				t.Errorf("the consumer: %v", err)
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// pull waits for messages, and acknowledges them once they were passed on.
func pull(ctx context.Context, client pubsubpb.SubscriberClient, subscription string, got func(leadership.Event)) error {
	const most = 1000
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer, err := client.Pull(ctx, &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: most})
	if len(answer.GetReceivedMessages()) == 0 {
		if status.Code(err) == codes.DeadlineExceeded {
			return nil // there was nothing
		}
		return err
	}
	var ids []string
	for _, m := range answer.GetReceivedMessages() {
		e, err := announced(m.GetMessage())
		if err != nil {
			return err
		}
		got(e)
		ids = append(ids, m.GetAckId())
	}
	_, err = client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: ids})
	return err
}

// announced reads a message as a consumer does that knows only Regent's documentation.
func announced(m *pubsubpb.PubsubMessage) (leadership.Event, error) {
	var document struct {
		V int `json:"v"`
		wire.Event
	}
	if err := json.Unmarshal(m.GetData(), &document); err != nil {
		return leadership.Event{}, err
	}
	if document.V != 1 || m.GetOrderingKey() != string(document.Election) {
		return leadership.Event{}, errors.New("it has no version, or another ordering key: " + m.String())
	}
	return document.Leadership(), nil
}
