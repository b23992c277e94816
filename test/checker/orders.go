package checker

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"regent/leadership"
)

// OV checks that no lease is granted against an order that stands, by the store's instants: none to
// a candidate that is banned, by an operator or by its own step-down, or by a pattern of its id, or
// that calls as a principal that is; none to another candidate than the one that the election is
// assigned to; and none while the election is paused. Deleting and recreating an election ends no
// order. Guard is by how much the clocks of the store's servers may differ.
//
// What the policy forbids, and approvals, are left to Linear.
func OV(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	for _, e := range truth.elections() {
		o := orders{report: &report, guard: guard, banned: make(map[leadership.CandidateID]standing), principals: make(map[string]standing)}
		for _, event := range truth[e] {
			o.follow(event)
		}
	}
	return report
}

// standing is a standing order as its event describes it.
type standing struct {
	ID          string                 `json:"override"`
	CandidateID leadership.CandidateID `json:"candidateId"`
	Principal   string                 `json:"principal"` // in place of CandidateID
	Mode        leadership.PauseMode   `json:"mode"`
	Until       time.Time              `json:"until"`
}

// standingOf is the order that the event gives or ends; the zero one if there is none.
func standingOf(e leadership.Event) (o standing) {
	if e.Detail == "" || json.Unmarshal([]byte(e.Detail), &o) != nil {
		return standing{}
	}
	return o
}

// orders goes through the events of one election.
type orders struct {
	report *Report
	guard  time.Duration

	paused, assigned standing
	banned           map[leadership.CandidateID]standing
	principals       map[string]standing // that are banned
}

func (o *orders) follow(e leadership.Event) {
	given := standingOf(e)
	switch e.Type {
	case leadership.EventAcquired:
		o.report.Checked++
		o.granted(e)
	case leadership.EventPaused:
		o.paused = given
	case leadership.EventAssigned:
		o.assigned = given
	case leadership.EventBanned, leadership.EventEvicted, leadership.EventReleased:
		switch {
		case given.ID == "": // it bans no candidate
		case given.Principal != "":
			o.principals[given.Principal] = given
		default:
			o.banned[given.CandidateID] = given
		}
	case leadership.EventResumed, leadership.EventLifted:
		o.lift(given)
	}
}

func (o *orders) granted(e leadership.Event) {
	for _, bar := range []struct {
		order standing
		bars  bool
	}{
		{o.ban(e.LeaderID), true},
		{o.principals[e.Actor], true},
		{o.assigned, e.LeaderID != o.assigned.CandidateID},
		{o.paused, true},
	} {
		if bar.bars && e.At.Add(o.guard).Before(bar.order.Until) {
			o.report.add(Barred, "%s by %q was granted, and %+v stands", shown(e), e.Actor, bar.order)
			return
		}
	}
}

// ban is the one of the candidate, or of its pattern, that stands longest.
func (o *orders) ban(c leadership.CandidateID) (longest standing) {
	for banned, order := range o.banned {
		begin, pattern := strings.CutSuffix(string(banned), "*")
		if (banned == c || pattern && strings.HasPrefix(string(c), begin)) && order.Until.After(longest.Until) {
			longest = order
		}
	}
	return longest
}

// lift ends an order.
func (o *orders) lift(given standing) {
	switch id := given.ID; {
	case id == o.paused.ID:
		o.paused = standing{}
	case id == o.assigned.ID:
		o.assigned = standing{}
	}
	maps.DeleteFunc(o.banned, func(_ leadership.CandidateID, ban standing) bool { return ban.ID == given.ID })
	maps.DeleteFunc(o.principals, func(_ string, ban standing) bool { return ban.ID == given.ID })
}

// longestCommit is how long after its decision a change may be committed.
const longestCommit = time.Minute
