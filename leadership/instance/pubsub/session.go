//go:build !regent_local

package pubsub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"regent/leadership/instance/internal/backoff"
)

const (
	ackDeadline    = 10 * time.Second // the least that Pub/Sub allows
	maxUnacked     = 1000             // messages
	maxUnackedSize = 16 << 20
	maxAcks        = 1000 // in one request
	protocol       = 1    // of the stream: pings are answered
)

var errHangs = errors.New("the stream answers no pings any more")

// session is one stream with its connection and subscription. When any of them breaks, all are made
// anew.
type session struct {
	*hearing
	client *apiv1.SubscriptionAdminClient
	stream pubsubpb.Subscriber_StreamingPullClient
	acks   chan []string // to be acknowledged
	heard  chan struct{} // of one: messages have come

	answers atomic.Int32 // responses of the stream since the last ping
	pings   atomic.Int32 // pings sent
	pongs   atomic.Bool  // a ping was answered
	silent  int          // pings in a row without an answer
}

// session hears until something breaks or ctx ends, and returns the cause.
func (h *hearing) session(ctx context.Context) error {
	client, err := h.subscriber(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := h.subscribe(ctx, client); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &session{hearing: h, client: client, acks: make(chan []string, maxUnacked), heard: make(chan struct{}, 1)}
	if s.stream, err = s.open(ctx); err != nil {
		cancel(err)
		return err
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel(nil)
	parts.Go(func() { cancel(s.receive(ctx)) })
	parts.Go(func() { s.acknowledge(ctx) })
	return s.watch(ctx)
}

func (s *session) open(ctx context.Context) (pubsubpb.Subscriber_StreamingPullClient, error) {
	// Pub/Sub routes a call by this header, which the library adds to every other one.
	stream, err := s.client.StreamingPull(metadata.AppendToOutgoingContext(ctx, "x-goog-request-params", "subscription="+url.QueryEscape(s.subscription())))
	if err != nil {
		return nil, err
	}
	err = stream.Send(&pubsubpb.StreamingPullRequest{
		Subscription:             s.subscription(),
		ClientId:                 s.subscription(),
		StreamAckDeadlineSeconds: int32(ackDeadline / time.Second),
		MaxOutstandingMessages:   maxUnacked,
		MaxOutstandingBytes:      maxUnackedSize,
		ProtocolVersion:          protocol,
	})
	if err != nil && !errors.Is(err, io.EOF) { // then Recv returns the cause
		return nil, err
	}
	return stream, nil
}

// receive passes on messages, and returns why the stream has ended.
func (s *session) receive(ctx context.Context) error {
	for {
		r, err := s.stream.Recv()
		if err != nil {
			return fmt.Errorf("the stream ended: %w", err)
		}
		s.answers.Add(1)
		if len(r.GetReceivedMessages()) == 0 {
			if s.pings.Load() > 0 { // before, it tells the properties of the subscription
				s.pongs.Store(true)
			}
			continue
		}
		backoff.Signal(s.heard)
		s.take(ctx, r.GetReceivedMessages())
	}
}

// take handles messages and has all of them acknowledged, even those that cannot be used. If too
// many acknowledgements wait, Pub/Sub delivers these messages again.
func (s *session) take(ctx context.Context, messages []*pubsubpb.ReceivedMessage) {
	ids := make([]string, 0, len(messages))
	for _, m := range messages {
		ids = append(ids, m.GetAckId())
		if err := s.hear(m.GetMessage()); err != nil {
			s.strange(ctx, m.GetMessage().GetMessageId(), err)
		}
	}
	select {
	case s.acks <- ids:
	default:
	}
}

// strange logs that a message cannot be used, at most once a minute.
func (s *session) strange(ctx context.Context, id string, err error) {
	s.strangers++
	if now := time.Now(); s.logged.IsZero() || now.Sub(s.logged) > time.Minute {
		s.logged = now
		s.log.LogAttrs(ctx, slog.LevelWarn, "a message of the topic is no event",
			slog.String("message", id), slog.Int("soFar", s.strangers), slog.Any("cause", err))
	}
}

// acknowledge sends acknowledgements, all that wait in one request. A message whose acknowledgement
// cannot be sent is delivered again.
func (s *session) acknowledge(ctx context.Context) {
	for {
		select {
		case ids := <-s.acks:
			s.sendAcks(ctx, s.waiting(ids))
		case <-ctx.Done():
			return
		}
	}
}

// waiting adds the ids that wait, as far as one request takes them.
func (s *session) waiting(ids []string) []string {
	for len(ids) < maxAcks {
		select {
		case more := <-s.acks:
			ids = append(ids, more...)
		default:
			return ids
		}
	}
	return ids
}

func (s *session) sendAcks(ctx context.Context, ids []string) {
	ctx, cancel := context.WithTimeout(ctx, s.probeTimeout())
	defer cancel()
	// The error is ignored: a probe finds its cause.
	_ = s.client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: s.subscription(), AckIds: ids})
}

// settle is how long a stream must stay open to count as accepted: the service sends nothing while
// there are no messages.
const settle = 100 * time.Millisecond

// watch reports when hearing begins, and returns why it has ended.
func (s *session) watch(ctx context.Context) error {
	if err := s.look(ctx, s.client); err != nil {
		return why(ctx, err)
	}
	select {
	case <-time.After(settle):
		s.live(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.listen(ctx)
}

const (
	pingsPerProbe = 2 // so that the third ping after a stream began to hang comes within Bound
	rarely        = 4 // while pings are answered, only every fourth probe is made
)

// listen pings and probes, and returns why nothing can be heard any more.
func (s *session) listen(ctx context.Context) error {
	ping, probe := time.NewTicker(s.probe/pingsPerProbe), time.NewTimer(s.probe)
	defer ping.Stop()
	defer probe.Stop()
	for skipped := 0; ; {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.heard:
			probe.Reset(s.probe)
		case <-s.doubt:
			skipped = rarely
			probe.Reset(0)
		case <-probe.C:
			probe.Reset(s.probe)
			if skipped++; s.answering() && skipped < rarely {
				continue
			}
			skipped = 0
			if err = s.look(ctx, s.client); s.answering() && passes(err) {
				err = nil
			}
		case <-ping.C:
			err = s.ping()
		}
		if err != nil {
			return why(ctx, err)
		}
	}
}

// answering reports whether the stream answers pings. Then it works, and a probe is needed only to
// detect that the subscription has lost its topic.
func (s *session) answering() bool { return s.pongs.Load() && s.silent == 0 }

// passes reports whether a probe's error says nothing about the subscription: the quota is used up,
// or there was no answer in time.
func passes(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) { // while the library waits to try again
		return true
	}
	switch status.Code(err) {
	case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded:
		return true
	}
	return false
}

// ping keeps the stream open, which the service ends after a silent minute, and detects whether it
// hangs.
func (s *session) ping() error {
	if s.answers.Swap(0) > 0 || !s.pongs.Load() {
		s.silent = 0
	} else if s.silent++; s.silent > 1 {
		return errHangs
	}
	s.pings.Add(1)
	_ = s.stream.Send(&pubsubpb.StreamingPullRequest{}) // if it fails, receive returns the cause
	return nil
}

// why returns the cause of ctx if it has ended, and otherwise err.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
