package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"regent/leadership"
)

// ME1 checks that for each election the intervals of two tokens never overlap, by the store's
// clock.
//
// A token's interval begins with its grant. It ends with a release, or with the greatest end in any
// answer: a lease that ran out, or that an operator ended by force, binds the next grant to that
// end, and to the lock delay that was configured then. A delay that no call and no answer shows
// counts as none.
//
// An epoch gives the next token to the leader itself, without a gap; what was promised under the
// token before still binds the next grant. So does what was promised to a leader that was deposed.
//
// A leader that yields gives up what it was promised: that binds no grant any more.
//
// An operator who unlocks the election lets the next lease be granted at once. That must have been
// acknowledged, with an instant that is not before that end: see Unacknowledged.
//
// No answer shows a leader before its grant or after the end of its term, and none shows a
// heartbeat that came after the end of the lease that it renewed. Where an answer is missing,
// because its reply was lost or its leader is not recorded, this is not checked. Guard is by how
// much the clocks of the store's servers may differ.
func ME1(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	promises, configs := promisesOf(r.Calls), configsOf(truth, r.Calls)
	for _, e := range truth.elections() {
		exclusion := exclusion{report: &report, promises: promises, guard: guard, acknowledged: acknowledgementsOf(r.Calls)}
		for _, event := range truth[e] {
			exclusion.follow(event, configs[event.ID()].LockDelay)
		}
	}
	terms := truth.allTerms()
	checkHeld(&report, r.Calls, terms, guard)
	checkRevived(&report, r.Calls, terms)
	return report
}

// exclusion goes through the events of one election.
type exclusion struct {
	report   *Report
	promises map[grantID]time.Time
	guard    time.Duration
	// what was acknowledged by each request that unlocks
	acknowledged map[string]string

	now   time.Time        // of the last event
	grant leadership.Event // of the present lease; zero if there is none
	free  time.Time        // no lease may be granted before
	owed  time.Time        // what the leader was promised under its tokens before
	gave  time.Time        // when the leader yielded; zero if it has not
	delay time.Duration    // the lock delay, as configured
}

func (g *exclusion) follow(e leadership.Event, delay time.Duration) {
	if e.At.Before(g.now.Add(-g.guard)) {
		g.report.add(Backwards, "%s comes after an event at %s", shown(e), stamp(g.now))
	}
	g.now = e.At
	switch {
	case e.Type == leadership.EventAcquired:
		g.report.Checked++
		g.begin(e)
	case e.Type == leadership.EventEpoch:
		g.report.Checked++
		g.epoch(e)
	case e.Type == leadership.EventUnlocked:
		g.unlock(e)
	case e.Type == leadership.EventYielded:
		g.gave = e.At
	case ends(e):
		g.end(e)
	case configures(e):
		g.delay = delay
	}
}

func (g *exclusion) begin(e leadership.Event) {
	switch {
	case g.grant.Token > 0:
		g.report.add(TwoLeaders, "%s was granted, and the lease of %q with token %d had not ended", shown(e), g.grant.LeaderID, g.grant.Token)
	case e.At.Before(g.free):
		g.report.add(TooSoon, "%s was granted before %s", shown(e), stamp(g.free))
	}
	g.grant, g.owed, g.gave = e, time.Time{}, time.Time{}
}

// epoch gives the next token to the leader that leads, without a gap. What it was promised under
// the token before still binds.
func (g *exclusion) epoch(e leadership.Event) {
	if g.grant.Token == 0 || g.grant.Token != e.Token-1 || g.grant.LeaderID != e.LeaderID {
		g.report.add(TwoLeaders, "%s is no next token of a leader: %q has token %d", shown(e), g.grant.LeaderID, g.grant.Token)
	}
	g.owed = later(g.owed, g.promises[grantID{e.Election, e.Token - 1}])
	g.grant = e
}

func (g *exclusion) end(e leadership.Event) {
	if g.grant.Token != e.Token || g.grant.LeaderID != e.PreviousLeaderID || e.Token == 0 {
		g.report.add(Untrue, "%s ends a lease that %q did not hold", shown(e), e.PreviousLeaderID)
	}
	promised := later(g.promises[grantID{e.Election, e.Token}], g.owed)
	if !g.gave.IsZero() {
		promised = g.gave
	}
	switch {
	case e.Type == leadership.EventReleased:
		g.free = e.At
	case ranOut(e) && e.At.Before(promised):
		g.report.add(CutShort, "%s ended before %s, which had been promised", shown(e), stamp(promised))
		g.free = promised.Add(g.delay)
	case promised.IsZero() && limitOf(e) == leadership.EndsParent: // it may have been over when it was granted: no one led
		g.free = g.grant.At
	default:
		g.free = later(promised, g.grant.At).Add(g.delay)
	}
	g.grant = leadership.Event{}
}

// unlock ends the wait, if the operator has acknowledged all of it.
func (g *exclusion) unlock(e leadership.Event) {
	if e.PreviousLeaderID != "" {
		g.end(e)
	}
	until := e.ReadDetail().TwoMayBelieveUntil
	said, recorded := g.acknowledged[e.RequestID]
	switch {
	case until.Before(g.free):
		g.report.add(Unacknowledged, "%s says %s, and the next lease was to be granted from %s on", shown(e), e.Detail, stamp(g.free))
	case recorded && said != "two leaders may believe until "+stamp(until.UTC()):
		g.report.add(Unacknowledged, "%s says %s, and the operator acknowledged %q", shown(e), e.Detail, said)
	}
	g.free = e.At
}

// acknowledgementsOf is what was acknowledged, by the id of the request.
func acknowledgementsOf(calls []Call) map[string]string {
	said := make(map[string]string)
	for _, c := range calls {
		if c.Verb == Unlock && c.Request != "" {
			said[c.Request] = c.Acknowledge
		}
	}
	return said
}

// checkHeld checks that each answer that shows a leader is within its term.
func checkHeld(report *Report, calls []Call, terms map[grantID]term, guard time.Duration) {
	for _, c := range calls {
		if !c.shows() || c.Answer.State != leadership.Held {
			continue
		}
		term, ok := terms[grantID{c.Election, c.Answer.Token}]
		switch at := c.at(); {
		case !ok: // Told reports what was never granted
		case at.Before(term.granted.At.Add(-guard)):
			report.add(Early, "%v: it was granted at %s", c, stamp(term.granted.At))
		case term.over() && at.After(term.ended.At.Add(guard)):
			report.add(Stale, "%v: it had ended at %s", c, stamp(term.ended.At))
		}
	}
}

// checkRevived checks that each heartbeat came during the lease that it renewed, for tokens of
// which all are known.
func checkRevived(report *Report, calls []Call, terms map[grantID]term) {
	beats := make(map[grantID][]Call)
	lost := make(map[leadership.Election][]Call)
	for _, c := range calls {
		switch id := (grantID{c.Election, 0}); {
		case c.mayBeat(c.Candidate, c.Token):
			lost[c.Election] = append(lost[c.Election], c)
		case c.beat() && c.Answer.State == leadership.Held:
			id.token = c.Answer.Token
			beats[id] = append(beats[id], c)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(beats), grantID.compare) {
		line, granted := beats[id], terms[id].granted
		slices.SortStableFunc(line, func(a, b Call) int { return a.at().Compare(b.at()) })
		mayHaveMore := func(c Call) bool { return c.mayBeat(granted.LeaderID, id.token) }
		if !line[0].at().Equal(granted.At) || slices.ContainsFunc(lost[id.election], mayHaveMore) {
			continue
		}
		for i := 1; i < len(line); i++ {
			if end := line[i-1].Answer.LeaseExpiration; !line[i].at().Before(end) {
				report.add(Revived, "%v: the lease had ended at %s", line[i], stamp(end))
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shown describes an event.
func shown(e leadership.Event) string {
	text := string(e.Type)
	if who := e.LeaderID + e.PreviousLeaderID; who != "" {
		text += " " + string(who)
	}
	return fmt.Sprintf("%s of election %q, revision %d, token %d, at %s", text, e.Election, e.Revision, e.Token, stamp(e.At))
}

func stamp(t time.Time) string { return t.Format(time.RFC3339Nano) }
