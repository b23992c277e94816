package line

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// How the heads of different instances keep out of each other's way.
const (
	eventSpread = 10 * time.Millisecond  // after an event that all hear at about the same time
	timerSpread = 100 * time.Millisecond // after an end that all know
)

// soon is when the head asks about a lease of which it knows only the grant: no lease ends sooner.
const soon = leadership.MinLeaseDuration

// seen is what the line has taken from the view.
type seen struct {
	version int
	terms   int
	orders  int
	halts   int
	epoch   int
	putOff  int
	live    bool
	parent  int // the version of the parent
}

// notice looks at what was learnt and heard since it was last called, and says when the head asks.
func (l *Line) notice(now time.Duration) {
	last := l.seen
	l.see()
	if l.seen.version != last.version {
		l.outdated()
		switch e := l.election.Event(); {
		case len(l.seats) > 0:
			l.seatsChanged(now)
		case e == nil:
			l.learnt(now)
		default:
			l.heard(*e, l.seen.terms != last.terms, now)
		}
	}
	if open := l.open(now); l.seen.putOff != last.putOff && l.next == l.end && l.next < open {
		l.askAtEnd(open)
	}
	if l.seen.parent != last.parent {
		l.adopt(now)
	}
	if l.seen.orders != last.orders {
		l.unbar(eventSpread, now)
	}
	if l.seen.halts != last.halts { // of perhaps thousands of elections
		l.unbar(soon, now)
	}
	if l.seen.epoch != last.epoch && l.seen.live { // something may have been missed
		l.unbar(soon, now)
		l.askAt(min(l.next, now+l.common.jitter(soon)))
	}
	if l.seen.epoch != last.epoch {
		l.rule.known, l.top.known = false, false // for the policy may be another
	}
	if last.live && !l.seen.live {
		l.poll = now + l.common.jitter(view.Poll)
		if l.bars.any() { // and what lifts them may not be heard any more
			l.unbar(view.Poll, now)
		}
	}
}

// see takes note of the view as it is.
func (l *Line) see() {
	v := l.common.View
	version, putOff := l.changed()
	l.seen = seen{version, l.election.Terms(), l.election.Orders(), l.common.halts(), v.Epoch(), putOff, v.Live(), l.parent.version()}
}

// recognize lets the places of a new leader be asked for before their turn. A caller there may have
// the lease by an earlier call, of this instance or another, whose answer it did not get.
func (l *Line) recognize(now time.Duration) {
	leader, token := l.election.Term()
	if token == l.term || !l.election.Leads(leader, now) {
		return
	}
	l.term = token
	for p := range l.each() {
		if p.request.CandidateID == leader && !p.drawn && len(p.callers) > 0 && p.told != token {
			l.prefer(p)
		}
	}
}

// learnt takes the store's word.
func (l *Line) learnt(now time.Duration) {
	l.failures.last = nil
	l.pollLater(now)
	l.learnRule()
	if known := l.election.Lease(); known != nil {
		l.challengedBy(known.Challenger)
	}
	if open := l.election.Open(); open > now {
		l.askAtEnd(open)
	} else {
		l.askAt(now) // it was released here, and the others have not heard of it yet
	}
}

// heard takes the word of an event; changed says that the leader is another, or gone.
func (l *Line) heard(e leadership.Event, changed bool, now time.Duration) {
	l.contest(e, changed)
	switch open := max(l.election.Open(), now); {
	case changed && e.LeaderID != "":
		l.bars.all, l.top.known = nil, false // or there would be no leader
		l.parent = parent{election: l.parent.election}
		l.askAt(now + soon/2 + l.common.jitter(soon/2))
	case e.Type == leadership.EventExpired:
		l.askAt(min(l.next, open+l.common.jitter(eventSpread)))
	case changed, e.Type == leadership.EventDeleted, e.Type == leadership.EventUnlocked:
		l.askAt(open + l.common.jitter(eventSpread))
	case e.Type == leadership.EventYielded: // the lease ends sooner; before that it is the successor's
		l.askAtEnd(open)
	case e.Type == leadership.EventConfigured: // the lock delay may have become shorter
		l.askAt(min(l.next, now+l.common.jitter(soon)))
	case l.next == never && l.asking == nil: // it came during an attempt, and the answer counts less
		l.askAt(now + l.common.jitter(soon))
	}
}

// contest takes from an event what it says of the ballot, and of who may challenge the leader.
func (l *Line) contest(e leadership.Event, changed bool) {
	if changed || e.Type == leadership.EventDeleted || e.Type == leadership.EventUnlocked {
		l.ballot = ballot{}
	}
	switch e.Type {
	case leadership.EventHandingOver:
		l.challenge(l.challenged || view.Preempts(e))
	case leadership.EventGoesOn:
		l.challengedBy("")
	case leadership.EventConfigured, leadership.EventRecreated:
		l.rule.known, l.top.known = false, false
	}
}

// askAt says when the head asks. What became of an attempt is found out without delay.
func (l *Line) askAt(at time.Duration) {
	if l.failures.unsettled {
		at = min(at, l.next)
	}
	l.next = at
}

// askAtEnd lets the head ask when the lease should be over.
func (l *Line) askAtEnd(open time.Duration) {
	l.end = open + l.common.jitter(timerSpread)
	l.askAt(l.end)
}

// pollLater counts the time until the next poll anew.
func (l *Line) pollLater(now time.Duration) {
	l.poll = now + view.Poll + l.common.jitter(view.Poll/4)
}
