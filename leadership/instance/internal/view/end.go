package view

import (
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/rule"
)

// end is the end of a lease that this instance looks after.
type end struct {
	revision  leadership.Revision // of the lease; 0 if there is no lease to look after
	due       time.Duration       // when to look
	looking   bool
	failed    int // looks in a row without an answer
	elsewhere int // looks in a row that found it renewed through another instance

	// The last renewals here, none of which came after the end that the one before it had promised:
	// when they began, and the end that the last one has promised; 0 if there was none since the
	// last look.
	since, promised time.Duration

	token leadership.Token // of the last renewal here
	lease time.Duration    // the lease duration in the last renewal here
}

const (
	// delay is the least time from the end of a lease to the look, so that a waiting candidate
	// comes first; it is longer than the store's guard. A random part of spread is added, so that
	// of several instances mostly one looks.
	delay  = 250 * time.Millisecond
	spread = 500 * time.Millisecond
	// driftPart is the drift between the clocks of this machine and of the store: one part in 1000.
	driftPart = 1000
	// maxFailed is how many looks after one lease may fail until it is given up; with the pauses
	// between them this takes more than a minute.
	maxFailed  = 8
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
	// longest is the longest pause between two looks at a lease that is renewed elsewhere, and that
	// no candidate waits for: with four times the pause before, that makes 14 looks in an hour.
	longest = 6 * time.Minute
	growth  = 4
	// After moving looks that found the lease renewed elsewhere, an instance that renews it again
	// does not assume that it is the last renewer, until all renewals for settled leases came here.
	moving  = 2
	settled = 4
)

// dueAfter returns when to look after a lease that ends left from now.
func (v *View) dueAfter(left, now time.Duration) time.Duration {
	return now + left + left/driftPart + delay + v.c.Jitter(spread)
}

// learnEnd notes the end of a lease, and forgets one that was recorded as ended.
func (e *Election) learnEnd(l *leadership.Lease, from Source, now time.Duration) {
	switch t := &e.end; {
	case l.Revision < t.revision: // a later reply was faster
	case l.Revision == t.revision && l.State == leadership.Held:
		left := l.ExpiresIn
		if from == Committed {
			left = e.renewed(l, now)
		}
		t.due, t.failed = max(t.due, e.view.dueAfter(left, now)), 0
	case l.Revision == t.revision: // it is over, and its end is not recorded yet
	case l.State == leadership.Held && (from == Committed || t.revision > 0):
		*t = end{revision: l.Revision, due: e.view.dueAfter(l.ExpiresIn, now), elsewhere: t.elsewhere}
		if from == Committed {
			t.elsewhere, t.since, t.promised = 0, now, now+l.ExpiresIn
			e.noteRenewal(l, now)
		}
	default:
		*t = end{}
	}
}

// renewed notes a renewal by this instance, and returns the time until the look. If a leader's
// renewals reach several instances in turn, the look is later: none of them knows that it is the
// last, and each would look in vain at the end that it knows. By then the leader has mostly come
// back here.
func (e *Election) renewed(l *leadership.Lease, now time.Duration) (left time.Duration) {
	t := &e.end
	if now > t.promised {
		t.since = now
	}
	t.promised = now + l.ExpiresIn
	e.noteRenewal(l, now)
	moves := t.elsewhere >= moving && now-t.since < settled*l.LeaseDuration
	switch {
	case moves && e.waiters == 0 && !last(l):
		return max(l.ExpiresIn, roaming(l.LeaseDuration))
	case t.elsewhere > 0:
		t.due = 0 // it may be after the new end
	}
	if !moves && t.elsewhere >= moving {
		t.elsewhere = 0
	}
	return l.ExpiresIn
}

// last reports whether no renewal extends the lease any more, so that the look is at its end,
// wherever its leader renews.
func last(l *leadership.Lease) bool {
	return !l.EndsBy.IsZero() && !l.LeaseExpiration.Before(l.EndsBy)
}

// roaming returns how long a leader that also renews elsewhere may take until it comes back: four
// leases, but no more than six minutes beyond one.
func roaming(lease time.Duration) time.Duration { return min(settled*lease, lease+longest) }

// Follow records the end of a lease for a watcher, unless that is arranged already: the instance
// that granted it may be gone. The remaining time of the lease counts from now.
func (v *View) Follow(l leadership.Lease, now time.Duration) {
	if l.State != leadership.Held {
		return
	}
	if e := v.election(l.Election); l.Revision > e.end.revision {
		e.end = end{revision: l.Revision, due: v.dueAfter(l.ExpiresIn, now), elsewhere: 1}
		v.settle(e)
	}
}

// hearEnd forgets a lease if the event says that its term has ended or that another has begun. One
// whose leader has yielded ends soon.
func (e *Election) hearEnd(event leadership.Event, now time.Duration) {
	if event.Revision > e.end.revision && (event.LeaderID == "" || event.Type == leadership.EventAcquired) {
		e.end = end{}
		return
	}
	if event.Type == leadership.EventYielded && event.Revision > e.end.revision && e.end.revision > 0 {
		e.end.due = min(e.end.due, e.view.dueAfter(rule.YieldWindow, now))
	}
}

// Expired handles the result of a task to record the end of a lease: the election, or an error. It
// reports whether that is news to a line, and whether the lease was given up without an answer.
func (v *View) Expired(t Task, l leadership.Lease, err error, asked, now time.Duration) (wake, gaveUp bool) {
	e, ok := v.elections[t.Election]
	if !ok {
		return false, false
	}
	if e.end.looking && e.end.revision == t.revision { // otherwise it was forgotten meanwhile
		e.end.looking = false
		gaveUp = !e.conclude(&l, err, now)
	}
	if err == nil {
		wake = e.learn(&l, asked, now, v.opens(&l, now), false)
	}
	v.settle(e)
	return wake, gaveUp
}

// conclude handles the result of a look: the lease is finished, or looked after again; ok is false
// if it is given up.
func (e *Election) conclude(l *leadership.Lease, err error, now time.Duration) (ok bool) {
	t := &e.end
	unanswered := errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown)
	early := err == nil && l.State == leadership.Vacant && l.Revision == t.revision // but for the store's guard
	switch {
	case t.due > now: // it was renewed meanwhile
	case (unanswered || early) && t.failed+1 < maxFailed:
		t.due = now + backoff.After(t.failed, firstPause, maxPause)
		t.failed++
	case err == nil && l.State == leadership.Held && (e.listened() || t.promised > 0): // it was renewed here since the last look
		e.follow(l, now)
	default: // if it was renewed through another instance, that one looks after it
		*t = end{}
		return err == nil
	}
	return true
}

// follow plans another look after a lease that was renewed elsewhere, because the instance there
// may stop. For watchers it looks less and less often, and without listeners once more, unless the
// leader comes back before.
func (e *Election) follow(l *leadership.Lease, now time.Duration) {
	left := l.ExpiresIn
	switch {
	case last(l):
	case !e.listened():
		left = max(left, roaming(l.LeaseDuration))
	case e.waiters == 0:
		pause := min(l.LeaseDuration, longest)
		for range e.end.elsewhere {
			pause = min(pause*growth, longest)
		}
		left = max(left, pause)
	}
	e.end = end{revision: l.Revision, due: e.view.dueAfter(left, now), elsewhere: e.end.elsewhere + 1}
}
