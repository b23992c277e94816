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

// hear takes the word of an event.
func (l *line) hear(e leadership.Event, now time.Duration) {
	same := l.known.hear(e, now)
	switch e.Type {
	case leadership.EventReleased, leadership.EventDeleted, leadership.EventRecreated:
		l.askAt(now + l.q.jitter(eventSpread))
	case leadership.EventExpired:
		l.known.open = now + l.known.lease.Config.LockDelay
		l.askAt(min(l.next, l.known.open+l.q.jitter(eventSpread)))
	case leadership.EventAcquired:
		l.known.open = now + soon
		l.askAt(now + soon/2 + l.q.jitter(soon/2))
	default:
		if !same || e.Type == leadership.EventConfigured { // the lock delay may have become shorter
			l.askAt(min(l.next, now+l.q.jitter(soon)))
		}
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

// hearing is how the runner hears of events.
type hearing struct {
	listener *notify.Listener
	woken    bool                // since it looked last
	seen     leadership.Revision // of the newest event then
	live     bool                // what the hub said then
}

// look returns the newest event and whether the hub is live; again says that events may have been missed.
func (h *hearing) look(hub *notify.Hub) (e leadership.Event, news, again bool) {
	for done := false; !done; {
		e = h.listener.Newest()
		select {
		case <-h.listener.C():
			h.woken = true
		default:
			done = true
		}
	}
	live := hub.Live()
	news = e.Revision != h.seen
	again = live && (!h.live || h.woken && !news)
	h.woken, h.seen, h.live = false, e.Revision, live
	return e, news, again
}

// listen hears what there is to be heard.
func (l *line) listen() {
	wasLive := l.hearing.live
	e, news, again := l.hearing.look(l.q.c.Hub)
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	now := l.q.c.Now()
	if news && e.Revision > l.known.revision {
		l.hear(e, now)
	} else if again {
		l.askAt(min(l.next, now+l.q.jitter(soon)))
	}
	if wasLive && !l.hearing.live {
		l.poll = now + l.q.jitter(l.q.c.Poll)
	}
}
