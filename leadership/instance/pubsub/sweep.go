package pubsub

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// strayAfter is how long a subscription without a heartbeat is left alone: four of them.
const strayAfter = 4 * defaultHeartbeat

// Sweep deletes the topic's stray subscriptions: those that instances have made and that have had no heartbeat for two hours. It returns how
// many it deleted, also with an error. It reads the subscriptions of the whole project, and touches no others. Run sweeps once when it begins.
func (b *Bus) Sweep(ctx context.Context) (deleted int, err error) {
	client, err := b.subscriber(ctx)
	if err != nil {
		return 0, fmt.Errorf("pubsub: sweep: %w", err)
	}
	defer client.Close()
	strays, err := b.strays(ctx, client)
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

func (b *Bus) strays(ctx context.Context, client *apiv1.SubscriptionAdminClient) (names []string, err error) {
	for s, err := range client.ListSubscriptions(ctx, &pubsubpb.ListSubscriptionsRequest{Project: b.project, PageSize: 1000}).All() {
		if err != nil {
			return nil, err
		}
		if b.isStray(s) {
			names = append(names, s.GetName())
		}
	}
	return names, nil
}

func (b *Bus) isStray(s *pubsubpb.Subscription) bool {
	if s.GetTopic() != b.topic || s.GetLabels()[kindLabel] != kindInstance {
		return false
	}
	seconds, err := strconv.ParseInt(s.GetLabels()[heartbeatLabel], 10, 64)
	return err == nil && time.Since(time.Unix(seconds, 0)) > strayAfter
}

// tend deletes what others left behind, and keeps the subscription from being taken for such.
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
