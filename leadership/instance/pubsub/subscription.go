//go:build !regent_local

package pubsub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
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
	unused    = 24 * time.Hour   // then Pub/Sub deletes a subscription; the least that it allows

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

// newSubscription returns a name that no other call returns.
func (c *connection) newSubscription() string {
	const longest = 200 // of the readable part
	id := "regent-"
	if instance := strings.Map(idRune, c.instance); instance != "" {
		id += instance[:min(len(instance), longest)] + "-"
	}
	return c.project + "/subscriptions/" + id + strings.ToLower(rand.Text()[:16])
}

// subscribe makes sure that the subscription exists and belongs to the topic.
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
		EnableMessageOrdering:    h.ordered,
		AckDeadlineSeconds:       int32(ackDeadline / time.Second),
		MessageRetentionDuration: durationpb.New(retention),
		ExpirationPolicy:         &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(unused)},
	})
	return err
}

var errOrphaned = errors.New("its topic was deleted")

// look is the probe: it returns an error if nothing can be heard. A subscription outlives its
// topic, and never belongs to another one.
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

// removeForsaken deletes former subscriptions. One that cannot be deleted is tried again next time;
// if it is never deleted, it is a stray.
func (h *hearing) removeForsaken(ctx context.Context, client *apiv1.SubscriptionAdminClient) {
	h.forsaken = slices.DeleteFunc(h.forsaken, func(name string) bool { return remove(ctx, client, name) == nil })
}

// remove deletes a subscription. It returns nil if there is none.
func remove(ctx context.Context, client *apiv1.SubscriptionAdminClient, name string) error {
	err := client.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: name})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// unsubscribe removes all subscriptions at the end, over a new connection.
func (h *hearing) unsubscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTimeout)
	defer cancel()
	client, err := h.subscriber(ctx)
	if err == nil {
		defer client.Close()
		err = remove(ctx, client, h.subscription())
		h.removeForsaken(ctx, client)
	}
	if err != nil {
		return fmt.Errorf("pubsub: delete %s (Pub/Sub deletes it after a day): %w", h.subscription(), withContext(ctx, err))
	}
	return nil
}

// beat renews the heartbeat. It returns nil if there is no subscription: it will be created with a
// new heartbeat.
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

// strayAfter is how long a subscription may be without a heartbeat: four of its intervals.
const strayAfter = 4 * defaultHeartbeat

// Sweep deletes the topic's stray subscriptions: those made by instances that had no heartbeat for
// two hours. It returns how many it deleted, even with an error. It reads the subscriptions of the
// whole project. Run sweeps once when it begins.
func (c *connection) Sweep(ctx context.Context) (deleted int, err error) {
	client, err := c.subscriber(ctx)
	if err != nil {
		return 0, fmt.Errorf("pubsub: sweep: %w", err)
	}
	defer client.Close()
	strays, err := c.strays(ctx, client)
	for _, name := range strays {
		if err = remove(ctx, client, name); err != nil {
			break
		}
		deleted++
	}
	if err != nil {
		return deleted, fmt.Errorf("pubsub: sweep: %w", withContext(ctx, err))
	}
	return deleted, nil
}

func (c *connection) strays(ctx context.Context, client *apiv1.SubscriptionAdminClient) (names []string, err error) {
	for s, err := range client.ListSubscriptions(ctx, &pubsubpb.ListSubscriptionsRequest{Project: c.project, PageSize: 1000}).All() {
		if err != nil {
			return nil, err
		}
		if c.isStray(s) {
			names = append(names, s.GetName())
		}
	}
	return names, nil
}

func (c *connection) isStray(s *pubsubpb.Subscription) bool {
	if s.GetTopic() != c.topic || s.GetLabels()[kindLabel] != kindInstance {
		return false
	}
	seconds, err := strconv.ParseInt(s.GetLabels()[heartbeatLabel], 10, 64)
	return err == nil && time.Since(time.Unix(seconds, 0)) > strayAfter
}

// tend deletes strays once, and renews the heartbeat until ctx ends.
func (h *hearing) tend(ctx context.Context) {
	deleted, err := h.Sweep(ctx)
	if deleted > 0 {
		h.log.LogAttrs(ctx, slog.LevelInfo, "stray subscriptions were deleted", slog.Int("deleted", deleted))
	}
	if err != nil && ctx.Err() == nil {
		h.log.LogAttrs(ctx, slog.LevelWarn, "stray subscriptions are not deleted", slog.Any("cause", err))
	}
	ticker := time.NewTicker(h.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := h.beat(ctx); err != nil && ctx.Err() == nil {
			h.log.LogAttrs(ctx, slog.LevelWarn, "the subscription's heartbeat is not renewed",
				slog.String("subscription", h.subscription()), slog.Any("cause", err))
		}
	}
}
