package pubsub_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/stretchr/testify/require"
)

func heartbeat(age time.Duration) map[string]string {
	return map[string]string{"regent": "instance", "regent-heartbeat": strconv.FormatInt(time.Now().Add(-age).Unix(), 10)}
}

func TestASweepDeletesStraysAndNothingElse(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		b := s.open(t)
		other := &pubsubpb.Topic{Name: s.topic + "-2"}
		_, err := s.topics.CreateTopic(t.Context(), other)
		require.NoError(t, err)
		keep := []string{
			s.subscribe(t, "silent-for-less", heartbeat(119*time.Minute)),
			s.subscribe(t, "ahead", heartbeat(-time.Hour)),
			s.subscribe(t, "unlabelled", nil),
			s.subscribe(t, "without-heartbeat", map[string]string{"regent": "instance"}),
			s.subscribe(t, "spoilt", map[string]string{"regent": "instance", "regent-heartbeat": "x1"}),
			s.subscribe(t, "of-another-kind", map[string]string{"regent": "export", "regent-heartbeat": "1"}),
			s.subscribeTo(t, other.Name, "of-another-topic", heartbeat(3*time.Hour)),
		}
		for i := range 3 {
			s.subscribe(t, fmt.Sprintf("stray-%d", i), heartbeat(121*time.Minute))
		}
		if deleted, err := b.Sweep(t.Context()); err != nil || deleted != 3 {
			t.Errorf("%d were deleted: %v", deleted, err)
		}
		left := s.subscribed(t)
		for _, name := range keep {
			if left[name] == nil {
				t.Errorf("%s is gone", name)
			}
		}
		if len(left) != len(keep) {
			t.Errorf("%d are left, not %d", len(left), len(keep))
		}
		if deleted, err := b.Sweep(t.Context()); err != nil || deleted != 0 {
			t.Errorf("a second sweep: %d were deleted: %v", deleted, err)
		}
	})
}

func TestALivingInstanceRenewsItsHeartbeat(t *testing.T) {
	t.Parallel()
	updates := make(chan *pubsubpb.UpdateSubscriptionRequest, 100)
	s := newFake(t, before("UpdateSubscription", func(request any) error {
		select {
		case updates <- proto.CloneOf(request.(*pubsubpb.UpdateSubscriptionRequest)):
		default:
		}
		return status.Error(codes.NotFound, "it is being created again") // the fake's answer races
	}))
	b := s.open(t)
	b.SetHeartbeat(50 * time.Millisecond)
	listenLive(t, b)
	own := s.own(t)
	for range 2 {
		u := <-updates
		at, err := strconv.ParseInt(u.Subscription.Labels["regent-heartbeat"], 10, 64)
		if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute || u.Subscription.Labels["regent"] != "instance" {
			t.Errorf("the labels become %v: %v", u.Subscription.Labels, err)
		}
		if u.Subscription.Name != own.Name || len(u.UpdateMask.Paths) != 1 || u.UpdateMask.Paths[0] != "labels" {
			t.Errorf("the request is %v", u)
		}
	}
}

func TestAHeartbeatThatCannotBeRenewedIsLoggedAndHearingGoesOn(t *testing.T) {
	t.Parallel()
	s := newFake(t, before("UpdateSubscription", func(any) error { return status.Error(codes.InvalidArgument, "labels is not a known field") }))
	log := newJournal()
	b := s.open(t, log.config)
	b.SetHeartbeat(50 * time.Millisecond)
	l := listenLive(t, b)
	log.await(t, "the subscription's heartbeat is not renewed")
	publish(t, b, history("reports", 1, 1))
	l.awaitEvents(t, history("reports", 1, 1))
}

func TestAnInstanceSweepsWhenItBegins(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		log := newJournal()
		b := s.open(t, log.config)
		s.subscribe(t, "stray", heartbeat(3*time.Hour))
		listenLive(t, b)
		log.await(t, "stray subscriptions were deleted")
		s.own(t)
	})
}

func TestASweepSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	n := 0
	s := newFake(t, before("DeleteSubscription", func(any) error {
		if n++; n == 2 {
			return status.Error(codes.PermissionDenied, "refused by the test")
		}
		return nil
	}))
	b := s.open(t)
	for i := range 3 {
		s.subscribe(t, fmt.Sprintf("stray-%d", i), heartbeat(3*time.Hour))
	}
	if deleted, err := b.Sweep(t.Context()); deleted != 1 || status.Code(err) != codes.PermissionDenied {
		t.Errorf("%d were deleted: %v", deleted, err)
	}
	if deleted, err := b.Sweep(t.Context()); deleted != 2 || err != nil {
		t.Errorf("and then %d: %v", deleted, err)
	}
}
