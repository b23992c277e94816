package pubsub_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"regent/leadership"
	"regent/leadership/instance/pubsub"
)

// idle is a subscriber service in fake time, on which no message comes. Set its fields before it is
// used, or with the mutex held.
type idle struct {
	pubsubpb.UnimplementedSubscriberServer
	bus *pubsub.Bus // the one that is open

	mu         sync.Mutex // guards all below
	line       *bufconn.Listener
	server     *grpc.Server
	properties bool  // it tells them when a stream begins
	pongs      bool  // it answers pings
	probe      error // of GetSubscription
	calls      int   // but for streams
	streams    int
	routed     []string // by what the streams are
}

// open returns a bus on the service, in its bubble.
func (s *idle) open(t *testing.T) *pubsub.Bus {
	t.Helper()
	s.serve(t)
	b, err := pubsub.Open(t.Context(), pubsub.Config{
		Topic: "projects/p/topics/regent", Emulator: "passthrough:///service",
		Options: []option.ClientOption{option.WithGRPCDialOption(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var line *bufconn.Listener
			s.with(func() { line = s.line })
			return line.DialContext(ctx)
		}))},
	})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	s.bus = b
	return b
}

// serve begins to serve, as if anew.
func (s *idle) serve(t *testing.T) {
	line, server := bufconn.Listen(1<<16), grpc.NewServer()
	pubsubpb.RegisterSubscriberServer(server, s)
	go server.Serve(line)
	t.Cleanup(server.Stop)
	s.with(func() { s.line, s.server = line, server })
}

func (s *idle) with(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// CreateSubscription implements pubsubpb.SubscriberServer, as all methods below.
func (s *idle) CreateSubscription(_ context.Context, r *pubsubpb.Subscription) (*pubsubpb.Subscription, error) {
	s.with(func() { s.calls++ })
	return r, nil
}

func (s *idle) GetSubscription(_ context.Context, r *pubsubpb.GetSubscriptionRequest) (found *pubsubpb.Subscription, err error) {
	s.with(func() { s.calls, err = s.calls+1, s.probe })
	return &pubsubpb.Subscription{Name: r.GetSubscription(), Topic: "projects/p/topics/regent"}, err
}

func (s *idle) DeleteSubscription(context.Context, *pubsubpb.DeleteSubscriptionRequest) (*emptypb.Empty, error) {
	s.with(func() { s.calls++ })
	return &emptypb.Empty{}, nil
}

func (s *idle) ListSubscriptions(context.Context, *pubsubpb.ListSubscriptionsRequest) (*pubsubpb.ListSubscriptionsResponse, error) {
	s.with(func() { s.calls++ })
	return &pubsubpb.ListSubscriptionsResponse{}, nil
}

func (s *idle) UpdateSubscription(_ context.Context, r *pubsubpb.UpdateSubscriptionRequest) (*pubsubpb.Subscription, error) {
	s.with(func() { s.calls++ })
	return r.GetSubscription(), nil
}

func (s *idle) StreamingPull(stream pubsubpb.Subscriber_StreamingPullServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	properties := false
	header, _ := metadata.FromIncomingContext(stream.Context())
	s.with(func() {
		s.streams, properties = s.streams+1, s.properties
		s.routed = append(s.routed, header.Get("x-goog-request-params")...)
	})
	if properties {
		stream.Send(&pubsubpb.StreamingPullResponse{SubscriptionProperties: &pubsubpb.StreamingPullResponse_SubscriptionProperties{MessageOrderingEnabled: true}})
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		pong := false
		s.with(func() { pong = s.pongs })
		if pong {
			stream.Send(&pubsubpb.StreamingPullResponse{})
		}
	}
}

// hears is a listener of an idle bus.
type hears struct {
	mu    sync.Mutex // guards all below
	live  bool
	since time.Time // when that changed
	turns int       // how often it did
}

func (h *hears) tell(live bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live, h.since = live, time.Now()
	h.turns++
}

func (h *hears) state() (live bool, since time.Time, turns int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live, h.since, h.turns
}

// atRest runs a bus on the service in fake time, and the test once it hears.
func atRest(t *testing.T, s *idle, test func(t *testing.T, h *hears)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, h := s.open(t), &hears{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Run(ctx, func(leadership.Event) {}, h.tell) }()
		time.Sleep(time.Second)
		if live, _, _ := h.state(); !live {
			t.Error("it does not hear")
		}
		test(t, h)
		cancel()
		assert.NoError(t, <-done)
	})
}

func TestAStreamAtRestCostsTwoCallsAMinuteWherePingsAreAnswered(t *testing.T) {
	s := &idle{pongs: true}
	atRest(t, s, func(t *testing.T, h *hears) {
		s.with(func() { s.calls = 0 })
		time.Sleep(time.Hour)
		s.with(func() {
			if s.calls < 3600/40 || s.calls > 2*60 {
				t.Errorf("%d calls in an hour", s.calls)
			}
			assert.EqualValues(t, 1, s.streams, "streams")
		})
	})
}

func TestAStreamIsRoutedByItsSubscription(t *testing.T) {
	s := &idle{pongs: true}
	atRest(t, s, func(t *testing.T, _ *hears) {
		s.with(func() {
			if len(s.routed) != 1 || !strings.HasPrefix(s.routed[0], "subscription=projects%2Fp%2Fsubscriptions%2F") {
				t.Errorf("streams are routed by %q, want by the one subscription", s.routed)
			}
		})
	})
}

func TestAServiceThatAnswersNoPingsIsProbedOften(t *testing.T) {
	s := &idle{properties: true} // which are no answer
	atRest(t, s, func(t *testing.T, h *hears) {
		s.with(func() { s.calls = 0 })
		time.Sleep(time.Hour)
		if _, _, turns := h.state(); turns != 1 {
			t.Errorf("it was deaf %d times, for it took an empty message for the answer to a ping", turns/2)
		}
		s.with(func() {
			if s.calls < 3600/8 || s.streams != 1 {
				t.Errorf("%d calls in an hour, and %d streams", s.calls, s.streams)
			}
			s.probe = status.Error(codes.ResourceExhausted, "the quota is used up")
		})
		began := time.Now()
		time.Sleep(12 * time.Second)
		if live, since, _ := h.state(); live || since.Sub(began) > s.bus.Bound() {
			t.Error("neither pings nor probes are answered, and it hears")
		}
		s.with(func() { s.probe = nil })
		time.Sleep(time.Minute)
	})
}

// A quota that is used up must not make an instance open streams and subscriptions, which use it
// even more.
func TestAProbeThatIsRefusedForNowEndsNothingWhilePingsAreAnswered(t *testing.T) {
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable} {
		t.Run(code.String(), func(t *testing.T) {
			s := &idle{pongs: true}
			atRest(t, s, func(t *testing.T, h *hears) {
				s.with(func() { s.probe = status.Error(code, "not now") })
				time.Sleep(time.Hour)
				if _, _, turns := h.state(); turns != 1 {
					t.Errorf("it was deaf %d times", turns/2)
				}
				s.with(func() { s.pongs = false })
				began := time.Now()
				time.Sleep(20 * time.Second)
				if live, since, _ := h.state(); live || since.Sub(began) > s.bus.Bound() {
					t.Errorf("the stream hangs, and that was noticed after %v", since.Sub(began))
				}
				s.with(func() { s.probe = nil })
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestAStreamThatHangsIsGivenUpWherePingsAreAnswered(t *testing.T) {
	s := &idle{pongs: true}
	atRest(t, s, func(t *testing.T, h *hears) {
		time.Sleep(time.Hour)
		s.with(func() { s.pongs = false })
		began := time.Now()
		time.Sleep(s.bus.Bound())
		if _, _, turns := h.state(); turns < 2 {
			t.Errorf("a stream that hangs was not noticed within %v", s.bus.Bound())
		}
		s.with(func() { s.pongs = true })
		time.Sleep(time.Minute)
		if live, since, turns := h.state(); !live || turns != 3 || since.Sub(began) > 2*s.bus.Bound() {
			t.Errorf("another stream was not opened: %t, %v, %d", live, since.Sub(began), turns)
		}
	})
}

func TestAClosedConnectionIsNoticedAtOnceAndOpenedAgain(t *testing.T) {
	s := &idle{pongs: true}
	atRest(t, s, func(t *testing.T, h *hears) {
		s.server.Stop()
		time.Sleep(time.Second)
		if live, _, _ := h.state(); live {
			t.Error("the connection is closed, and that is not noticed")
		}
		s.serve(t)
		time.Sleep(time.Minute)
		if live, _, turns := h.state(); !live || turns != 3 {
			t.Errorf("another connection was not opened: %t, %d", live, turns)
		}
	})
}

func TestALostSubscriptionIsNoticedWherePingsAreAnswered(t *testing.T) {
	s := &idle{pongs: true}
	atRest(t, s, func(t *testing.T, h *hears) {
		time.Sleep(time.Hour)
		s.with(func() { s.probe = status.Error(codes.PermissionDenied, "no more") })
		began := time.Now()
		time.Sleep(time.Minute)
		if live, since, _ := h.state(); live || since.Sub(began) > s.bus.LossBound() {
			t.Errorf("it was noticed after %v", since.Sub(began))
		}
		s.with(func() { s.probe = nil })
		time.Sleep(time.Minute)
	})
}
