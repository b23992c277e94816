package checker

import (
	"cmp"
	"slices"
	"time"

	"regent/leadership"
)

// haltAge is how old a halt is at most before all instances obey it.
const haltAge = 5 * time.Second

// SE checks elections that have seats, the wholes, and halts, by the store's instants:
//
//   - a seat is granted only if the whole has it, and not while the whole is paused;
//   - no more seats are held than the whole has. One that it has no more, and that was granted
//     before, is not counted;
//   - such a seat's lease is renewed no further than may have been promised before it was told;
//   - no election is granted in a halt that is older than five seconds. A grant counts for nothing
//     if the call that made it has told of none.
//
// A change of the whole counts from when it was answered: until then, or if it never was, a grant
// may be by what was before. Guard is by how much the clocks of the store's servers may differ.
func SE(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	s := seating{report: &report, guard: guard, calls: r.Calls, asked: make(map[string]Call), told: make(map[grantID]string), promises: make(map[grantID]time.Time)}
	for _, c := range r.Calls {
		if c.Verb == Acquire && c.Request != "" {
			s.asked[c.Request] = c
		}
		if c.beat() {
			id := grantID{c.Answer.Election, c.Answer.Token}
			s.promises[id] = later(s.promises[id], c.Answer.LeaseExpiration)
			if c.Verb == Acquire {
				s.told[id] = c.Request
			}
		}
	}
	configs, halts := configsOf(truth, r.Calls), haltsOf(truth[leadership.HaltsElection])
	for _, e := range truth.elections() {
		if whole := s.versions(truth[e], configs); len(whole) > 0 {
			s.check(e, whole, truth)
		}
		for _, t := range truth.terms(e) {
			s.checkHalts(t, halts)
		}
	}
	return report
}

// seating is the check of all wholes and halts.
type seating struct {
	report   *Report
	guard    time.Duration
	calls    []Call
	asked    map[string]Call       // that asked for leases, by their requests
	told     map[grantID]string    // the last request that was told of the lease
	promises map[grantID]time.Time // the greatest end that was told
}

// version is a whole from one of its events on.
type version struct {
	at     time.Time
	heard  time.Time // when all seats had heard at the latest; zero if that is not known
	seats  int
	lease  time.Duration
	paused standing
}

// versions are those of an election, in order; none if it never had seats.
func (s seating) versions(events []leadership.Event, configs map[leadership.EventID]leadership.Config) (all []version) {
	var v version
	had := false
	for _, e := range events {
		switch o := standingOf(e); {
		case configures(e):
			config, known := configs[e.ID()]
			v.seats, v.lease = config.Seats, cmp.Or(config.LeaseDuration, leadership.DefaultLeaseDuration)
			if had = had || v.seats > 0; !known {
				v.seats = leadership.MaxSeats
			}
		case e.Type == leadership.EventDeleted:
			v.seats = 0
		case e.Type == leadership.EventPaused:
			v.paused = o
		case e.Type == leadership.EventResumed, e.Type == leadership.EventLifted && o.ID == v.paused.ID:
			v.paused = standing{}
		}
		if v.at = e.At; had {
			v.heard = s.heard(e)
		}
		all = append(all, v)
	}
	if !had {
		return nil
	}
	return all
}

// heard is the first instant of the store that is known to come after the change was answered.
func (s seating) heard(e leadership.Event) (first time.Time) {
	by := slices.IndexFunc(s.calls, func(c Call) bool { return c.Verb != Acquire && c.done() && c.Request != "" && c.Request == e.RequestID })
	for _, c := range s.calls {
		if by >= 0 && c.Verb != Acquire && c.shows() && c.Asked >= s.calls[by].Answered && (first.IsZero() || c.at().Before(first)) {
			first = c.at()
		}
	}
	return first
}

// possible are the versions by which a seat may have been granted or renewed then.
func (s seating) possible(whole []version, now time.Time) (all []version) {
	for _, v := range slices.Backward(whole) {
		if v.at.After(now.Add(s.guard)) {
			continue
		}
		if all = append(all, v); !v.heard.IsZero() && v.heard.Add(s.guard).Before(now) {
			break
		}
	}
	return all
}

// check checks the seats of the whole.
func (s seating) check(e leadership.Election, whole []version, t truth) {
	var terms []term // of all seats
	for n := range leadership.MaxSeats {
		terms = append(terms, t.terms(e.Seat(n+1))...)
	}
	for _, one := range terms {
		at, n := one.granted.At, seatOf(one.granted)
		may := s.possible(whole, at)
		if len(may) == 0 { // it was no seat yet
			continue
		}
		s.report.Checked++
		has := slices.DeleteFunc(may, func(v version) bool { return n > v.seats })
		if len(has) == 0 {
			s.report.add(Beyond, "%s was granted, and %q has fewer seats", shown(one.granted), e)
			continue
		}
		if !slices.ContainsFunc(has, func(v version) bool { return !at.Add(s.guard).Before(v.paused.Until) }) {
			s.report.add(Barred, "%s was granted, and %q is paused: %+v", shown(one.granted), e, has[0].paused)
		}
		most := slices.MaxFunc(has, func(a, b version) int { return cmp.Compare(a.seats, b.seats) })
		held := 0
		for _, other := range terms {
			if seatOf(other.granted) <= most.seats && !other.granted.At.After(at) && at.Add(s.guard).Before(s.lasts(other, most.lease)) {
				held++
			}
		}
		if held > most.seats {
			s.report.add(TwoLeaders, "%s is the grant of one of %d seats of %q that are held, and it has %d", shown(one.granted), held, e, most.seats)
		}
	}
	s.checkLowered(e, whole)
}

func seatOf(e leadership.Event) int {
	_, n, _ := e.Election.SeatOf()
	return n
}

// lasts is until when the term lasted at least.
func (s seating) lasts(t term, lease time.Duration) time.Time {
	if d := s.asked[t.granted.RequestID].Lease; d > 0 {
		lease = d
	}
	end := later(s.promises[t.id()], t.granted.At.Add(lease))
	if t.over() && t.ended.At.Before(end) {
		return t.ended.At
	}
	return end
}

// checkLowered checks that no seat that the whole has no more is renewed beyond the end that a
// heartbeat of the last moment before would have.
func (s seating) checkLowered(e leadership.Election, whole []version) {
	for _, c := range s.calls {
		if !c.beat() {
			continue
		}
		of, n, _ := c.Answer.Election.SeatOf()
		may := s.possible(whole, c.at())
		if of != e || len(may) == 0 || slices.ContainsFunc(may, func(v version) bool { return n <= v.seats }) {
			continue
		}
		heard := may[len(may)-1].heard // of the oldest one: the others have no such seat either
		if end := heard.Add(c.Answer.LeaseDuration + s.guard); !heard.IsZero() && c.Answer.LeaseExpiration.After(end) {
			s.report.add(Outlived, "%v: %q had fewer seats at %s, and the lease is to last until %s", c, e, stamp(heard), stamp(c.Answer.LeaseExpiration))
		}
	}
}

// halt is a halt that stood.
type halt struct {
	elections   leadership.Election // a pattern
	from, until time.Time
}

func haltsOf(events []leadership.Event) (all []halt) {
	for _, e := range events {
		elections := e.ReadDetail().Elections
		for i := range all {
			if all[i].elections == elections && e.At.Before(all[i].until) {
				all[i].until = e.At
			}
		}
		if e.Type == leadership.EventHalted {
			all = append(all, halt{elections, e.At, standingOf(e).Until})
		}
	}
	return all
}

// checkHalts checks that no halt stood for long when the term began, if its leader was told of it.
func (s seating) checkHalts(t term, halts []halt) {
	e := t.granted
	_, recorded := s.asked[e.RequestID]
	if e.Type != leadership.EventAcquired || recorded && s.told[t.id()] != e.RequestID {
		return
	}
	for _, h := range halts {
		if h.elections.Covers(e.Election) && h.from.Add(haltAge+s.guard).Before(e.At) && e.At.Add(s.guard).Before(h.until) {
			s.report.add(Barred, "%s was granted, and %q was halted at %s", shown(e), h.elections, stamp(h.from))
		}
	}
}

// seated are the elections that have seats, with the most that they have had, by the calls that
// gave them some.
func (r Recording) seated() map[leadership.Election]int {
	wholes := make(map[leadership.Election]int)
	for _, c := range r.Calls {
		if c.Verb == Configure && c.Config.Seats > 0 {
			wholes[c.Election] = max(wholes[c.Election], c.Config.Seats)
		}
	}
	return wholes
}

// bySeat is the recording with each call that asked for a seat as one on the election that its
// answer shows. If the answer was lost, it may have been any of the seats.
func (r Recording) bySeat() Recording {
	wholes, calls := r.seated(), make([]Call, 0, len(r.Calls))
	for _, c := range r.Calls {
		seats := wholes[c.Election]
		switch {
		case c.Verb != Acquire || seats == 0:
			calls = append(calls, c)
		case c.Answer != nil && c.Answered != Forever:
			if c.Election = c.Answer.Election; c.refused() {
				c.Request = "" // it may have told a seat of the whole
			}
			calls = append(calls, c)
		case c.refused():
			calls = append(calls, c)
		default:
			of := c.Election
			for n := range seats {
				c.Election = of.Seat(n + 1)
				calls = append(calls, c)
			}
		}
	}
	r.Calls = calls
	return r
}
