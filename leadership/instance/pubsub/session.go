package pubsub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

const (
	ackDeadline    = 10 * time.Second // the least that Pub/Sub allows; what is heard is acknowledged within moments
	maxUnacked     = 1000             // messages
	maxUnackedSize = 16 << 20
	maxAcks        = 1000 // in one request
	protocol       = 1    // of the stream: pings are answered
)

var errHangs = errors.New("the stream answers no pings any more")

// session is one stream, with all that it stands on: when any of it breaks all is made anew, so that nothing half broken is built upon.
type session struct {
	*hearing
	client *apiv1.SubscriptionAdminClient
	stream pubsubpb.Subscriber_StreamingPullClient
	acks   chan []string // to be acknowledged
	heard  chan struct{} // of one: messages have come

	answers atomic.Int32 // that have come since the last ping
	pongs   atomic.Bool  // pings were answered
	silent  int          // pings without an answer
}

// session hears until something breaks or ctx ends, and returns why.
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
	stream, err := s.client.StreamingPull(ctx)
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
	if err != nil && !errors.Is(err, io.EOF) { // of which Recv knows more
		return nil, err
	}
	return stream, nil
}

// receive passes on what comes, and returns why nothing comes any more.
func (s *session) receive(ctx context.Context) error {
	for {
		r, err := s.stream.Recv()
		if err != nil {
			return fmt.Errorf("the stream ended: %w", err)
		}
		s.answers.Add(1)
		if len(r.GetReceivedMessages()) == 0 {
			s.pongs.Store(true)
			continue
		}
		select {
		case s.heard <- struct{}{}:
		default:
		}
		s.take(ctx, r.GetReceivedMessages())
	}
}

// take hears messages, and has them acknowledged whatever they are. Those that find no place in line come again.
func (s *session) take(ctx context.Context, messages []*pubsubpb.ReceivedMessage) {
	ids := make([]string, 0, len(messages))
	for _, m := range messages {
		ids = append(ids, m.GetAckId())
		if e, err := decode(m.GetMessage()); err != nil {
			s.strange(ctx, m.GetMessage().GetMessageId(), err)
		} else {
			s.hear(e)
		}
	}
	select {
	case s.acks <- ids:
	default:
	}
}

// strange logs that a message is no event, once a minute at most.
func (s *session) strange(ctx context.Context, id string, err error) {
	s.strangers++
	if now := time.Now(); s.logged.IsZero() || now.Sub(s.logged) > time.Minute {
		s.logged = now
		s.log.LogAttrs(ctx, slog.LevelWarn, "a message of the topic is no event",
			slog.String("message", id), slog.Int("soFar", s.strangers), slog.Any("cause", err))
	}
}

// acknowledge sends acknowledgements, all that wait in one request. What it cannot send comes again.
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

// waiting adds what else waits, as far as one request takes it.
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
	// An error is not looked at: a probe finds whatever is behind it.
	_ = s.client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: s.subscription(), AckIds: ids})
}

// settle is for how long a stream must not have been refused to count as open: the service says nothing while there is nothing to say.
const settle = 100 * time.Millisecond

// watch says that hearing has begun once it has, and returns why it has ended.
func (s *session) watch(ctx context.Context) error {
	if err := s.look(ctx, s.client); err != nil {
		return why(ctx, err)
	}
	begin := time.NewTimer(settle)
	defer begin.Stop()
	select {
	case <-begin.C:
		s.live(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.listen(ctx)
}

// listen returns when there is nothing to be heard any more.
func (s *session) listen(ctx context.Context) error {
	ping, probe := time.NewTicker(s.probe), time.NewTimer(s.probe)
	defer ping.Stop()
	defer probe.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.heard:
			probe.Reset(s.probe)
		case <-s.doubt:
			probe.Reset(0)
		case <-probe.C:
			err = s.look(ctx, s.client)
			probe.Reset(s.probe)
		case <-ping.C:
			err = s.ping()
		}
		if err != nil {
			return why(ctx, err)
		}
	}
}

// ping keeps the stream open, which the service ends after a minute without a word, and finds out whether it hangs.
func (s *session) ping() error {
	if s.answers.Swap(0) > 0 || !s.pongs.Load() {
		s.silent = 0
	} else if s.silent++; s.silent > 1 {
		return errHangs
	}
	_ = s.stream.Send(&pubsubpb.StreamingPullRequest{}) // if it fails, receive knows why
	return nil
}

// why prefers what ended ctx to the error of a call that it ended.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
