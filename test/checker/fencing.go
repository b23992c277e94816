package checker

import (
	"regent/leadership"
)

// FT checks that tokens strictly increase: each grant or epoch has the token after the one before,
// through deletion and recreation too, and nothing else changes it; that no two keys had the same
// token; and that where tokens are checked a write was admitted if, and only if, no newer token had
// been seen there. Told checks the tokens that answers show. A write has Newest 0, and is not
// checked, if it is unknown what had been seen because its reply was lost.
func FT(r Recording) Report {
	truth, report := truthOf(r.History)
	for _, e := range truth.elections() {
		var last leadership.Token
		for _, event := range truth[e] {
			report.Checked++
			want := last
			if begins(event) {
				want++
			}
			if event.Token != want {
				report.add(NotNext, "%s, after token %d", shown(event), last)
			}
			last = event.Token
		}
	}
	terms := truth.allTerms()
	checkKeys(&report, r.Calls, terms)
	checkWrites(&report, r.Writes, terms)
	return report
}

// incarnation is a candidate with a key.
type incarnation struct {
	candidate leadership.CandidateID
	key       leadership.KeyHash
}

func (c Call) incarnation() incarnation { return incarnation{c.Candidate, c.Key} }

// checkKeys checks that no two incarnations had one token: were told that it is theirs, or released
// its lease.
func checkKeys(report *Report, calls []Call, terms map[grantID]term) {
	owners := make(map[grantID]Call)
	for _, c := range calls {
		id := grantID{c.Election, c.Token}
		ended := terms[id].ended
		switch released := c.Verb == Release && ended.Type == leadership.EventReleased && ended.RequestID == c.Request && c.Request != ""; {
		case c.Key == (leadership.KeyHash{}):
			continue
		case c.beat():
			id.token = c.Answer.Token
		case !released:
			continue
		}
		if owner, ok := owners[id]; ok && owner.incarnation() != c.incarnation() {
			report.add(Shared, "%v, and %v", owner, c)
			continue
		}
		owners[id] = c
	}
}

func checkWrites(report *Report, writes []Write, terms map[grantID]term) {
	for _, w := range writes {
		_, granted := terms[grantID{w.Election, w.Token}]
		switch {
		case !granted:
			report.add(Phantom, "%+v: the token was never granted", w)
		case w.Admitted && w.Token < w.Newest:
			report.add(Unfenced, "%+v", w)
		case !w.Admitted && w.Newest > 0 && w.Token >= w.Newest:
			report.add(ShutOut, "%+v", w)
		}
	}
}
