package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"regent/leadership"
)

// ME2 checks that no candidate believed that it led after its lease had ended: the beliefs in
// different tokens of one election never overlap, and none lasts beyond
//
//   - the first answer, to any caller, that shows a higher token, or that shows the lease to have
//     run out or to be released. A deletion by force ends no belief: the next token does. One
//     that shows it to have run out, before that is on record, may be by a clock of the store that
//     is ahead of the one by which the leader was answered: by slack at most;
//   - the first answer, to any caller, that shows that its leader has yielded; and the call by
//     which it did;
//   - the lease, counted from the last answer that let it start anew, and no longer than what
//     limited it by that answer. Slack is by how much the
//     clocks of the store and of the recording may differ during a lease. A lease without such
//     an answer is not checked.
//
// An epoch ends no belief either: the leader goes on under the next token, and the old one ends in
// the sense of fencing alone. The next grant to another candidate ends both.
//
// The only exemption is a token after which an operator has unlocked the election: its leader may
// believe in it beside the next, until the end of its lease. ME1 checks that the operator has
// acknowledged that.
func ME2(r Recording, slack time.Duration) Report {
	truth, report := truthOf(r.History)
	yields := yieldsOf(truth, r.Calls)
	over, unlocked, reign := endingsOf(r.Calls, truth.allTerms(), slack), truth.unlocked(), truth.reign()
	beats := make(map[grantID][]Call)
	for _, c := range r.Calls {
		if c.beat() {
			id := grantID{c.Election, c.Answer.Token}
			beats[id] = append(beats[id], c)
		}
	}
	for _, b := range r.Beliefs {
		report.Checked++
		id := grantID{b.Election, b.Token}
		told, isTold := over.after(reign.of(id))
		end, isKnown := lastsUntil(beats[id], b.Until)
		yielded, isYielded := yields[id]
		switch {
		case isYielded && b.Until > yielded:
			report.add(Outlived, "%+v, and its leader asked at %v to yield", b, yielded)
		case isTold && b.Until > told && !unlocked[id]:
			report.add(Outlived, "%+v, and a caller was told at %v that it was over", b, told)
		case isKnown && b.Until > end+slack:
			report.add(Outlived, "%+v, and the lease lasted until %v at most", b, end)
		}
	}
	checkOverlap(&report, r.Beliefs, unlocked, reign)
	return report
}

// lastsUntil is when the lease ended at the latest, by what was asked for until then.
func lastsUntil(beats []Call, asked time.Duration) (end time.Duration, known bool) {
	for _, c := range beats {
		if c.Asked <= asked {
			end, known = max(end, c.Answered+c.lasts()), true
		}
	}
	return end, known
}

// lasts is how long the lease of an answer lasts that lets it start anew.
func (c Call) lasts() time.Duration {
	a := c.Answer
	return min(a.LeaseDuration, a.LeaseExpiration.Sub(a.LastHeartbeat))
}

// yieldsOf is, for each token whose leader has yielded, when the leader asked to: by then it has
// stopped. If several calls asked, the first counts, also if it was refused as too early.
func yieldsOf(t truth, calls []Call) map[grantID]time.Duration {
	yielded := make(map[grantID]bool)
	for e, events := range t {
		for _, event := range events {
			if event.Type == leadership.EventYielded {
				yielded[grantID{e, event.Token}] = true
			}
		}
	}
	asked := make(map[grantID]time.Duration)
	for _, c := range calls {
		id := grantID{c.Election, c.Token}
		if at, known := asked[id]; c.Verb == Yield && yielded[id] && (!c.refused() || c.Code == leadership.NotReady) && (!known || c.Asked < at) {
			asked[id] = c.Asked
		}
	}
	return asked
}

// endings is, for each election, by when the lease of each token and all before it were over.
type endings map[leadership.Election][]ending

type ending struct {
	token leadership.Token
	by    time.Duration
}

// forced are the ends of a lease that end no belief: the next token does.
var forced = []leadership.EventType{leadership.EventDeleted, leadership.EventUnlocked, leadership.EventDeposed}

func endingsOf(calls []Call, terms map[grantID]term, slack time.Duration) endings {
	first := make(map[grantID]time.Duration)
	for _, c := range calls {
		if !c.shows() || c.Answer.Token == 0 {
			continue
		}
		id, by := grantID{c.Election, c.Answer.Token}, c.Answered
		if c.Answer.State == leadership.Vacant && c.Answer.Revision < terms[id].ended.Revision {
			by += slack
		}
		if c.Answer.State == leadership.Held && !c.Answer.Succession.Yielded || slices.Contains(forced, terms[id].ended.Type) {
			id.token-- // this token exists, so the one before is over
		}
		if known, ok := first[id]; !ok || by < known {
			first[id] = by
		}
	}
	o := make(endings)
	for id, by := range first {
		o[id.election] = append(o[id.election], ending{id.token, by})
	}
	for _, line := range o {
		slices.SortFunc(line, func(a, b ending) int { return cmp.Compare(a.token, b.token) })
		for i := len(line) - 2; i >= 0; i-- {
			line[i].by = min(line[i].by, line[i+1].by)
		}
	}
	return o
}

// after is by when a lease was over, as far as an answer shows it.
func (o endings) after(id grantID) (time.Duration, bool) {
	line := o[id.election]
	i, _ := slices.BinarySearchFunc(line, id.token, func(a ending, t leadership.Token) int { return cmp.Compare(a.token, t) })
	if i == len(line) {
		return 0, false
	}
	return line[i].by, true
}

// checkOverlap compares each belief with the longest-lasting one of another token among those that
// began before.
func checkOverlap(report *Report, beliefs []Belief, unlocked map[grantID]bool, reign reign) {
	byElection := make(map[leadership.Election][]Belief)
	for _, b := range beliefs {
		b.Token = reign.of(grantID{b.Election, b.Token}).token
		byElection[b.Election] = append(byElection[b.Election], b)
	}
	for _, e := range slices.Sorted(maps.Keys(byElection)) {
		line := byElection[e]
		slices.SortStableFunc(line, func(a, b Belief) int { return cmp.Compare(a.From, b.From) })
		var longest, other Belief // of two tokens
		for _, b := range line {
			for _, before := range []Belief{longest, other} {
				exempt := unlocked[grantID{e, min(before.Token, b.Token)}]
				if before.Token > 0 && before.Token != b.Token && before.Until > b.From && b.Until > b.From && !exempt {
					report.add(TwoLeaders, "%+v and %+v", before, b)
				}
			}
			switch {
			case b.Token == longest.Token:
				longest.Until = max(longest.Until, b.Until)
			case b.Until > longest.Until || longest.Token == 0:
				longest, other = b, longest
			case b.Until > other.Until:
				other = b
			}
		}
	}
}
