package pubsub

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
)

// Run hears the topic's events through a subscription of its own until ctx ends, and is there again after every failure.
//
// hear gets each event, from one goroutine, at least once; of one election the first deliveries come in the order in which they were
// published. Among them are events from before live(true). live says when hearing begins and when it ends, in turns, beginning with true; see
// the package's comment for what it promises. It is told from one goroutine; live(false) comes after the last hear, and at the end if live(true)
// was before. Neither may block.
//
// Run ends within 3 s of ctx: it stops hearing and deletes the subscription. Its error is that this could not be done; Pub/Sub then deletes the
// subscription after a day.
func (b *Bus) Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error {
	h := &hearing{Bus: b, hear: hear, tell: live}
	h.name.Store(new(b.newSubscription()))
	var tending sync.WaitGroup
	tending.Go(func() { h.tend(ctx) })
	for failures := 0; ctx.Err() == nil; failures++ {
		err := h.session(ctx)
		if h.lasted() {
			failures = 0
		}
		h.deaf(ctx, err)
		h.pause(ctx, failures)
	}
	tending.Wait()
	return h.unsubscribe(ctx)
}

// hearing is one Run.
type hearing struct {
	*Bus
	name     atomic.Pointer[string] // of the subscription
	forsaken []string               // subscriptions of before, to be deleted
	hear     func(leadership.Event)
	tell     func(live bool)

	since     time.Time  // when live began; zero while deaf
	cause     codes.Code // of being deaf, as it was last logged
	strangers int        // messages that were no events
	logged    time.Time  // when one of them was
}

// lasted says whether what just ended was more than another failure.
func (h *hearing) lasted() bool { return !h.since.IsZero() && time.Since(h.since) > h.probe }

// live says that hearing has begun.
func (h *hearing) live(ctx context.Context) {
	h.since, h.cause = time.Now(), codes.OK
	h.log.LogAttrs(ctx, slog.LevelInfo, "events are heard", slog.String("topic", h.topic), slog.String("subscription", h.subscription()))
	h.tell(true)
}

// deaf says that hearing has ended, if it had begun. The log has each cause once.
func (h *hearing) deaf(ctx context.Context, err error) {
	if cause := status.Code(err); ctx.Err() == nil && (!h.since.IsZero() || cause != h.cause) {
		h.cause = cause
		h.log.LogAttrs(ctx, slog.LevelWarn, "events are not heard", slog.String("topic", h.topic), slog.Any("cause", err))
	}
	if !h.since.IsZero() {
		h.since = time.Time{}
		h.tell(false)
		h.forsake()
	}
}

func (h *hearing) subscription() string { return *h.name.Load() }

// forsake leaves a subscription whose stream has broken for another one. What was on its way comes again after the deadline of its
// acknowledgement only, and holds up what follows in its election; who listens looks into the store at live(true), and so misses nothing.
func (h *hearing) forsake() {
	h.forsaken = append(h.forsaken, h.subscription())
	h.name.Store(new(h.newSubscription()))
}

// pause waits before the next try.
func (h *hearing) pause(ctx context.Context, failures int) {
	timer := time.NewTimer(backoff(h.probe, failures))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// backoff is how long to pause after so many failures before the last: at first a 32nd of probe, twice as long each time, up to probe; or down
// to half of that, so that not all instances come at once.
func backoff(probe time.Duration, failures int) time.Duration {
	longest := probe >> max(5-failures, 0)
	return longest/2 + rand.N(longest/2+1)
}
