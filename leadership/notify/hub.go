package notify

import (
	"cmp"
	"context"
	"sync"
	"time"

	"regent/leadership"
)

// History is where a Hub reads what it was not told. A *leadership.Service is one.
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
	// Poll is how often a watcher looks into the history by itself while the hub is not live: 5 s if it is zero.
	Poll time.Duration
}

// Hub passes the events of one process on. All methods may be called at the same time.
type Hub struct {
	history History
	poll    time.Duration
	journal journal

	mu     sync.Mutex // guards all below, and the topics
	live   bool
	epoch  int                            // how often SetLive was called
	topics map[leadership.Election]*topic // of those elections that somebody listens to
	closed chan struct{}
	cause  error // once closed is closed
}

// New returns a hub.
func New(c Config) *Hub {
	h := &Hub{
		history: c.History,
		poll:    cmp.Or(c.Poll, 5*time.Second),
		live:    c.Live,
		topics:  make(map[leadership.Election]*topic),
		closed:  make(chan struct{}),
	}
	h.journal.init(h)
	return h
}

// Publish passes events on. It does not block. Events that were heard before, and those that are older, are no news.
func (h *Hub) Publish(events ...leadership.Event) {
	h.mu.Lock()
	for _, e := range events {
		if t, ok := h.topics[e.Election]; ok {
			t.hear(e)
		}
	}
	h.mu.Unlock()
	h.journal.hear(events)
}

// Live says whether the hub is told of every event.
func (h *Hub) Live() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live
}

// SetLive says whether the hub is told of every event from now on. Whenever it is called all who listen are woken, for something may have
// happened before.
func (h *Hub) SetLive(live bool) {
	h.mu.Lock()
	h.live = live
	h.epoch++
	for _, t := range h.topics {
		t.synced = false
		t.wake()
	}
	h.mu.Unlock()
	h.journal.resync()
}

// Run keeps what the feeds stand on, until ctx ends. Without it nothing but the feeds comes to a halt.
func (h *Hub) Run(ctx context.Context) { h.journal.run(ctx) }

// Close ends all watches and feeds with the cause, now and later.
func (h *Hub) Close(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.cause = cause
		close(h.closed)
	}
}

// Current says whether the election's newest revision is known to be that one, without a look: somebody listens, has looked, and nothing was
// heard since.
func (h *Hub) Current(e leadership.Election, r leadership.Revision) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[e]
	return ok && h.live && t.synced && r == max(t.end, t.newest.Revision)
}

// Listened says whether anybody listens to the election.
func (h *Hub) Listened(e leadership.Election) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.topics[e]
	return ok
}

// Done is closed once the hub is.
func (h *Hub) Done() <-chan struct{} { return h.closed }

// Cause is what Close was given; nil before.
func (h *Hub) Cause() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

// Listener is woken when something may have happened to an election.
type Listener struct {
	hub      *Hub
	election leadership.Election
	c        chan struct{}
}

// Listen returns a listener to the election, to be closed by its owner.
func (h *Hub) Listen(e leadership.Election) *Listener {
	l := &Listener{hub: h, election: e, c: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[e]
	if !ok {
		t = newTopic()
		h.topics[e] = t
	}
	t.listeners[l] = struct{}{}
	return l
}

// C is sent to when an event was heard, and when the hub begins or ceases to be live: once for all that happened since it was last read
// from.
func (l *Listener) C() <-chan struct{} { return l.c }

// Newest is the newest event that was heard while anybody listened to the election; its Revision is 0 if there was none.
func (l *Listener) Newest() leadership.Event {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.hub.topics[l.election].newest
}

// Close ends the listening. To do it twice is the same as once; nothing else may be called after it.
func (l *Listener) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	t, ok := l.hub.topics[l.election]
	if !ok {
		return
	}
	delete(t.listeners, l)
	if len(t.listeners) == 0 {
		delete(l.hub.topics, l.election)
	}
}

func (l *Listener) wake() {
	select {
	case l.c <- struct{}{}:
	default:
	}
}
