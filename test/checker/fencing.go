package checker

import (
	"regent/leadership"
)

// FT checks that tokens strictly increase: each grant has the token after the one before, through deletion and recreation too, and nothing
// else changes it; that every answer shows a token that the history has at that revision; that no two keys had the same one; and that
// where tokens are looked at a write was let in if, and only if, no newer token had been seen there. A write of which it is not known what had been
// seen, for its reply was lost, has Newest 0 and says nothing.
func FT(r Recording) Report {
	truth, report := truthOf(r.History)
	for _, e := range truth.elections() {
		var last leadership.Token
		for _, event := range truth[e] {
			report.Checked++
			want := last
			if event.Type == leadership.EventAcquired {
				want++
			}
			if event.Token != want {
				report.accuse(NotNext, "%s, after token %d", shown(event), last)
			}
			last = event.Token
		}
	}
	terms := truth.allTerms()
	checkKeys(&report, r.Calls, terms)
	checkWrites(&report, r.Writes, terms)
	return report
}

// incarnation is who holds a key.
type incarnation struct {
	candidate leadership.CandidateID
	key       leadership.KeyHash
}

func (c Call) incarnation() incarnation { return incarnation{c.Candidate, c.Key} }

// checkKeys asks whether two had a token: were told that it is theirs, or ended its lease with a release.
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
			report.accuse(Shared, "%v, and %v", owner, c)
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
			report.accuse(Phantom, "%+v: the token was never granted", w)
		case w.Admitted && w.Token < w.Newest:
			report.accuse(Unfenced, "%+v", w)
		case !w.Admitted && w.Newest > 0 && w.Token >= w.Newest:
			report.accuse(ShutOut, "%+v", w)
		}
	}
}
