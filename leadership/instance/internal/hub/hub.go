package hub

import (
	"cmp"
	"context"
	"time"

	"regent/leadership"
)

// History is where a Hub reads what it was not told. A *leadership.Service is one. Its calls end with their context.
type History interface {
	Events(context.Context, leadership.EventsRequest) ([]leadership.Event, error)
	Since(context.Context, time.Time) (leadership.Recent, error)
	Now(context.Context) (time.Time, error)
}

// Config is how a Hub is made. History is required.
type Config struct {
	History History
	// Live says that the hub is told of every event without anybody's help: that nobody but this process changes the store.
	Live bool
	// Poll is how often the hub looks into the history by itself, for those who listen, while it is not live: 5 s if it is zero.
	Poll time.Duration
}

// Hub passes the events of one process on. All methods may be called at the same time.
type Hub struct {
	history History
	asks    chan struct{} // has one for each look into the history that is under way
	poll    time.Duration
	journal *journal
	life    context.Context // ends when the hub is closed
	end     context.CancelCauseFunc

	mu     belfry // guards all below, and the topics
	live   bool
	topics map[leadership.Election]*topic // of those elections that somebody listens to
}

// New returns a hub.
func New(c Config) *Hub {
	h := &Hub{
		history: c.History,
		asks:    make(chan struct{}, maxAsks),
		poll:    cmp.Or(c.Poll, 5*time.Second),
		live:    c.Live,
		topics:  make(map[leadership.Election]*topic),
	}
	h.journal = &journal{hub: h, size: maxEntries, wake: make(chan struct{}, 1)}
	h.life, h.end = context.WithCancelCause(context.Background())
	return h
}

// Publish passes events on. It does not block. Events that were heard before, and those that are older, are no news.
func (h *Hub) Publish(events ...leadership.Event) {
	h.hear(events)
	h.journal.hear(events)
}

func (h *Hub) hear(events []leadership.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		if t, ok := h.topics[e.Election]; ok && t.hear(e) {
			h.wake(t)
		}
	}
}

// Live says whether the hub is told of every event.
func (h *Hub) Live() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live
}

// SetLive says whether the hub is told of every event from now on. All who listen are woken, whenever it is called. When it is, the history is
// looked into, for something may have happened before; when it is not, each Config.Poll.
func (h *Hub) SetLive(live bool) {
	h.doubt(live)
	h.journal.doubt()
}

func (h *Hub) doubt(live bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = live
	for _, t := range h.topics {
		t.doubt(live)
		h.wake(t)
	}
}

// wake wakes all who listen to an election.
func (h *Hub) wake(t *topic) {
	for l := range t.listeners {
		signal(l.c)
	}
	h.mu.ring(&t.news)
}

// Run keeps what the feeds stand on, until ctx ends or the hub is closed. It is called once. Without it feeds come to a halt, and nothing
// else.
func (h *Hub) Run(ctx context.Context) { h.journal.run(ctx) }

// Close ends all watches and feeds with the cause, now and later. To do it again changes nothing.
func (h *Hub) Close(cause error) { h.end(cause) }

// Done is closed once the hub is.
func (h *Hub) Done() <-chan struct{} { return h.life.Done() }

// Cause is what Close was given; nil before.
func (h *Hub) Cause() error { return context.Cause(h.life) }

// Current says whether it is known without a look that nothing has come after that revision of the election: somebody watches it, and has
// come to just that one.
func (h *Hub) Current(e leadership.Election, r leadership.Revision) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[e]
	return ok && h.live && t.synced && t.head() == r && t.heard <= r
}

// topic returns the topic of an election, and begins it if need be. The mutex is held, as it is for tidy and wake.
func (h *Hub) topic(e leadership.Election) *topic {
	t, ok := h.topics[e]
	if !ok {
		t = newTopic(e)
		h.topics[e] = t
	}
	return t
}

// tidy forgets a topic to which nobody listens any more.
func (h *Hub) tidy(t *topic) {
	if len(t.listeners) == 0 && len(t.watches) == 0 && h.topics[t.election] == t {
		delete(h.topics, t.election)
	}
}

// Listened says whether anybody listens to the election.
func (h *Hub) Listened(e leadership.Election) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.topics[e]
	return ok
}
