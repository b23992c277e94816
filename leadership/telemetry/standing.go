package telemetry

import (
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// The states that the gauges count.
const (
	flapGrants = 5                // an election with more grants than this
	flapWithin = 10 * time.Minute // within this time is flapping
	returns    = 30 * time.Second // a candidate that comes back within this time counts as waiting throughout
)

// state is the last known state of an election.
type state byte

const (
	unheard state = iota
	held
	vacant
	deleted
)

// standing is the known state of one election.
type standing struct {
	election leadership.Election
	revision leadership.Revision // 0 if nothing is known
	token    leadership.Token
	state    state

	leaseEnd time.Time            // of the last lease that was seen; zero if unknown
	endedAt  time.Time            // when the last term ended
	ended    leadership.EventType // how the last term ended; "" if unknown

	grants [flapGrants + 1]time.Time // times of the last grants, the newest first
	epoch  leadership.Token          // the newest token that a leader was given by a new epoch

	yieldedAt time.Time           // when the leader last yielded
	yielded   leadership.Revision // of that yield

	named bool // it is shown by name

	depth int // known levels below an election that was not delegated

	orders orders
	above  *orders // of the election of which it is a seat; nil if it is no seat, or that is unknown

	seats  int       // how many seats it has
	led    int       // how many of these have a leader; see relate
	halted int       // how many of these have none and are halted
	barred time.Time // since when all seats have been halted; zero if some are not
	freed  time.Time // since when a seat that is not halted has had no leader

	waiting int       // waiting candidates
	since   time.Time // when the first of them came
	left    time.Time // when the last of them left
}

// learn remembers an answer of the store, unless it is older than the known state.
func (s *standing) learn(snap rule.Snapshot) {
	r := snap.Record
	if r.Revision < s.revision || r.Revision == s.revision && r.LeaderID != "" && r.LeaseEnd().Before(s.leaseEnd) {
		return
	}
	if from := r.Standing.EpochFrom; from > 0 && from <= s.token {
		s.goOn(r.Token)
	}
	s.grant(r.Token, granted(r))
	s.orders.learn(snap)
	s.seats = r.Policy.Seats
	switch {
	case r.Deleted:
		s.state = deleted
	case snap.Live():
		s.state, s.leaseEnd = held, r.LeaseEnd()
	case r.LeaderID != "": // the lease has run out, and that is not recorded yet
		s.state, s.leaseEnd = vacant, r.LeaseEnd()
		s.end(leadership.EventExpired, r.LeaseEnd()) // or deposed, as its event will tell
	default:
		s.state = vacant
		if r.Revision > s.revision && !r.EndedAt.Equal(s.endedAt) {
			s.ended = ""
		}
		s.endedAt = r.EndedAt
	}
	s.revision = r.Revision
}

// granted returns when the last lease was granted, or a time soon after.
func granted(r rule.Record) time.Time {
	if r.LeaderID != "" {
		return r.AcquiredAt
	}
	return r.EndedAt
}

// hear remembers an event, unless it is old.
func (s *standing) hear(e leadership.Event) {
	if e.Revision <= s.revision {
		return
	}
	if e.Type == leadership.EventEpoch {
		s.goOn(e.Token)
	}
	s.grant(e.Token, e.At)
	s.orders.hear(e)
	if e.Type == leadership.EventYielded {
		s.yieldedAt, s.yielded = e.At, e.Revision
	}
	switch {
	case e.Type == leadership.EventDeleted:
		s.state = deleted
	case e.LeaderID != "":
		s.state = held
	default:
		s.state = vacant
	}
	switch {
	case e.Type == leadership.EventAcquired, e.Type == leadership.EventEpoch:
		s.leaseEnd = time.Time{}
	case e.PreviousLeaderID != "":
		s.end(e.Type, s.endOf(e))
	}
	s.revision = e.Revision
}

// endOf returns when the term that the event ends has ended: a lease that runs out ends before its
// event.
func (s *standing) endOf(e leadership.Event) time.Time {
	if ranOut(e.Type) && !s.leaseEnd.IsZero() && s.leaseEnd.Before(e.At) {
		return s.leaseEnd
	}
	return e.At
}

// ranOut reports whether a term that ended with that event may have left work undone: its leader
// did not stop by itself, and no operator ended it.
func ranOut(how leadership.EventType) bool {
	return how == leadership.EventExpired || how == leadership.EventDeposed
}

func (s *standing) end(how leadership.EventType, at time.Time) { s.ended, s.endedAt = how, at }

// grant remembers a grant if the token is new. Several missed grants count as one.
func (s *standing) grant(token leadership.Token, at time.Time) {
	if token <= s.token {
		return
	}
	copy(s.grants[1:], s.grants[:])
	s.token, s.grants[0] = token, at
}

// goOn remembers that the leader goes on under a new token. That is no grant.
func (s *standing) goOn(token leadership.Token) {
	if token > s.token {
		s.token, s.epoch = token, token
	}
}

func (s *standing) join(now time.Time) {
	if !s.wanted(now) {
		s.since = now
	}
	s.waiting++
}

// wanted reports whether a candidate waits, or left a moment ago and may come back.
func (s *standing) wanted(now time.Time) bool {
	return s.waiting > 0 || !s.left.IsZero() && now.Sub(s.left) < returns
}

// leaderless returns since when the election has been wanted and without a leader, although nothing
// bars a grant.
func (s *standing) leaderless(now time.Time) (since time.Time, ok bool) {
	end, freed := s.endedAt, s.orders.freed()
	if s.seats > 0 {
		end = s.freed
	}
	if s.above != nil {
		freed = latest(freed, s.above.freed())
	}
	switch {
	case s.orders.barred(now), s.above != nil && s.above.barred(now), s.seats > 0 && s.led+s.halted >= s.seats:
		return time.Time{}, false
	case s.state == vacant:
	case s.state == held && !s.leaseEnd.IsZero() && now.After(s.leaseEnd): // it is not known whether it was renewed
		end = s.leaseEnd
	default:
		return time.Time{}, false
	}
	end = latest(end, freed)
	switch {
	case s.state == vacant && ranOut(s.ended):
		return end, true
	case s.wanted(now) && end.Before(s.since):
		return s.since, true
	}
	return end, s.wanted(now)
}

func (s *standing) flaps(now time.Time) bool {
	oldest := s.grants[flapGrants]
	return !oldest.IsZero() && now.Sub(oldest) <= flapWithin
}

// lately returns how many of the remembered grants came within the last hour.
func (s *standing) lately(now time.Time) (n int) {
	for _, at := range s.grants {
		if !at.IsZero() && now.Sub(at) <= time.Hour {
			n++
		}
	}
	return n
}

// paused returns since when no candidate has been granted, by an operator's order. A seat does not
// count: its election does, if none of its seats is granted.
func (s *standing) paused(now time.Time) (since time.Time, ok bool) {
	switch {
	case s.above != nil, s.election == leadership.HaltsElection:
		return time.Time{}, false
	case !s.barred.IsZero() && !s.orders.paused(now):
		return s.barred, s.state != deleted
	}
	return s.orders.since(now), s.state != deleted && s.orders.paused(now)
}

// unapproved returns since when an approval has been waited for.
func (s *standing) unapproved(time.Time) (since time.Time, ok bool) {
	return s.orders.asked, s.state != deleted && !s.orders.asked.IsZero()
}

// notable reports whether the election may be flapping, leaderless, or waiting for an operator, or
// has had more than one leader lately. One with seats always may.
func (s *standing) notable(now time.Time) bool {
	return s.seats > 0 || s.wanted(now) || s.lately(now) > 1 || s.state == vacant && ranOut(s.ended) || s.orders.paused(now) || !s.orders.asked.IsZero()
}
