package queue

import (
	"time"

	"regent/leadership"
	"regent/leadership/notify"
)

// How the heads of different instances keep out of each other's way.
const (
	eventSpread = 10 * time.Millisecond  // after an event that all hear at about the same time
	timerSpread = 100 * time.Millisecond // after an end that all know
)

// soon is within what time an instance finds out about a lease of which it knows nothing but that it was granted: no lease is over sooner.
const soon = leadership.MinLeaseDuration

// learn takes the store's word that did not come by an attempt of this line.
func (l *line) learn(lease leadership.Lease) {
	now := l.q.c.Now()
	if !l.known.learn(lease, l.q.opens(lease, now), now) {
		return
	}
	l.news = true
	l.failures.last = nil
	l.pollLater(now)
	if l.known.open > now {
		l.askAt(l.known.open + l.q.jitter(timerSpread))
	} else {
		l.askAt(now) // it was released here, and nobody else has heard of it yet
	}
}

// hear takes the word of an event. Those before it may not have been heard: what it says of the lease counts, more than its type.
func (l *line) hear(e leadership.Event, now time.Duration) {
	same := l.known.hear(e, now)
	switch {
	case !same && e.LeaderID != "":
		l.known.open = now + soon
		l.askAt(now + soon/2 + l.q.jitter(soon/2))
	case e.Type == leadership.EventExpired:
		if !same {
			l.known.open = now + l.known.lease.Config.LockDelay
		}
		l.askAt(min(l.next, l.known.open+l.q.jitter(eventSpread)))
	case !same, e.Type == leadership.EventDeleted:
		l.askAt(now + l.q.jitter(eventSpread))
	case e.Type == leadership.EventConfigured: // the lock delay may have become shorter
		l.askAt(min(l.next, now+l.q.jitter(soon)))
	}
}

// askAt says when the head asks. What became of an attempt is found out without delay.
func (l *line) askAt(at time.Duration) {
	if l.failures.unsettled {
		at = min(at, l.next)
	}
	if at < l.next {
		signal(l.wake)
	}
	l.next = at
}

// pollLater counts the time until the next poll anew.
func (l *line) pollLater(now time.Duration) {
	poll := l.q.c.Poll
	l.poll = now + poll + l.q.jitter(poll/4)
}

// hearing is how the runner hears of what happens. It is the runner's alone.
type hearing struct {
	events *notify.Listener
	doubts *notify.Listener    // to no election: it hears only when the hub begins, or begins anew, or ceases to be live
	doubt  bool                // it has heard so since the runner listened last
	seen   leadership.Revision // of the newest event when it did
	live   bool                // what the hub said then
}

func (h *hearing) start(hub *notify.Hub, e leadership.Election) {
	h.events, h.doubts = hub.Listen(e), hub.Listen("")
	h.seen, h.live = h.events.Newest().Revision, hub.Live() // the attempt that follows knows more
}

func (h *hearing) stop() {
	h.events.Close()
	h.doubts.Close()
}

// listen hears what there is to be heard. When events come again after some may have been missed, the head looks once more.
func (l *line) listen() {
	h := &l.hearing
	e, live := h.events.Newest(), l.q.c.Hub.Live()
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	now := l.q.c.Now()
	if e.Revision != h.seen && e.Revision > l.known.revision {
		l.hear(e, now)
	}
	if h.doubt && live {
		l.askAt(min(l.next, now+l.q.jitter(soon)))
	}
	if h.live && !live {
		l.poll = now + l.q.jitter(l.q.c.Poll)
	}
	h.doubt, h.seen, h.live = false, e.Revision, live
}
