package faults

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
	"regent/test/faults/record"
)

// topic is a Pub/Sub topic of the run's own, with a subscriber that suffers no faults.
type topic struct {
	name         string
	members      string // another topic, over which the servers tell each other of members
	subscription string
	conn         *grpc.ClientConn
}

// subscriber is the consumer behind the topic.
const subscriber = "subscriber"

func newTopic(ctx context.Context, host, project string) (*topic, error) {
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	t := &topic{name: "projects/" + project + "/topics/leadership", members: membersTopic(project), subscription: "projects/" + project + "/subscriptions/" + subscriber, conn: conn}
	for _, name := range []string{t.name, t.members} {
		if _, err := pubsubpb.NewPublisherClient(conn).CreateTopic(ctx, &pubsubpb.Topic{Name: name}); err != nil {
			return t, err
		}
	}
	_, err = pubsubpb.NewSubscriberClient(conn).CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: t.subscription, Topic: t.name, EnableMessageOrdering: true, AckDeadlineSeconds: 30,
	})
	return t, err
}

func membersTopic(project string) string { return "projects/" + project + "/topics/members" }

// consume records the elections' events that the topic delivers, until ctx ends. A failed pull is
// repeated.
func (t *topic) consume(ctx context.Context, b *notes, elections []leadership.Election) {
	b.add(record.Line{Consumer: &checker.Consumer{Name: subscriber, Elections: elections}})
	client := pubsubpb.NewSubscriberClient(t.conn)
	for ctx.Err() == nil {
		if err := t.pull(ctx, client, b, elections); err != nil {
			sleep(ctx, 50*time.Millisecond)
		}
	}
}

func (t *topic) pull(ctx context.Context, client pubsubpb.SubscriberClient, b *notes, elections []leadership.Election) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := client.Pull(ctx, &pubsubpb.PullRequest{Subscription: t.subscription, MaxMessages: 1000})
	var ids []string
	for _, m := range answer.GetReceivedMessages() {
		var e wire.Event
		switch err := json.Unmarshal(m.GetMessage().GetData(), &e); {
		case err != nil || m.GetMessage().GetOrderingKey() != string(e.Election):
			b.fail("the topic delivers a message that is not an event: %v: %v", m, err)
		case slices.Contains(elections, e.Election):
			b.add(record.Line{Delivery: &record.Delivery{Consumer: subscriber, Event: e}})
		}
		ids = append(ids, m.GetAckId())
	}
	if len(ids) > 0 {
		_, err = client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: t.subscription, AckIds: ids})
	}
	return err
}

// close removes the topic.
func (t *topic) close(ctx context.Context) error {
	defer t.conn.Close()
	_, err := pubsubpb.NewSubscriberClient(t.conn).DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: t.subscription})
	for _, name := range []string{t.name, t.members} {
		_, again := pubsubpb.NewPublisherClient(t.conn).DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: name})
		err = errors.Join(err, again)
	}
	return err
}
