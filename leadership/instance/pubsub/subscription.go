package pubsub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

const (
	retention = 10 * time.Minute // the least that Pub/Sub allows
	unused    = 24 * time.Hour   // until Pub/Sub deletes a subscription; the least that it allows

	subscribeTimeout   = 10 * time.Second
	unsubscribeTimeout = 2 * time.Second
)

// The labels of a subscription.
const (
	kindLabel      = "regent"
	kindInstance   = "instance"
	heartbeatLabel = "regent-heartbeat" // seconds since 1970
)

func labels() map[string]string {
	return map[string]string{kindLabel: kindInstance, heartbeatLabel: strconv.FormatInt(time.Now().Unix(), 10)}
}

// subscribe sees to it that the subscription exists and belongs to the topic.
func (h *hearing) subscribe(ctx context.Context, client *apiv1.SubscriptionAdminClient) error {
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	h.removeForsaken(ctx, client)
	err := h.create(ctx, client)
	if status.Code(err) != codes.AlreadyExists {
		return err
	}
	if err = h.look(ctx, client); !errors.Is(err, errOrphaned) {
		return err
	}
	if err := remove(ctx, client, h.subscription()); err != nil {
		return err
	}
	return h.create(ctx, client)
}

func (h *hearing) create(ctx context.Context, client *apiv1.SubscriptionAdminClient) error {
	_, err := client.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name:                     h.subscription(),
		Topic:                    h.topic,
		Labels:                   labels(),
		EnableMessageOrdering:    true,
		AckDeadlineSeconds:       int32(ackDeadline / time.Second),
		MessageRetentionDuration: durationpb.New(retention),
		ExpirationPolicy:         &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(unused)},
	})
	return err
}

var errOrphaned = errors.New("its topic was deleted")

// look is the probe: it returns why nothing can be heard. A subscription outlives its topic, and never gets another.
func (h *hearing) look(ctx context.Context, client *apiv1.SubscriptionAdminClient) error {
	ctx, cancel := context.WithTimeout(ctx, h.probeTimeout())
	defer cancel()
	s, err := client.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: h.subscription()})
	if err != nil {
		return err
	}
	if s.GetTopic() != h.topic || s.GetDetached() {
		return errOrphaned
	}
	return nil
}

// removeForsaken deletes the subscriptions of before. One that cannot be deleted is tried again next time, and is a stray after that.
func (h *hearing) removeForsaken(ctx context.Context, client *apiv1.SubscriptionAdminClient) {
	h.forsaken = slices.DeleteFunc(h.forsaken, func(name string) bool { return remove(ctx, client, name) == nil })
}

// remove deletes a subscription. That there is none is no error.
func remove(ctx context.Context, client *apiv1.SubscriptionAdminClient, name string) error {
	err := client.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: name})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// unsubscribe is remove for the end, over a connection that nothing has broken yet.
func (h *hearing) unsubscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTimeout)
	defer cancel()
	client, err := h.subscriber(ctx)
	if err == nil {
		defer client.Close()
		h.removeForsaken(ctx, client)
		err = remove(ctx, client, h.subscription())
	}
	if err != nil {
		return fmt.Errorf("pubsub: delete %s, which goes by itself after a day: %w", h.subscription(), withContext(ctx, err))
	}
	return nil
}

// beat renews the heartbeat. That there is no subscription is no error: it will be created with a fresh one.
func (h *hearing) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	client, err := h.subscriber(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.UpdateSubscription(ctx, &pubsubpb.UpdateSubscriptionRequest{
		Subscription: &pubsubpb.Subscription{Name: h.subscription(), Labels: labels()},
		UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}
