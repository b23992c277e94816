package hub

import "regent/leadership"

// Listener is woken when something may have happened to an election.
type Listener struct {
	hub   *Hub
	topic *topic
	c     chan struct{}
}

// Listen returns a listener to the election, to be closed by its owner.
func (h *Hub) Listen(e leadership.Election) *Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &Listener{hub: h, topic: h.topic(e), c: make(chan struct{}, 1)}
	l.topic.listeners[l] = struct{}{}
	return l
}

// C is sent to when an event was heard that is news, and whenever SetLive is called: once for all that happened since it was last read from.
func (l *Listener) C() <-chan struct{} { return l.c }

// Newest is the newest event that was heard, or read by a watch, while anybody listened to the election; its Revision is 0 if there was none.
// It is a hint: one that turned out to be made up is forgotten again.
func (l *Listener) Newest() leadership.Event {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.topic.newest()
}

// Close ends the listening. To do it twice is the same as once.
func (l *Listener) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	delete(l.topic.listeners, l)
	l.hub.tidy(l.topic)
}
