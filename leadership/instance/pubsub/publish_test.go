package pubsub_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestEachRequestHasTheEventsOfOneElection(t *testing.T) {
	t.Parallel()
	var sizes []int
	s := newFake(t, before("Publish", func(request any) error {
		messages := request.(*pubsubpb.PublishRequest).Messages
		for _, m := range messages {
			if m.OrderingKey != messages[0].OrderingKey {
				t.Errorf("one request has the keys %q and %q", messages[0].OrderingKey, m.OrderingKey)
			}
		}
		sizes = append(sizes, len(messages))
		return nil
	}))
	publish(t, s.open(t), append(append(history("a", 1, 2), history("b", 1, 250)...), history("a", 3, 3)...))
	assert.Empty(t, cmp.Diff([]int{2, 100, 100, 50, 1}, sizes), "events in each request (-want +got)")
}

func TestAfterAFailedPublicationTheEarlierEventsComeFirst(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := newFake(t, before("Publish", func(any) error {
		if requests.Add(1) == 2 {
			return status.Error(codes.PermissionDenied, "refused by the test")
		}
		return nil
	}))
	b := s.open(t)
	l := listenLive(t, b)
	events := history("reports", 1, 250)
	acked, err := b.Publish(t.Context(), events)
	if acked != 100 || status.Code(err) != codes.PermissionDenied {
		t.Fatalf("%d events were acknowledged, and the error is %v; the first request has 100, and the second was refused", acked, err)
	}
	require.Len(t, s.fake.Messages(), 100, "messages were published: a later one must not be if an earlier one failed")
	publish(t, b, events[acked:])
	assert.Empty(t, cmp.Diff(events, l.awaitEvents(t, events)), "heard (-want +got)")
}

func TestAPublicationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFault()
	b := newFake(t).open(t, with(f))
	f.set("Publish", hang)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if acked, err := b.Publish(ctx, history("reports", 1, 1)); acked != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d acknowledged, %v", acked, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if acked, err := b.Publish(ended, history("reports", 1, 1)); acked != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d acknowledged, %v", acked, err)
	}
}
