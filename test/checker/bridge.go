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
		end := at.Add(r.LeaseDuration)
		if told := shows(in, at); told && at.Before(s.seen.Add(-guard)) {
			continue
		} else if !told {
			at = later(at, s.seen)
		}
		if r.Standing.Parent.Token > 0 && !shows(in, at) {
			at = later(at, r.HeartbeatAt.Add(tick)) // it may only have moved on what the lease stands on
		}
		need := max(beats(s.sure.Add(r.LeaseDuration), at, r.LeaseDuration), s.loose)
		if !at.After(r.HeartbeatAt) || at.After(in.at.Add(guard)) || need > left {
			continue
		}
		bridged := s
		for _, record := range p.renewals(r, in, at, end) {
			if !s.over.IsZero() && record.LeaseEnd().After(s.over) {
				continue
			}
			bridged.record, bridged.loose = record, need
			if after, ok := p.try(bridged, in, guard); ok {
				return after, true
			}
		}
	}
	return s, false
}

// adopted is the state with what limits its lease, and with the leader's report, as the answer
// shows them, if that cannot be known otherwise: a renewal with a report may have been made, or the
// change that set the limit was decided some time before its commit.
func (p *search) adopted(s state, in step, guard time.Duration) []state {
	a, r := in.answer, s.record
	if a == nil || a.State != leadership.Held || a.Token != in.tokenAfter(r) || a.LeaderID != r.LeaderID {
		return nil
	}
	if p, at := a.Parent, &s.record.Standing.Parent; at.Token > 0 && !p.Until.IsZero() && (p.Until.Before(at.Until) || p.Token != at.Token) {
		*at = p // it is over, or has a new epoch: a renewal has seen that
		s.record.EndsBy, s.record.EndsBecause = a.EndsBy, a.EndsBecause
		return []state{s}
	}
	shown := in.call.Verb == Renew && in.call.Report == a.Report
	reported := slices.ContainsFunc(p.lost, func(c Call) bool {
		return c.Report != "" && c.Asked <= in.span.until && c.Key.Equal(r.KeyHash) && c.mayBeat(r.LeaderID, r.Token)
	})
	brought := slices.ContainsFunc(p.lost, func(c Call) bool { return c.Report == a.Report })
	less := r.Standing.Ends.Approval.Sub(a.EndsBy) // the term before ended so much later than is known
	approved := a.EndsBecause == leadership.EndsApproval && less > 0 && less < s.less+time.Microsecond
	handsOver := r.EndsBecause == leadership.EndsHandOver && a.EndsBecause == leadership.EndsHandOver // at the end of a heartbeat that is not known
	// challenged at the end of a parent that a heartbeat without an answer had moved on
	was, further := r.Standing.Ends.Challenged, a.EndsBecause == leadership.EndsParent
	further = further || a.EndsBecause == leadership.EndsHandOver && a.Parent.Token > 0 && a.EndsBy.After(was) // and another since
	challenged := further && !was.IsZero() && p.unconfirmed(r, in.span.until) > 0
	if guard == 0 && !reported && !handsOver && !approved && !challenged || a.Report != r.Standing.Report && !brought && !shown {
		return nil
	}
	if a.Report != "" && (reported || !shown) {
		s.record.Standing.Report, s.record.Standing.ReportedAt = a.Report, a.ReportedAt
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
	case leadership.EndsMaxTerm:
		e.Term = by
	case leadership.EndsApproval:
		e.Approval = by
	case leadership.EndsStuck:
		e.Stuck = by
	case leadership.EndsHandOver:
		switch now := &r.Standing.Succession; {
		case !now.Yielded.IsZero():
			now.Yielded = by
		case now.To != "":
			now.Ends = by
		default:
			e.Challenged = by
		}
	case leadership.EndsParent:
		r.Standing.Parent.Until = by
		if !e.Challenged.IsZero() {
			e.Challenged = later(e.Challenged, by)
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

// renewals are what an unconfirmed heartbeat may have made of the record: it may have brought one
// of the reports whose answers were lost, and of a lease that stands on another one it may have
// moved on the end: to that which explains what was seen, or beyond the end of the lease; or it may
// have found that the other one is over.
func (p *search) renewals(r rule.Record, in step, at, end time.Time) (all []rule.Record) {
	all = p.reported(r, in, at)
	if r.Standing.Parent.Token == 0 {
		return all
	}
	for _, until := range []time.Time{end, later(end, at.Add(r.LeaseDuration).Add(time.Microsecond))} {
		if moved, ok := standsUntil(r, until); ok {
			all = append(all, p.reported(moved, in, at)...)
		}
	}
	if over, ok := stands(r, rule.ParentLease{Parent: r.Standing.Parent}); ok && over != r {
		all = append(all, p.reported(over, in, at)...)
	}
	return all
}

// reported are what a heartbeat may have made of the record, with any of the reports.
func (p *search) reported(r rule.Record, in step, at time.Time) []rule.Record {
	plain := r
	plain.HeartbeatAt = at
	all, tried := []rule.Record{plain}, map[leadership.ReportText]bool{"": true}
	for _, c := range p.lost {
		if c.Asked > in.span.until || tried[c.Report] || !c.Key.Equal(r.KeyHash) || !c.mayBeat(r.LeaderID, r.Token) {
			continue
		}
		tried[c.Report] = true
		s := rule.Snapshot{Record: r, Now: at}
		if a := in.answer; a != nil && a.Report == c.Report && a.ReportedAt.After(r.HeartbeatAt) {
			s.Now = a.ReportedAt
		}
		named := rule.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token, Report: c.Report}
		if ch, err := rule.Renew(s, named); err == nil && len(ch.Events) == 0 {
			ch.Record.HeartbeatAt = at
			all = append(all, ch.Record)
		}
	}
	return all
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
	if a := in.answer; a != nil && a.Report != "" && a.Report != r.Standing.Report {
		instants = append(instants, a.ReportedAt)
	}
	if a := in.answer; a != nil && a.LockedFor > 0 {
		left := a.LockedFor - millisecond
		instants = append([]time.Time{locked.Add(left), guarded.Add(left)}, instants...)
	}
	if r.Standing.Parent.Token > 0 {
		instants = append(instants, r.HeartbeatAt.Add(tick)) // at once
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
