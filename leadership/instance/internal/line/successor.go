package line

import (
	"time"

	"regent/leadership"
)

// successor is the place of the candidate to which the leader has yielded: it is asked for at once,
// wherever it stands, and no other is. nil if it does not stand here, cannot be asked for, or was
// refused the lease already: it may be another incarnation than the one that said it was ready.
func (l *Line) successor(now time.Duration) *place {
	to := l.election.Yielded(now)
	if to == "" {
		return nil
	}
	_, token := l.election.Term()
	for p := range l.each() {
		if p.request.CandidateID == to && p.passed != token && p.request.Role != leadership.RoleWitness && l.mayAsk(p, now) {
			return p
		}
	}
	return nil
}

const (
	// lookEvery is how often the store is asked for the named successor while not all events are
	// heard: the yield may not be.
	lookEvery = 500 * time.Millisecond
	// maxLooks is how often at most, once it is named and once more when it is ready: for a minute.
	maxLooks = 120
)

// heir counts how often the store was asked for a successor to which the leader has not yielded.
type heir struct {
	to    leadership.CandidateID
	token leadership.Token
	ready bool
	looks int
	next  time.Duration
}

// expected is the place of the candidate that the leader is to hand over to, if the line has to
// look for itself whether it has yielded; nil otherwise. at is when to look.
func (l *Line) expected(now time.Duration) (p *place, at time.Duration) {
	s := l.election.Succession(now)
	if l.seen.live || s.To == "" || s.Yielded || s.Left <= 0 {
		return nil, never
	}
	_, token := l.election.Term()
	if h := &l.heir; h.to != s.To || h.token != token || h.ready != s.Ready {
		*h = heir{to: s.To, token: token, ready: s.Ready, next: now + lookEvery}
	}
	if l.heir.looks >= maxLooks {
		return nil, never
	}
	for p := range l.each() {
		if p.request.CandidateID == s.To && !p.drawn && p.request.Role != leadership.RoleWitness && l.mayAsk(p, now) {
			return p, max(l.heir.next, l.failures.again)
		}
	}
	return nil, never
}

// looked notes an attempt for the named successor.
func (l *Line) looked(p *place, now time.Duration) {
	if h := &l.heir; h.to == p.request.CandidateID {
		h.looks++
		h.next = now + lookEvery
	}
}

// passed notes that the store has refused a yielded lease to a place. One that only lacks members
// of the electorate, or a parent whose lease goes on, asks again.
func (l *Line) passed(a *Attempt, refusal *leadership.Error) {
	short := refusal.Cause != nil && (refusal.Cause.Need > 0 || refusal.Cause.Code == leadership.ReasonParent)
	if refusal.Lease.Succession.Yielded && !short {
		a.place.passed = refusal.Lease.Token
	}
}

// Next is the best candidate to hand the lease over to: the first that would be asked for, but the
// leader, that the store has not barred as far as is known, and that has a key of its own. Without
// one it could not say that it is ready. "" if there is none.
func (l *Line) Next(leader leadership.CandidateID, now time.Duration) leadership.CandidateID {
	var best *place
	for p := range l.each() {
		switch {
		case p.drawn, p.request.CandidateID == leader, p.forfeit(now), l.class(p) != eligible:
		case l.bars.of(callerOf(p.request), now) != nil:
		case best == nil || l.precedes(p, best):
			best = p
		}
	}
	if best == nil {
		return ""
	}
	return best.request.CandidateID
}

// KeyOf is the key of the candidate that waits with one of its own or, if none does, that may be
// back at once: of several that of the first. Zero if it does not.
func (l *Line) KeyOf(c leadership.CandidateID, now time.Duration) (key leadership.KeyHash) {
	for p := range l.each() {
		switch {
		case p.request.CandidateID != c, p.drawn, p.forfeit(now), p.request.Role == leadership.RoleWitness:
		case len(p.callers) > 0:
			return p.request.Key.Hash()
		case key == leadership.KeyHash{}:
			key = p.request.Key.Hash()
		}
	}
	return key
}
