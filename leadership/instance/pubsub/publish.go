package pubsub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
)

const (
	maxPublish     = 100             // events in one request
	publishTimeout = 5 * time.Second // for one request, with the tries that the library makes of it
)

// Publish announces events, those of one election in the order of their revisions, and waits until Pub/Sub has acknowledged them or ctx ends. It
// returns how many at the front were acknowledged: all of them, unless there is an error. Of those that were not, the next request's may have been
// published nevertheless (up to 100 of one election), and no later one was. To begin again with the first that was not acknowledged loses
// nothing, and keeps the order of first deliveries.
//
// Each request takes 5 s at most. Different elections may be published at the same time; calls for one election must not overlap, or their
// events may be delivered in either order.
func (b *Bus) Publish(ctx context.Context, events []leadership.Event) (acked int, err error) {
	for acked < len(events) {
		batch := batchOf(events[acked:])
		if err := b.publish(ctx, batch); err != nil {
			return acked, fmt.Errorf("pubsub: publish %q from revision %d: %w", batch[0].Election, batch[0].Revision, err)
		}
		acked += len(batch)
	}
	return acked, nil
}

// batchOf is what can go into the next request: Pub/Sub takes one ordering key in each.
func batchOf(events []leadership.Event) []leadership.Event {
	n := 1
	for n < min(len(events), maxPublish) && events[n].Election == events[0].Election {
		n++
	}
	return events[:n]
}

func (b *Bus) publish(ctx context.Context, events []leadership.Event) error {
	r := &pubsubpb.PublishRequest{Topic: b.topic}
	for _, e := range events {
		m, err := encode(e)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := b.publisher.Publish(ctx, r)
	if status.Code(err) == codes.NotFound {
		select {
		case b.doubt <- struct{}{}:
		default:
		}
	}
	return withContext(ctx, err)
}

// withContext lets errors.Is find the error of a context that ended a call; gRPC has its own words for it.
func withContext(ctx context.Context, err error) error {
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}
