package checker

import (
	"cmp"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// grace is what a takeover may take beyond the lease and its lock delay; late is how long after its
// caller has given up a call may still be done.
const (
	grace = time.Second
	late  = 10 * time.Second
)

// LV checks that with faults over some candidate leads, and that without faults leadership does not
// change.
//
// A violation is a time as long as the election's longest lease, its longest lock delay, a ballot
// with a turn for each candidate, and a second, in which some candidate was willing without a
// break, in which no fault lasted, and in which certainly no one led: it comes after the last lease
// can have ended, by what was answered, and before the next can have been granted. Slack is by how
// much the clocks of the store and of the recording may differ meanwhile.
//
// Another is a release or an expiry during which the leader was willing, if there was no fault for
// a lease and a second before it.
//
// A time in which an operator's order stands, or an approval is awaited, counts as a fault; and a
// candidate that was deposed counts as unwilling from then on.
//
// An election without a willing candidate is not checked; one that asks for a quorum, or whose
// leases stand on others, only for changes without need. All calls on the others must be recorded.
func LV(r Recording, slack time.Duration) Report {
	truth, report := truthOf(r.History)
	willing := make(map[leadership.Election][]Willing)
	for _, w := range r.Willing {
		willing[w.Election] = append(willing[w.Election], w)
	}
	commits := commitsOf(truth, r)
	for _, e := range truth.elections() {
		if len(willing[e]) == 0 {
			continue
		}
		r := r
		r.Faults = slices.Concat(r.Faults, barredIn(truth[e], commits[e], slack))
		l := liveness{recording: r, slack: slack, commits: commits[e], calls: callsOf(r.Calls, e), willing: willing[e]}
		l.measure()
		l.checkLed(&report, e, truth.terms(e))
		l.checkNeedless(&report, truth.terms(e))
	}
	return report
}

// barredIn are the times in which orders may keep candidates of the election from being granted.
func barredIn(events []leadership.Event, line []commit, slack time.Duration) (faults []Fault) {
	lasts := func(i int, until time.Duration) {
		faults = append(faults, Fault{Name: string(events[i].Type), From: line[i].earliest, Until: until})
	}
	for i, e := range events {
		switch e.Type { // the leader may stop, and release its lease, before it ends
		case leadership.EventEvicted, leadership.EventPaused, leadership.EventAssigned, leadership.EventHandingOver:
			if n := slices.IndexFunc(events[i:], ends); n >= 0 {
				lasts(i, line[i+n].latest)
			} else {
				lasts(i, Forever)
			}
		}
		switch given := standingOf(e); {
		case limitOf(e) == leadership.EndsApproval:
			until := Forever
			for j := i + 1; j < len(events); j++ {
				if events[j].Type == leadership.EventAcquired {
					until = line[j].latest
					break
				}
			}
			lasts(i, until)
		case given.ID != "" && line[i].latest == Forever:
			lasts(i, Forever)
		case given.ID != "":
			lasts(i, line[i].latest+max(given.Until.Sub(e.At), 0)+slack)
		}
	}
	return faults
}

func callsOf(calls []Call, e leadership.Election) []Call {
	var of []Call
	for _, c := range calls {
		if c.Election == e {
			of = append(of, c)
		}
	}
	return of
}

// span is a time on the recording's clock.
type span struct{ from, until time.Duration }

// liveness is the check of one election.
type liveness struct {
	recording Recording
	slack     time.Duration
	commits   []commit
	calls     []Call
	willing   []Willing

	lease, delay time.Duration // the longest in any answer
	ballot       time.Duration // that one may last, if no member has to be present
	quorum       bool          // or another condition that candidates alone cannot meet
	end          time.Duration // when the last call was answered
}

func (l *liveness) measure() {
	for _, c := range l.calls {
		if c.Answered != Forever {
			l.end = max(l.end, c.Answered)
		}
		if a := c.Answer; a != nil {
			l.lease, l.delay = max(l.lease, a.LeaseDuration), max(l.delay, a.Config.LockDelay)
		}
	}
	l.lease = max(l.lease, leadership.MinLeaseDuration)
	l.ballots()
}

// ballots finds out how long a ballot may last: the window, and a turn for each candidate.
func (l *liveness) ballots() {
	candidates := make(map[leadership.CandidateID]bool)
	for _, c := range l.calls {
		if c.Verb == Acquire {
			candidates[c.Candidate] = true
		}
	}
	for _, c := range l.calls {
		if c.Answer == nil {
			continue
		}
		l.quorum = l.quorum || c.Answer.Config.LeadersOf != "" || c.Answer.Config.Delegation.Parent != ""
		if !c.Answer.Config.Ballot.HasBallot() {
			continue
		}
		p := c.Answer.Config.Ballot
		l.ballot = max(l.ballot, cmp.Or(max(p.Window, 0), leadership.DefaultWindow)+time.Duration(len(candidates))*rule.BidTurn)
		l.quorum = l.quorum || p.Quorum.Electorate != ""
	}
}

// checkLed looks for times in which a candidate should have led. Before the first term there is no
// leader.
func (l *liveness) checkLed(report *Report, e leadership.Election, terms []term) {
	if l.quorum {
		return
	}
	bound := l.lease + l.delay + l.ballot + grace + l.slack
	free := time.Duration(0)
	deposed := make(map[string]bool) // they may be banned for long, each time for longer
	for i := range len(terms) + 1 {
		next := l.end
		if i < len(terms) {
			report.Checked++
			next = l.earliest(terms[i])
		}
		for _, quiet := range l.quiet(span{free, next}) {
			for _, w := range l.willing {
				if deposed[w.Who] {
					continue
				}
				from, until := max(quiet.from, w.From), min(quiet.until, w.Until)
				if until-from > bound {
					report.add(Leaderless, "election %q had no leader from %v to %v, and %s was willing", e, from, until, w.Who)
					break
				}
			}
		}
		if i < len(terms) {
			if end := terms[i].ended; end.Type == leadership.EventDeposed || limitOf(end) == leadership.EndsStuck {
				deposed[string(end.PreviousLeaderID)] = true
			}
			free = max(free, l.latest(terms[i]))
		}
	}
}

// earliest is when a term can have begun at the earliest.
func (l *liveness) earliest(t term) time.Duration {
	from := l.commits[t.granted.Revision-1].earliest
	for _, c := range l.calls {
		if c.Request == t.granted.RequestID && c.beat() && c.Answer.Token == t.granted.Token {
			from = max(from, c.Asked+c.Waited-c.Waited/leadership.Drift)
		}
	}
	return from
}

// latest is when the lease of a term can have ended at the latest: when an answer said so, or else
// by its heartbeats.
func (l *liveness) latest(t term) time.Duration {
	told := Forever
	if t.over() {
		told = l.commits[t.ended.Revision-1].latest
	}
	var end time.Duration
	for _, c := range l.calls {
		a := c.Answer
		switch {
		case c.shows() && a.Token == t.granted.Token && a.State == leadership.Vacant, c.shows() && a.Token > t.granted.Token:
			told = min(told, c.Answered)
		case c.beat() && a.Token == t.granted.Token:
			end = max(end, c.Answered+a.LeaseDuration+l.slack)
		case c.mayBeat(t.granted.LeaderID, t.granted.Token):
			end = max(end, gaveUp(c)+late+l.lease+l.slack)
		}
	}
	if end == 0 {
		return told // its heartbeats are unknown
	}
	return min(told, end)
}

// gaveUp is when the caller of a lost call stopped waiting or, if that is unknown, when it began.
func gaveUp(c Call) time.Duration {
	if c.Answered == Forever {
		return c.Asked
	}
	return c.Answered
}

// quiet returns the parts of a time without faults.
func (l *liveness) quiet(s span) []span {
	faults := slices.SortedFunc(slices.Values(l.recording.Faults), func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
	var left []span
	for _, f := range faults {
		if f.From > s.from {
			left = append(left, span{s.from, min(s.until, f.From)})
		}
		s.from = max(s.from, f.Until)
	}
	return append(left, s)
}

func (l *liveness) checkNeedless(report *Report, terms []term) {
	for _, t := range terms {
		if !t.over() || slices.Contains(forced, t.ended.Type) || t.ended.Type == leadership.EventEpoch || limitOf(t.ended) != "" {
			continue
		}
		at := l.commits[t.ended.Revision-1]
		begun := l.commits[t.granted.Revision-1].earliest
		during := span{max(begun, at.earliest-l.lease-grace), at.latest}
		disturbed := slices.ContainsFunc(l.recording.Faults, func(f Fault) bool { return f.From <= during.until && f.Until >= during.from })
		wanted := slices.ContainsFunc(l.willing, func(w Willing) bool {
			return w.Who == string(t.ended.PreviousLeaderID) && w.From <= at.earliest && at.latest <= w.Until
		})
		if wanted && !disturbed && at.latest != Forever {
			report.add(Needless, "%s, between %v and %v: its leader was willing", shown(t.ended), at.earliest, at.latest)
		}
	}
}
