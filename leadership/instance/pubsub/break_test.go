package pubsub_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership/instance/pubsub"
)

func TestAStreamThatEndsAsAMatterOfRoutineIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s := newFake(t)
	s.fake.SetStreamTimeout(500 * time.Millisecond)
	b := s.open(t, func(c *pubsub.Config) { c.Probe = 10 * time.Second }) // no ping, which could lock up the fake
	l := listenLive(t, b)
	l.await(t, "the next streams", func() bool { return len(l.lives) >= 7 })
	s.fake.SetStreamTimeout(time.Hour)
	last := len(l.told())
	l.await(t, "a stream that lasts", func() bool { return len(l.lives) >= last+2-(last+1)%2 && len(l.lives)%2 == 1 })
	publish(t, b, history("reports", 1, 3))
	l.awaitEvents(t, history("reports", 1, 3))
}

func TestARefusedStreamIsNeverLive(t *testing.T) {
	t.Parallel()
	s := newFake(t)
	f := newFault()
	probed := make(chan struct{}, 100)
	f.set("GetSubscription", func(ctx context.Context, invoke func(context.Context) error) error {
		defer func() { probed <- struct{}{} }()
		return invoke(ctx)
	})
	var streams atomic.Int32
	late := receiving(func(ctx context.Context, n int) error {
		streams.Store(int32(n))
		if n > 3 {
			return nil
		}
		<-probed // as late as it can be
		return status.Error(codes.PermissionDenied, "you may look, and not hear")
	})
	l := listen(t, s.open(t, with(f), late.intercept()))
	l.awaitLives(t, true)
	if n := streams.Load(); n < 4 {
		t.Errorf("stream %d was refused, and counts as live", n)
	}
}
