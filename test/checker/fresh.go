package checker

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"regent/leadership"
)

// BS checks that every reading was true at some moment within its stated age, and that no reader
// was shown less than it had seen.
//
// An answer asked for at q, received at a and stated to be g old shows some moment from q-g to a:
// it was sent no earlier than q. Slack is by how much the clocks of the store and of the recording
// may differ during a lease.
func BS(r Recording, slack time.Duration) Report {
	truth, report := truthOf(r.History)
	commits := commitsOf(truth, r)
	leases := leasesOf(r, slack)
	for _, x := range r.Readings {
		report.Checked++
		event, committed := truth.event(x.Election, x.Revision)
		if !committed {
			report.add(Phantom, "%+v shows a revision that was never committed", x)
			continue
		}
		checkStated(&report, x)
		checkContent(&report, x, event)
		checkMoment(&report, x, commits[x.Election])
		checkLease(&report, x, event, leases[grantID{x.Election, event.Token}])
	}
	checkOrder(&report, r.Readings)
	return report
}

// window is when the reading may have been true. One from the store has no age.
func (x Reading) window() (from, to time.Duration) {
	return x.Asked - min(x.Age, x.Bound), x.Answered
}

func checkStated(report *Report, x Reading) {
	switch {
	case x.Revision < x.Known:
		report.add(Behind, "%+v shows less than its reader knew", x)
	case x.Strong && x.Age+x.Bound > 0:
		report.add(Unbounded, "%+v comes from the store and says that it may be old", x)
	case !x.Strong && x.Bound <= 0:
		report.add(Unbounded, "%+v does not say how old it may be", x)
	case !x.Strong && x.Age >= x.Bound+AgeUnit:
		report.add(Unbounded, "%+v is older than it may be", x)
	}
}

// checkContent compares the reading with what that revision made of the election. A lease that has
// run out since shows no leader; checkLease decides whether it may have.
func checkContent(report *Report, x Reading, event leadership.Event) {
	leader, held := x.Leader == event.LeaderID, x.State == leadership.Held
	switch {
	case x.Token != event.Token:
		report.add(Untrue, "%+v shows fencing token %d, and it was %d", x, x.Token, event.Token)
	case held && (event.LeaderID == "" || !leader), !held && x.Leader != "":
		report.add(Untrue, "%+v shows %q as the leader, and it was %q", x, x.Leader, event.LeaderID)
	case handedTo(event) != "": // the grant to the successor is of the same instant
		report.add(Untrue, "%+v shows a vacancy within a hand-over", x)
	}
}

// commit is when a revision may have been committed.
type commit struct{ earliest, latest time.Duration }

// commitsOf narrows down when each revision was committed: by what its maker saw, by the order of
// the revisions, and because a read shows only committed revisions.
func commitsOf(t truth, r Recording) map[leadership.Election][]commit {
	commits := make(map[leadership.Election][]commit, len(t))
	for e, events := range t {
		commits[e] = slices.Repeat([]commit{{math.MinInt64, Forever}}, len(events))
	}
	for _, x := range r.Readings {
		if _, ok := t.event(x.Election, x.Revision); ok {
			at := &commits[x.Election][x.Revision-1]
			at.latest = min(at.latest, x.Answered)
		}
	}
	for _, c := range r.Calls {
		c.narrow(commits[c.Election])
	}
	for e, events := range t {
		asked := askedOf(e, r.Calls)
		for i, event := range events {
			if at, ok := asked[event.RequestID]; ok {
				commits[e][i].earliest = max(commits[e][i].earliest, at)
			}
		}
	}
	for _, line := range commits {
		for i := 1; i < len(line); i++ {
			line[i].earliest = max(line[i].earliest, line[i-1].earliest)
		}
		for i := len(line) - 2; i >= 0; i-- {
			line[i].latest = min(line[i].latest, line[i+1].latest)
		}
	}
	return commits
}

// narrow uses the call's answer: the revision that it shows was committed before it was given, and
// the next one after it was asked for.
func (c Call) narrow(line []commit) {
	if !c.shows() || int(c.Answer.Revision) > len(line) {
		return
	}
	if n := int(c.Answer.Revision); n > 0 {
		line[n-1].latest = min(line[n-1].latest, c.Answered)
	}
	if n := int(c.Answer.Revision); n < len(line) {
		line[n].earliest = max(line[n].earliest, c.Asked)
	}
}

// askedOf is when each request was first sent.
func askedOf(e leadership.Election, calls []Call) map[string]time.Duration {
	asked := make(map[string]time.Duration)
	for _, c := range calls {
		if at, again := asked[c.Request]; c.Election == e && c.Request != "" && (!again || c.Asked < at) {
			asked[c.Request] = c.Asked
		}
	}
	return asked
}

// checkMoment checks that the revision can have been the newest at some moment of the window.
func checkMoment(report *Report, x Reading, line []commit) {
	from, to := x.window()
	if own := line[x.Revision-1]; own.earliest > to {
		report.add(Early, "%+v shows a change before its first request at %v", x, own.earliest)
	}
	if int(x.Revision) < len(line) && line[x.Revision].latest < from {
		report.add(Stale, "%+v shows what was over at %v, when the next revision had been committed", x, line[x.Revision].latest)
	}
}

type grantID struct {
	election leadership.Election
	token    leadership.Token
}

func (id grantID) compare(other grantID) int {
	return cmp.Or(cmp.Compare(id.election, other.election), cmp.Compare(id.token, other.token))
}

// leasesOf are the leases by the calls that were granted or renewed them, or may have.
func leasesOf(r Recording, slack time.Duration) map[grantID]lease {
	type holder struct {
		election leadership.Election
		incarnation
	}
	granted := make(map[string]leadership.Token) // by requests
	for _, e := range r.History {
		if e.Type == leadership.EventAcquired {
			granted[e.RequestID] = e.Token
		}
	}
	tokens := make(map[holder][]leadership.Token)
	for _, c := range r.Calls {
		of := holder{c.Election, c.incarnation()}
		if c.beat() {
			tokens[of] = append(tokens[of], c.Answer.Token)
		} else if t, ok := granted[c.Request]; ok {
			tokens[of] = append(tokens[of], t)
		}
	}
	leases := make(map[grantID]lease)
	for _, c := range r.Calls {
		of := tokens[holder{c.Election, c.incarnation()}]
		h := heartbeat{asked: c.Asked, answered: Forever}
		switch {
		case c.beat():
			of, h = []leadership.Token{c.Answer.Token}, heartbeat{c.Asked, c.Answered, c.lasts(), c.Answer.LeaseDuration, c.Answer.Revision}
		case !c.mayBeat(c.Candidate, c.Token):
			continue
		}
		for _, t := range of {
			id := grantID{c.Election, t}
			l := leases[id]
			l.beats, l.slack = append(l.beats, h), slack
			leases[id] = l
		}
	}
	return leases
}

// heartbeat is a grant or a renewal that was asked for and not refused. One whose answer was lost
// may have been for any token of its key.
type heartbeat struct {
	asked, answered time.Duration
	lasts           time.Duration // by the answer
	unlimited       time.Duration // if a change after that revision lifts what limits it
	revision        leadership.Revision
}

// lease is all that is known of when one leader led.
type lease struct {
	beats []heartbeat
	slack time.Duration
}

// mayLastUntil is when the lease is over at the latest, as long as that revision is the newest.
func (l lease) mayLastUntil(r leadership.Revision) time.Duration {
	end := time.Duration(math.MinInt64)
	for _, h := range l.beats {
		if h.answered == Forever {
			return Forever
		}
		lasts := h.lasts
		if h.revision < r {
			lasts = max(lasts, h.unlimited)
		}
		end = max(end, h.answered+lasts+l.slack)
	}
	return end
}

// lastsUntil is when the lease is over at the earliest, by the heartbeats that were answered before
// the instant.
func (l lease) lastsUntil(before time.Duration) time.Duration {
	end := time.Duration(math.MinInt64)
	for _, h := range l.beats {
		if h.answered < before {
			end = max(end, h.asked+h.lasts-l.slack)
		}
	}
	return end
}

// checkLease checks that the lease can have been as the reading shows it. It ignores leases without
// recorded heartbeats.
func checkLease(report *Report, x Reading, event leadership.Event, l lease) {
	from, to := x.window()
	switch {
	case len(l.beats) == 0 || event.LeaderID == "":
	case x.State == leadership.Held && from >= l.mayLastUntil(x.Revision):
		report.add(Overdue, "%+v shows a leader whose lease was over at %v", x, l.mayLastUntil(x.Revision))
	case x.State != leadership.Held && to < l.lastsUntil(from):
		report.add(Overdue, "%+v shows no leader, and the lease lasted until %v", x, l.lastsUntil(from))
	}
}

type viewID struct {
	reader   string
	election leadership.Election
}

// checkOrder checks that no reader was shown less than in an answer that it had before it asked.
func checkOrder(report *Report, readings []Reading) {
	views := make(map[viewID][]Reading)
	for _, x := range readings {
		id := viewID{x.Reader, x.Election}
		views[id] = append(views[id], x)
	}
	inOrder := func(a, b viewID) int {
		return cmp.Or(cmp.Compare(a.reader, b.reader), cmp.Compare(a.election, b.election))
	}
	for _, id := range slices.SortedFunc(maps.Keys(views), inOrder) {
		asked := views[id]
		answered := slices.Clone(asked)
		slices.SortFunc(asked, func(a, b Reading) int { return cmp.Compare(a.Asked, b.Asked) })
		slices.SortFunc(answered, func(a, b Reading) int { return cmp.Compare(a.Answered, b.Answered) })
		var seen leadership.Revision
		for _, x := range asked {
			for len(answered) > 0 && answered[0].Answered <= x.Asked {
				seen, answered = max(seen, answered[0].Revision), answered[1:]
			}
			if x.Revision < seen {
				report.add(Backwards, "%+v comes after revision %d was shown", x, seen)
			}
		}
	}
}
