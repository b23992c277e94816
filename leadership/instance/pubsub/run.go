//go:build !regent_local

package pubsub

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
)

// Run hears the topic's events through a subscription of its own until ctx ends, and starts again
// after every failure.
//
// hear gets each event at least once, from one goroutine; first deliveries of an election come in
// the order in which they were published. Some events may be older than live(true). live is called
// alternately with true and false, true first, when hearing begins and ends; see the package
// comment for its promise. It is called from one goroutine; live(false) comes after the last hear,
// and at the end if live(true) came before. Neither may block.
//
// Run ends within 3 s of ctx: it stops hearing and deletes the subscription. Its error says that
// the subscription could not be deleted; Pub/Sub then deletes it after a day.
func (b *Bus) Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error {
	return b.run(ctx, &hearing{what: "events", ordered: true, tell: live, hear: func(m *pubsubpb.PubsubMessage) error {
		e, err := decode(m)
		if err == nil {
			hear(e)
		}
		return err
	}})
}

// run hears messages until ctx ends.
func (c *connection) run(ctx context.Context, h *hearing) error {
	h.connection = c
	h.name.Store(new(c.newSubscription()))
	var tending sync.WaitGroup
	tending.Go(func() { h.tend(ctx) })
	delay := c.backoff()
	for ctx.Err() == nil {
		err := h.session(ctx)
		if h.lasted() {
			delay.Reset()
		}
		h.deaf(ctx, err)
		backoff.Sleep(ctx, delay.Next())
	}
	tending.Wait()
	return h.unsubscribe(ctx)
}

// backoff returns the pauses between two sessions: from a 32nd of probe up to probe.
func (c *connection) backoff() backoff.Backoff {
	return backoff.Backoff{Min: c.probe / 40, Max: c.probe * 4 / 5} // a quarter more or less
}

// hearing is one Run.
type hearing struct {
	*connection
	what    string // the kind of messages, for the log
	ordered bool   // messages of one key come in order
	// hear handles a message. The error says why it cannot be used.
	hear func(*pubsubpb.PubsubMessage) error
	tell func(live bool)

	name     atomic.Pointer[string] // of the subscription
	forsaken []string               // names of former subscriptions, to be deleted

	since     time.Time  // when live began; zero while deaf
	cause     codes.Code // why hearing has ended, as last logged
	strangers int        // how many messages could not be used
	logged    time.Time  // when one of these was last logged
}

// lasted reports whether hearing was live for longer than a probe.
func (h *hearing) lasted() bool { return !h.since.IsZero() && time.Since(h.since) > h.probe }

// live reports that hearing has begun.
func (h *hearing) live(ctx context.Context) {
	h.since, h.cause = time.Now(), codes.OK
	h.log.LogAttrs(ctx, slog.LevelInfo, h.what+" are heard",
		slog.String("topic", h.topic), slog.String("subscription", h.subscription()))
	h.tell(true)
}

// deaf reports that hearing has ended, if it had begun. Each cause is logged once.
func (h *hearing) deaf(ctx context.Context, err error) {
	if cause := status.Code(err); ctx.Err() == nil && (!h.since.IsZero() || cause != h.cause) {
		h.cause = cause
		h.log.LogAttrs(ctx, slog.LevelWarn, h.what+" are not heard", slog.String("topic", h.topic), slog.Any("cause", err))
	}
	if !h.since.IsZero() {
		h.since = time.Time{}
		h.tell(false)
		h.forsaken = append(h.forsaken, h.subscription())
		h.name.Store(new(h.newSubscription()))
	}
}

func (h *hearing) subscription() string { return *h.name.Load() }
