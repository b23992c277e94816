package checker

import (
	"slices"
	"time"

	"regent/leadership"
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
	for _, at := range explanations(r, in, guard) {
		if told := shows(in, at); told && at.Before(s.seen.Add(-guard)) {
			continue
		} else if !told {
			at = later(at, s.seen)
		}
		need := max(beats(s.sure.Add(r.LeaseDuration), at, r.LeaseDuration), s.loose)
		late := !s.over.IsZero() && at.Add(r.LeaseDuration).After(s.over)
		if !at.After(r.HeartbeatAt) || at.After(in.at.Add(guard)) || need > left || late {
			continue
		}
		bridged := s
		bridged.record.HeartbeatAt, bridged.loose = at, need
		if after, ok := p.try(bridged, in, guard); ok {
			return after, true
		}
	}
	return s, false
}

// shows reports whether the answer to the step shows this very heartbeat.
func shows(in step, at time.Time) bool {
	return in.answer != nil && in.answer.State == leadership.Held && in.answer.LastHeartbeat.Equal(at)
}

// explanations are the instants of a heartbeat that could explain what was seen, the earliest of
// each kind: the one that is shown; one with which the lease still lasted; one with which the next
// grant was not yet allowed.
func explanations(r leadership.Record, in step, guard time.Duration) []time.Time {
	const tick = time.Nanosecond
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
