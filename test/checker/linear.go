package checker

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"regent/leadership"
	"regent/leadership/rule"
)

// Patience is how long an order is searched for, for one election.
const Patience = 30 * time.Second

// Linear checks that there is an order of all calls on each election, and of what happened there by
// itself, in which each took effect at one moment between its call and its answer, and in which the
// rules themselves, run one after the other, give exactly these answers and this history. No
// verdict within Patience is a violation too.
//
// # Time
//
// The rules need the store's time. Each answer tells it: the time of the read or, for a change, of
// the commit. In the order that time does not go back (by more than the guard, on a store of
// several servers), so that "over or not" is decided and not guessed. Guard is Snapshot.Guard of
// the store. With a guard, a change may have been decided somewhat before its commit.
//
// # Unknown outcomes
//
// A call whose outcome is unknown is looked up in the history by its request: if it made an event,
// it was done at the instant of that event; if not, it was not done, and is left out. So the
// recording must be closed after the last such call can have ended, and no two calls may have the
// same request.
//
// A heartbeat leaves no event. One whose outcome is unknown is assumed to have been committed if,
// and only if, something cannot be explained without it: an answer that shows its instant, or a
// lease that still exists after its known end. Each is used once, for the lease that it named,
// after it was asked for, never at a moment before which a later answer showed the lease without
// it, and never to carry a lease over an end at which it was seen to be over. If its instant is not
// shown, the earliest is taken that explains what was seen; a later answer may still move it. That
// is less strict than trying every instant, and reports nothing wrongly.
//
// What limits a lease is computed from when a change was decided, which a store with a guard does
// not tell. In that case it is taken from the next answer that shows it. If none does, the lease
// may have ended sooner, once, by as much as the change may have taken.
//
// # Ballots
//
// A candidate that is refused may have bid, which leaves no event, or have recorded the end of a
// lease, or have challenged the leader. Which of the bidders is granted is not decided here: see
// CH.
//
// # Limits of the recording
//
// An election without a recorded call is left out, and so is one that has seats, with them: see SE.
// So is one whose terms have a policy or reports, and one whose leases stand on others, or are
// delegated: what an unknown outcome may have made of their ends has too many answers. The other
// checkers look at all of them.
//
// If some callers were not recorded, such as an operator or a command, what the history has of them
// is believed, as far as the rules allow it at that moment, and their leases may have had any
// number of heartbeats. A lease that counts as just renewed because its machine was restarted is
// not known here.
func Linear(r Recording, guard time.Duration) Report { return LinearBack(r, guard, guard) }

// LinearBack is Linear for a store whose time may go back by more than the guard: a reading of it
// may show less than was committed, by the store's own account, so long before.
func LinearBack(r Recording, guard, back time.Duration) Report {
	truth, report := truthOf(r.History)
	for _, p := range searchesOf(truth, r) {
		report.Checked += len(p.steps)
		p.check(&report, guard, max(guard, back))
	}
	return report
}

// check looks for an order in which the store's time does not go back at all, and only then for one
// in which it does.
func (p *search) check(report *Report, guard, most time.Duration) {
	for _, back := range slices.Compact([]time.Duration{0, guard, most}) {
		p.back = back
		o, err := p.order()
		verdict := porcupine.Illegal
		if err == nil {
			verdict = porcupine.CheckOperationsTimeout(p.model(guard), o, Patience)
		}
		switch {
		case verdict == porcupine.Ok:
			return
		case back < most:
		case err != nil:
			report.add(Illegal, "election %q: %v", p.election, err)
		case verdict == porcupine.Unknown:
			report.add(Undecided, "election %q: no order of %d steps was found in %v", p.election, len(p.steps), Patience)
		default:
			report.add(Illegal, "election %q: %s", p.election, p.stuck(p.model(guard), o))
		}
	}
}

// searchesOf makes a search for each election that was called on.
func searchesOf(t truth, r Recording) []*search {
	calls := make(map[leadership.Election][]Call)
	for _, c := range r.Calls {
		calls[c.Election] = append(calls[c.Election], c)
	}
	maps.DeleteFunc(calls, func(_ leadership.Election, calls []Call) bool { return slices.ContainsFunc(calls, Call.limits) })
	for whole, n := range r.seated() {
		delete(calls, whole)
		for i := range n {
			delete(calls, whole.Seat(i+1))
		}
	}
	commits := commitsOf(t, r)
	var searches []*search
	for _, e := range slices.Sorted(maps.Keys(calls)) {
		searches = append(searches, newSearch(e, calls[e], t[e], commits[e]))
	}
	return searches
}

// limits reports whether the call tells of what may limit a term: a policy, a report, or another
// lease.
func (c Call) limits() bool {
	limits := func(c leadership.Config) bool {
		return c.Term != leadership.TermPolicy{} || c.LeadersOf != "" || c.Delegation != leadership.Delegation{}
	}
	return c.Report != "" || limits(c.Config) || c.Answer != nil && limits(c.Answer.Config)
}

// state is an election between two steps.
type state struct {
	record rule.Record
	steps  int       // so far, except those whose time is not known
	now    time.Time // the latest of their times
	wrote  time.Time // the time of the last step that changed the record

	// the last heartbeat that an answer shows
	sure time.Time // the last heartbeat that was told
	seen time.Time // until when that was seen to be the last
	over time.Time // when it was first seen to be over; zero if it was not
	used int       // unconfirmed heartbeats that a later answer showed
	// unconfirmed heartbeats that the lease depends on since; the last is at record.HeartbeatAt or
	// later
	loose int
	// It has ended, and may have had unconfirmed heartbeats: its lock may be longer than is known.
	unsure bool
	// the token of a lease that ended sooner than its last change seemed to say
	hastened leadership.Token
}

// model is the rules, in the form that the library needs.
func (p *search) model(guard time.Duration) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Init: func() any { return p.begin() },
		Step: func(before, input, _ any) (bool, any) {
			after, ok := p.take(before.(state), input.(step), guard)
			return ok, after
		},
		Hash:              func(s any) uint64 { return maphash.Comparable(seed, s.(state)) },
		DescribeOperation: func(input, _ any) string { return input.(step).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}

// begin is an election never seen.
func (p *search) begin() state { return state{record: rule.Record{Election: p.election}} }

// String names the leader and the end of its lease.
func (s state) String() string {
	r := s.record
	if r.LeaderID == "" {
		return fmt.Sprintf("revision %d, token %d, vacant; %s", r.Revision, r.Token, stamp(s.now))
	}
	return fmt.Sprintf("revision %d, token %d, %s until %s; %s", r.Revision, r.Token, r.LeaderID, stamp(r.LeaseEnd()), stamp(s.now))
}

// take takes the step, if the rules allow it.
func (p *search) take(s state, in step, guard time.Duration) (state, bool) {
	if in.at.IsZero() {
		in.at = s.now
	} else if s.steps < in.after || in.at.Before(s.now.Add(-p.back)) {
		return s, false
	} else {
		s.steps++
	}
	if after, ok := p.try(s, in, guard); ok {
		return after, true
	}
	if after, ok := p.bridge(s, in, guard); ok {
		return after, true
	}
	for _, limited := range append(p.adopted(s, in, guard), p.sooner(s, in, guard)...) {
		if after, ok := p.try(limited, in, guard); ok {
			return after, true
		}
		if after, ok := p.bridge(limited, in, guard); ok {
			return after, true
		}
	}
	return s, false
}

// try takes the step with the heartbeats that are known.
func (p *search) try(s state, in step, guard time.Duration) (state, bool) {
	moments := append(in.decided(), in.at)
	if read := later(s.wrote, s.record.HeartbeatAt); guard > 0 && len(in.events) > 0 && read.Before(in.at) {
		moments = append(moments, read)
	}
	if slices.ContainsFunc(in.events, byLeader) { // its end may be that of a heartbeat that is not known: only if no moment explains it
		in.exact = true
		if after, ok := p.at(s, in, append([]time.Time{in.at}, moments...), guard); ok {
			return after, true
		}
		in.exact = false
	}
	return p.at(s, in, moments, guard)
}

// at takes the step as decided at one of the moments.
func (p *search) at(s state, in step, moments []time.Time, guard time.Duration) (state, bool) {
	for _, now := range moments {
		snap := rule.Snapshot{Record: s.locked(in, guard), Now: now, Guard: guard}
		if after, ok := p.decide(snap, in); ok {
			next := s.after(after, in)
			next.unsure = after.LeaderID == "" && (s.unsure || p.endsUnsure(s, in))
			return next, true
		}
	}
	return s, false
}

// decided are instants at which the step was decided, if it shows that: what the rules compute from
// it is kept to the microsecond, and a store may commit later.
func (in step) decided() (all []time.Time) {
	if n := len(in.events); n > 0 {
		if o, gives := standingOf(in.events[n-1]), max(in.call.Order.For, in.call.Order.Ban, in.call.For); o.ID != "" && gives > 0 {
			all = append(all, o.Until.Add(-gives))
		}
	}
	switch a := in.answer; {
	case in.call.Verb == HandOver && len(in.events) > 0:
		all = append(all, endsByOf(in.events[0]).Add(-cmp.Or(in.call.Within, leadership.DefaultWithin)))
	case in.call.Verb == Yield && a != nil && a.State == leadership.Held:
		all = append(all, a.EndsBy.Add(-rule.YieldWindow))
	}
	return slices.DeleteFunc(all, func(at time.Time) bool { return at.After(in.at.Add(time.Microsecond)) })
}

// endsUnsure reports whether the step ends a lease, other than by a release, that may have had
// unconfirmed heartbeats.
func (p *search) endsUnsure(s state, in step) bool {
	ends := slices.ContainsFunc(in.events, func(e leadership.Event) bool {
		return e.Type == leadership.EventDeleted || e.Type == leadership.EventExpired || e.Type == leadership.EventDeposed
	})
	return ends && s.record.LeaderID != "" && p.unconfirmed(s.record, in.span.until) > s.used
}

// locked is the record, with the lock that the answer shows if it may be longer than is known. The
// answer is rounded up, so the lock may end up to a millisecond earlier. With a guard it may be
// shorter, too: what limited the lease counts from an earlier decision.
func (s state) locked(in step, guard time.Duration) rule.Record {
	r, a := s.record, in.answer
	if !s.unsure || a == nil || a.LockedFor == 0 || a.Token != r.Token {
		return r
	}
	if shown := in.at.Add(a.LockedFor - millisecond + 1).Sub(r.EndedAt); shown > r.LockFor || guard > 0 && shown > r.LockFor-longestCommit {
		r.LockFor = shown
	}
	return r
}

// named is the call, with the successor that was chosen for a leader that has named none.
func (in step) named() Call {
	c := in.call
	switch a := in.answer; {
	case c.Verb != HandOver || c.To != "":
	case len(in.events) > 0:
		c.Chosen = successorOf(in.events[0])
	case a != nil:
		c.Chosen = a.Succession.To
	}
	return c
}

// decide runs the rule, commits its change, and compares.
func (p *search) decide(s rule.Snapshot, in step) (rule.Record, bool) {
	var ch rule.Change
	var err error
	if in.call.Verb == "" {
		ch, err = p.unasked(s, in.events)
	} else {
		ch, err = in.named().decide(s)
	}
	if in.call.codeFor(ch, err) != in.call.Code || !sameEvents(ch.Events, in.events, in.exact) {
		return s.Record, false
	}
	if !ch.Empty() {
		s.Record = ch.Committed(in.at)
	}
	s.Now = in.at
	return s.Record, in.answer == nil || agrees(in.answer, s)
}

// after is the state after a step that made r of the record.
func (s state) after(r rule.Record, in step) state {
	shown := in.answer != nil && r.LeaderID != "" && in.answer.State == leadership.Held
	switch {
	case r.Token != s.record.Token || r.LeaderID == "":
		s.sure, s.seen, s.over, s.used, s.loose = r.HeartbeatAt, r.HeartbeatAt, time.Time{}, 0, 0
	case !r.HeartbeatAt.Equal(s.record.HeartbeatAt) || shown:
		s.sure, s.seen, s.used, s.loose = r.HeartbeatAt, later(s.seen, in.at), s.used+s.loose, 0
	case in.answer != nil && s.over.IsZero():
		s.over = in.at
	}
	if r != s.record {
		s.wrote = later(s.wrote, in.at)
	}
	s.record, s.now = r, later(s.now, in.at)
	return s
}
