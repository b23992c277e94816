package checker

import (
	"cmp"
	"slices"

	"regent/leadership"
)

// ID checks that repeating a call does what once would have done.
//
//   - The same candidate with the same key is never granted a second token during its first lease.
//   - What was acknowledged is in the history: the grant, the end of the lease, the configuration,
//     the deletion.
//   - No request has made the same change more often than it was sent. ME1 checks that no lease was
//     released twice.
//   - What was refused is not in the history. The end of a lease may be, because a late renewal
//     may be the first to find it over; and so may a change of a lease that came too late to
//     renew it, and the end of a term by the report of a renewal that is refused for it, or for a
//     better candidate. A request that waited was sent more than once, and is not checked.
func ID(r Recording) Report {
	truth, report := truthOf(r.History)
	made := madeBy(r.History)
	sent := make(map[string]int)
	for _, c := range r.Calls {
		sent[c.Request]++
	}
	terms := truth.allTerms()
	for _, c := range r.Calls {
		report.Checked++
		switch {
		case c.done() && c.Answer != nil:
			checkMade(&report, c, truth, terms)
		case c.refused() && c.Request != "" && c.Waited == 0 && sent[c.Request] == 1:
			checkUnmade(&report, c, made[c.Request])
		}
		if c.Request != "" && c.Waited == 0 {
			checkOnce(&report, c, made[c.Request], sent[c.Request])
		}
	}
	checkTokens(&report, r.Calls, terms)
	return report
}

// madeBy groups the events by the request that made them.
func madeBy(history []leadership.Event) map[string][]leadership.Event {
	made := make(map[string][]leadership.Event)
	for _, e := range history {
		if e.RequestID != "" {
			made[e.RequestID] = append(made[e.RequestID], e)
		}
	}
	return made
}

// checkMade checks that the history has what a caller was told was done.
func checkMade(report *Report, c Call, t truth, terms map[grantID]term) {
	_, exists := t.event(c.Election, c.Answer.Revision)
	term, granted := terms[grantID{c.Election, cmp.Or(c.Token, c.Answer.Token)}]
	switch {
	case c.Verb == Acquire && (!granted || term.granted.LeaderID != c.Candidate || term.granted.Revision > c.Answer.Revision):
		report.add(Missing, "%v: the history has no such grant", c)
	case c.Verb == Release && granted && (!term.over() || term.ended.Revision > c.Answer.Revision):
		report.add(Missing, "%v: the history has no end of the lease", c)
	case c.Verb == Delete && !t.deleted(c.Election, c.Answer.Revision):
		report.add(Missing, "%v: the history has no deletion", c)
	case c.Verb == HandOver && !t.tells(c, leadership.EventHandingOver, c.To), c.Verb == Yield && !t.tells(c, leadership.EventYielded, "") && !(granted && term.over()):
		report.add(Missing, "%v: the history has no such hand-over", c)
	case c.Verb == Ready && !t.tells(c, leadership.EventReady, c.Candidate):
		report.add(Missing, "%v: the history has no such successor", c)
	case c.Verb == Configure && (!exists || t.deleted(c.Election, c.Answer.Revision)):
		report.add(Missing, "%v: the history has no configuration", c)
	case c.Verb == Configure && c.Answer.Config != explicit(c.Config):
		report.add(Untrue, "%v: the configuration is %+v, and %+v was asked for", c, c.Answer.Config, explicit(c.Config))
	}
}

// tells reports whether the history has an event of the type, and about the successor if one is
// given, in the term and up to the revision that the answer shows.
func (t truth) tells(c Call, of leadership.EventType, to leadership.CandidateID) bool {
	for r := min(c.Answer.Revision, leadership.Revision(len(t[c.Election]))); r > 0; r-- {
		e := t[c.Election][r-1]
		switch {
		case e.Type == of && (to == "" || successorOf(e) == to || readyOf(e) == to):
			return true
		case e.Type == leadership.EventAcquired:
			return false
		}
	}
	return false
}

// explicit is a configuration as answers show it.
func explicit(c leadership.Config) leadership.Config {
	c.LeaseDuration = cmp.Or(c.LeaseDuration, leadership.DefaultLeaseDuration)
	if c.Term.Approval.Every > 0 {
		c.Term.Approval.Need = max(c.Term.Approval.Need, 1)
	}
	if c.Term.OnTrip == leadership.TripStepDown {
		c.Term.OnTrip = ""
	}
	if c.Term.CooldownOf == leadership.CooldownCandidate {
		c.Term.CooldownOf = ""
	}
	b := &c.Ballot
	if b.Strategy == leadership.StrategyFirstCome {
		b.Strategy = ""
	}
	switch {
	case b.Window == 0 && b.HasBallot():
		b.Window = leadership.DefaultWindow
	case b.Window == leadership.NoWindow && b.Strategy == "":
		b.Window = 0
	}
	if b.Quorum.Electorate != "" {
		b.Quorum.Grace = cmp.Or(b.Quorum.Grace, leadership.DefaultGrace)
	}
	return c
}

// deleted reports whether the election was deleted at that revision.
func (t truth) deleted(e leadership.Election, at leadership.Revision) bool {
	for r := min(at, leadership.Revision(len(t[e]))); r > 0; r-- {
		switch event := t[e][r-1]; {
		case event.Type == leadership.EventDeleted:
			return true
		case event.Type != leadership.EventUpdated:
			return false
		}
	}
	return false
}

// checkUnmade checks that the history does not have what a caller was told was refused.
func checkUnmade(report *Report, c Call, made []leadership.Event) {
	for _, e := range made {
		late := c.Code == leadership.LeaseLost && (e.Type == leadership.EventUpdated || e.Type == leadership.EventDeposed || e.Type == leadership.EventParked)
		challenged := c.Verb == Acquire && c.Code == leadership.LeaseHeld && e.Type == leadership.EventHandingOver
		if e.Election == c.Election && !ranOut(e) && !late && !challenged {
			report.add(Denied, "%v: %s", c, shown(e))
		}
	}
}

// checkOnce checks that a request has made no more changes than it was sent.
func checkOnce(report *Report, c Call, made []leadership.Event, sent int) {
	// An acquire may wait, and meanwhile find several leases over, or challenge a leader and take
	// that back, again and again.
	type change struct {
		leadership.EventType
		leadership.Token
	}
	count := make(map[change]int)
	for _, e := range made {
		of := change{EventType: e.Type}
		if c.Verb == Acquire && ranOut(e) {
			of.Token = e.Token
		}
		challenge := e.Type == leadership.EventHandingOver || e.Type == leadership.EventGoesOn
		// A grant that was over before its answer, or was given back because the lease that it
		// stood on had ended, is asked for again; checkTokens holds that it was over.
		over := e.Type == leadership.EventAcquired && (c.Answer == nil || e.Token < c.Answer.Token || slices.ContainsFunc(made, func(later leadership.Event) bool {
			return (later.Type == leadership.EventReleased || ranOut(later)) && later.Election == e.Election && later.Token == e.Token
		}))
		if e.Election != c.Election || c.Verb == Acquire && (challenge || over) {
			continue
		}
		if count[of]++; count[of] == sent+1 {
			report.add(Twice, "%v, which was sent %d times: %s", c, sent, shown(e))
		}
	}
}

// checkTokens checks, of each key with several tokens, that the lease of one had ended when the
// next was granted.
func checkTokens(report *Report, calls []Call, terms map[grantID]term) {
	type owner struct {
		election leadership.Election
		incarnation
	}
	promises := promisesOf(calls)
	tokens := make(map[owner][]leadership.Token)
	var owners []owner
	for _, c := range calls {
		if !c.beat() || c.Key == (leadership.KeyHash{}) {
			continue
		}
		o := owner{c.Election, c.incarnation()}
		if tokens[o] == nil {
			owners = append(owners, o)
		}
		tokens[o] = append(tokens[o], c.Answer.Token)
	}
	for _, o := range owners {
		slices.Sort(tokens[o])
		held := slices.Compact(tokens[o])
		for i := 1; i < len(held); i++ {
			first, second := terms[grantID{o.election, held[i-1]}], terms[grantID{o.election, held[i]}]
			lasted := !first.over() || first.ended.Revision > second.granted.Revision ||
				ranOut(first.ended) && promises[first.id()].After(second.granted.At)
			if first.granted.Token > 0 && second.granted.Token > 0 && lasted {
				report.add(Twice, "%s was granted to a key that held token %d until %s", shown(second.granted), held[i-1], stamp(promises[first.id()]))
			}
		}
	}
}
