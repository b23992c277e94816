package checker

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// bridge takes the step with one or more unconfirmed heartbeats before it, if so many were asked
// for.
func (p *search) bridge(s state, in step, guard time.Duration) (state, bool) {
	r := s.record
	if r.LeaderID == "" || r.LeaseDuration <= 0 {
		return s, false
	}
	left := p.unconfirmed(r, in.span.until) - s.used
	if left <= 0 {
		return s, false
	}
	// committed too late, by a clock that is ahead of the reader's: it leaves the end where it was
	end := r.LeaseEnd()
	if late := end.Add(-r.LeaseDuration); late.Before(r.HeartbeatAt) && shows(in, late) && !in.at.Before(end.Add(-guard)) && s.loose < left {
		s.record.HeartbeatAt, s.loose = late, s.loose+1
		return p.try(s, in, guard)
	}
	for _, at := range explanations(r, in, guard) {
		if told := shows(in, at); told && at.Before(s.seen.Add(-guard)) {
			continue
		} else if !told {
			at = later(at, s.seen)
		}
		need := max(beats(s.sure.Add(r.LeaseDuration), at, r.LeaseDuration), s.loose)
		if !at.After(r.HeartbeatAt) || at.After(in.at.Add(guard)) || need > left {
			continue
		}
		bridged := s
		bridged.record.HeartbeatAt, bridged.loose = at, need
		if !s.over.IsZero() && bridged.record.LeaseEnd().After(s.over) {
			continue
		}
		if after, ok := p.try(bridged, in, guard); ok {
			return after, true
		}
	}
	return s, false
}

// adopted is the state with what limits its lease as the answer shows it, if that cannot be known
// otherwise: the change that set the limit was decided some time before its commit, or at the end
// of a heartbeat that is not known.
func (p *search) adopted(s state, in step, guard time.Duration) []state {
	a, r := in.answer, s.record
	if a == nil || a.State != leadership.Held || a.Token != in.tokenAfter(r) || a.LeaderID != r.LeaderID {
		return nil
	}
	handsOver := r.EndsBecause == leadership.EndsHandOver && a.EndsBecause == leadership.EndsHandOver
	if guard == 0 && !handsOver {
		return nil
	}
	return []state{s.limited(a.EndsBy, a.EndsBecause)}
}

// tokenAfter is the token of the present leader after the step.
func (in step) tokenAfter(r rule.Record) leadership.Token {
	if n := len(in.events); n > 0 && in.events[n-1].Type == leadership.EventEpoch {
		return r.Token + 1
	}
	return r.Token
}

// limited is the state with a lease that ends at the latest then, and why.
func (s state) limited(by time.Time, because leadership.EndReason) state {
	r := &s.record
	e := &r.Standing.Ends
	switch r.EndsBy, r.EndsBecause = by, because; because {
	case leadership.EndsHandOver:
		switch now := &r.Standing.Succession; {
		case !now.Yielded.IsZero():
			now.Yielded = by
		case now.To != "":
			now.Ends = by
		default:
			e.Challenged = by
		}
	case "":
	default:
		e.Ordered, e.Because = by, because
	}
	return s
}

// sooner are the states in which the lease had ended so much sooner as the step shows. On a store
// with a guard the end was computed when the change that set it was decided, which is not known if
// its answer was lost.
func (p *search) sooner(s state, in step, guard time.Duration) (all []state) {
	r := s.record
	if guard == 0 || s.hastened == r.Token || r.LeaderID == "" || r.EndsBy.IsZero() || !r.EndsBy.Equal(r.LeaseEnd()) {
		return nil
	}
	free := in.at.Add(-guard - r.Policy.LockDelay)
	if a := in.answer; a != nil && a.State == leadership.Vacant && a.Token == r.Token {
		free = free.Add(a.LockedFor)
	}
	took := p.took(r)
	if took == 0 {
		return nil
	}
	earliest := r.EndsBy.Add(-took - guard)
	for _, end := range []time.Time{in.at, in.at.Add(-guard), free} {
		if end = end.Truncate(time.Microsecond); end.Before(r.EndsBy) && !end.Before(earliest) {
			hastened := s.limited(end, r.EndsBecause)
			hastened.hastened = r.Token
			all = append(all, hastened)
		}
	}
	return all
}

// took is how long a change of the lease whose answer was lost may have taken until its commit.
func (p *search) took(r rule.Record) (took time.Duration) {
	for _, g := range p.groups {
		e := g.last()
		if e.Token != r.Token || e.Revision > r.Revision || e.RequestID == "" {
			continue
		}
		for _, c := range p.calls {
			if c.Request == e.RequestID && c.unknown() {
				took = max(took, p.commits[e.Revision-1].latest-c.Asked)
			}
		}
	}
	return took
}

// shows reports whether the answer to the step shows this very heartbeat.
func shows(in step, at time.Time) bool {
	return in.answer != nil && in.answer.State == leadership.Held && in.answer.LastHeartbeat.Equal(at)
}

// tick is the shortest time.
const tick = time.Nanosecond

// explanations are the instants of a heartbeat that could explain what was seen, the earliest of
// each kind: the one that is shown; one with which the lease still lasted; one with which the next
// grant was not yet allowed.
func explanations(r rule.Record, in step, guard time.Duration) []time.Time {
	if a := in.answer; a != nil && a.State == leadership.Held && a.Token == r.Token && !in.call.beat() {
		return []time.Time{a.LastHeartbeat}
	}
	lasting := in.at.Add(tick - r.LeaseDuration)
	guarded := lasting.Add(-guard)
	locked := guarded.Add(-r.Policy.LockDelay)
	instants := []time.Time{lasting, guarded, locked}
	if a := in.answer; a != nil && a.LockedFor > 0 {
		left := a.LockedFor - millisecond
		instants = append([]time.Time{locked.Add(left), guarded.Add(left)}, instants...)
	}
	return slices.CompactFunc(instants, time.Time.Equal)
}

// beats is how many heartbeats it takes from a lease with this end to one that starts at the
// instant: each comes before the end that the previous one made.
func beats(end, at time.Time, lease time.Duration) int {
	if at.Before(end) {
		return 1
	}
	return 2 + int(at.Sub(end)/lease)
}
