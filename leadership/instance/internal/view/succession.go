package view

import (
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// succession is the hand-over of the present term, as the store or events have described it.
type succession struct {
	leadership.Succession
	ends time.Duration // when Left is over
}

// learnt replaces the hand-over by the store's answer.
func (s *succession) learnt(l *leadership.Lease, now time.Duration) {
	*s = succession{l.Succession, now + l.Succession.Left}
}

// Preempts reports whether the event says that a better candidate has challenged the leader.
func Preempts(e leadership.Event) bool {
	return e.Type == leadership.EventHandingOver && e.ReadDetail().Because == rule.BecausePreempt
}

// handedOver reports whether the event ends a term whose successor was granted the lease in the
// same commit.
func handedOver(e leadership.Event) bool {
	return e.Type == leadership.EventReleased && e.ReadDetail().EndsBecause == leadership.EndsHandOver
}

// heard updates the hand-over by an event of the same term.
func (s *succession) heard(e leadership.Event, now time.Duration) {
	h := e.ReadDetail()
	switch e.Type {
	case leadership.EventHandingOver:
		ready := s.Ready && s.To == h.To
		*s = succession{Succession: leadership.Succession{To: h.To, Since: e.At, Ready: ready}}
		if s.ends = now; h.EndsBy.After(e.At) {
			s.ends += h.EndsBy.Sub(e.At)
		}
	case leadership.EventReady:
		if h.CandidateID != s.To {
			*s = succession{Succession: leadership.Succession{To: h.CandidateID}, ends: s.ends}
		}
		s.Ready = true
	case leadership.EventYielded:
		if h.To != s.To {
			*s = succession{ends: now + rule.YieldWindow}
		}
		s.To, s.Ready, s.Yielded = h.To, true, true
		s.ends = min(max(s.ends, now), now+rule.YieldWindow)
	default:
		if !s.Yielded && (mayUnbar(e.Type) || e.Type == leadership.EventGoesOn) {
			*s = succession{} // an order may have named another successor, or none
		}
	}
}

// assigned is the order by which only one candidate is granted a seat.
type assigned struct {
	to    leadership.CandidateID // "" if there is none
	until time.Duration
	as    leadership.Revision // of the answer or the event that says so
}

func (a *assigned) learnt(l *leadership.Lease, now time.Duration) {
	*a = assigned{l.AssignedTo, now + l.AssignedUntil.Sub(l.ReadAt), l.Revision}
}

// heard takes an event, even a late one.
func (a *assigned) heard(e leadership.Event, now time.Duration) {
	if e.Revision <= a.as {
		return
	}
	switch e.Type {
	case leadership.EventAssigned:
		d := e.ReadDetail()
		*a = assigned{d.CandidateID, now + d.Until.Sub(e.At), e.Revision}
	case leadership.EventLifted: // a seat has no other order that is lifted
		*a = assigned{as: e.Revision}
	}
}

// Assigned returns the only candidate that is granted the seat, as far as is known, and until when;
// "" if each may be.
func (e *Election) Assigned(now time.Duration) (to leadership.CandidateID, until time.Duration) {
	if now >= e.assigned.until {
		return "", 0
	}
	return e.assigned.to, e.assigned.until
}

// Succession returns the known hand-over of the present term.
func (e *Election) Succession(now time.Duration) leadership.Succession {
	s := e.succession.Succession
	s.Left = max(e.succession.ends-now, 0)
	return s
}

// Yielded returns the successor to which the present leader is known to have yielded: until the
// lease ends, no other candidate is granted it. "" if the leader has not yielded.
func (e *Election) Yielded(now time.Duration) leadership.CandidateID {
	if s := e.succession; s.Yielded && now < e.open && e.Leader() != "" {
		return s.To
	}
	return ""
}

// hearSuccession updates the hand-over by an event that is newer than the known state. After a
// yield the lease ends soon, and no renewal extends it.
func (e *Election) hearSuccession(event leadership.Event, now time.Duration) {
	leader, token, known := e.leads()
	if !known || event.LeaderID != leader || event.Token != token {
		e.succession = succession{}
	}
	if event.LeaderID == "" {
		return
	}
	e.succession.heard(event, now)
	if event.Type != leadership.EventYielded {
		return
	}
	left := e.view.guard + rule.YieldWindow
	if e.lease != nil {
		left += e.lease.Config.LockDelay
	}
	e.open = min(e.open, now+left)
	delete(e.view.renewed, e)
}
