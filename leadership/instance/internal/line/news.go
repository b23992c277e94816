package line

import (
	"time"

	"regent/leadership"
)

// How the heads of different instances keep out of each other's way.
const (
	eventSpread = 10 * time.Millisecond  // after an event that all hear at about the same time
	timerSpread = 100 * time.Millisecond // after an end that all know
)

// soon is within what time an instance finds out about a lease of which it knows nothing but that it was granted: no lease is over sooner.
const soon = leadership.MinLeaseDuration

// Learn takes the store's word that did not come by an attempt of this line.
func (l *Line) Learn(lease leadership.Lease, now time.Duration) {
	if !l.known.learn(lease, l.common.opens(lease, now), now) {
		return
	}
	l.news = true
	l.failures.last = nil
	l.pollLater(now)
	if l.known.open > now {
		l.askAt(l.known.open + l.common.jitter(timerSpread))
	} else {
		l.askAt(now) // it was released here, and nobody else has heard of it yet
	}
}

// hear takes the word of an event. Those before it may not have been heard: what it says of the lease counts, more than its type.
func (l *Line) hear(e leadership.Event, now time.Duration) {
	same := l.known.hear(e, now)
	switch {
	case !same && e.LeaderID != "":
		l.known.open = now + soon
		l.askAt(now + soon/2 + l.common.jitter(soon/2))
	case e.Type == leadership.EventExpired:
		if !same {
			l.known.open = now + l.known.lease.Config.LockDelay
		}
		l.askAt(min(l.next, l.known.open+l.common.jitter(eventSpread)))
	case !same, e.Type == leadership.EventDeleted:
		l.askAt(now + l.common.jitter(eventSpread))
	case e.Type == leadership.EventConfigured: // the lock delay may have become shorter
		l.askAt(min(l.next, now+l.common.jitter(soon)))
	}
}

// askAt says when the head asks. What became of an attempt is found out without delay.
func (l *Line) askAt(at time.Duration) {
	if l.failures.unsettled {
		at = min(at, l.next)
	}
	if at < l.next {
		l.wake()
	}
	l.next = at
}

// pollLater counts the time until the next poll anew.
func (l *Line) pollLater(now time.Duration) {
	poll := l.common.Poll
	l.poll = now + poll + l.common.jitter(poll/4)
}

// hearing is what was heard of the election when the line listened last.
type hearing struct {
	seen leadership.Revision // of the newest event
	live bool                // whether all events were heard
}

// Tune sets where hearing begins, before the first Turn: the attempt that follows knows more.
func (l *Line) Tune(newest leadership.Revision, live bool) { l.hearing = hearing{newest, live} }

// Listen takes the newest event that was heard of the election, and whether all are heard now. With doubt some may have been missed since it was
// called last: when events come again, the head looks once more.
func (l *Line) Listen(newest leadership.Event, live, doubt bool, now time.Duration) {
	if newest.Revision != l.hearing.seen && newest.Revision > l.known.revision {
		l.hear(newest, now)
	}
	if doubt && live {
		l.askAt(min(l.next, now+l.common.jitter(soon)))
	}
	if l.hearing.live && !live {
		l.poll = now + l.common.jitter(l.common.Poll)
	}
	l.hearing = hearing{newest.Revision, live}
}
