package checker

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"regent/leadership"
)

// OV checks that no lease is granted against an order that stands, by the store's instants:
//
//   - none to a candidate that is banned, or calls as a principal that is, by an operator, by its
//     own step-down, or because its term was ended by the policy; after a second such end within
//     the cooldown, for twice as long;
//   - none to another candidate than the one that the election is assigned to;
//   - none while the election is paused;
//   - none after a term that ended for want of an approval, until there are enough.
//
// Deleting and recreating an election ends no order. An approval counts once for each principal,
// until there are enough and the next round begins. Guard is by how much the clocks of the store's
// servers may differ. A cooldown or the need of an approval that no call and no answer shows counts
// as none.
func OV(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	configs := configsOf(truth, r.Calls)
	for _, e := range truth.elections() {
		o := orders{report: &report, guard: guard, banned: make(map[leadership.CandidateID]ban), principals: make(map[string]standing), approvers: make(map[string]bool)}
		for _, event := range truth[e] {
			if configures(event) {
				o.policy = configs[event.ID()].Term
			}
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

// ban is until when a candidate is not granted.
type ban struct {
	ordered  standing
	cooldown time.Time     // of the policy; zero if there is none
	length   time.Duration // of that, at least; it stays when it is over, until the candidate is trusted again
}

// orders goes through the events of one election.
type orders struct {
	report *Report
	guard  time.Duration
	policy leadership.TermPolicy // as configured

	paused, assigned standing
	banned           map[leadership.CandidateID]ban
	principals       map[string]standing // that are banned
	begun            leadership.Event    // the grant of the present leader
	awaits           bool                // no grant without an approval
	approvers        map[string]bool     // of the present round
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
	case leadership.EventBanned, leadership.EventEvicted:
		o.ban(given)
	case leadership.EventReleased:
		o.ban(given)
		switch limitOf(e) {
		case leadership.EndsApproval:
			o.awaits = true
		case leadership.EndsStuck:
			o.depose(e)
		}
	case leadership.EventResumed, leadership.EventLifted:
		o.lift(given)
	case leadership.EventApproved:
		o.approve(e)
	case leadership.EventDeposed:
		o.depose(e)
	case leadership.EventUpdated:
		if e.Reason == probationOver {
			o.trust(e.LeaderID)
		}
	case leadership.EventExpired:
		if limitOf(e) == leadership.EndsApproval {
			o.awaits = true
		}
	case leadership.EventEpoch:
		clear(o.approvers)
	}
	if !o.begun.At.IsZero() && ends(e) {
		if b := o.banned[o.begun.LeaderID]; e.Type != leadership.EventDeposed && limitOf(e) != leadership.EndsStuck && e.At.Sub(o.begun.At) >= b.length {
			b.length = 0 // it has led for long enough
			o.banned[o.begun.LeaderID] = b
		}
		o.begun = leadership.Event{}
		if limitOf(e) != leadership.EndsApproval { // an approval that came too late counts for the next term
			clear(o.approvers)
		}
	}
}

func (o *orders) granted(e leadership.Event) {
	at := e.At.Add(o.guard)
	b := o.banned[e.LeaderID]
	switch {
	case at.Before(b.ordered.Until):
		o.report.add(Barred, "%s was granted, and the candidate was banned until %s (%s)", shown(e), stamp(b.ordered.Until), b.ordered.ID)
	case at.Before(o.principals[e.Actor].Until):
		o.report.add(Barred, "%s was granted to %q, which was banned until %s", shown(e), e.Actor, stamp(o.principals[e.Actor].Until))
	case at.Before(b.cooldown):
		o.report.add(Barred, "%s was granted, and the policy's cooldown of the candidate lasts until %s", shown(e), stamp(b.cooldown))
	case at.Before(o.assigned.Until) && e.LeaderID != o.assigned.CandidateID:
		o.report.add(Barred, "%s was granted, and the election was assigned to %q until %s", shown(e), o.assigned.CandidateID, stamp(o.assigned.Until))
	case at.Before(o.paused.Until):
		o.report.add(Barred, "%s was granted, and the election was paused until %s", shown(e), stamp(o.paused.Until))
	case o.awaits && o.policy.Approval.Every > 0:
		o.report.add(Barred, "%s was granted, and no operator had approved after the term before", shown(e))
	}
	o.begun, o.awaits = e, false
	clear(o.approvers)
}

func (o *orders) ban(given standing) {
	switch {
	case given.ID == "":
		return
	case given.Principal != "":
		o.principals[given.Principal] = given
		return
	}
	b := o.banned[given.CandidateID]
	b.ordered = given
	o.banned[given.CandidateID] = b
}

func (o *orders) trust(who leadership.CandidateID) {
	b := o.banned[who]
	b.cooldown, b.length = time.Time{}, 0
	o.banned[who] = b
}

func (o *orders) lift(given standing) {
	switch {
	case given.ID == o.paused.ID:
		o.paused = standing{}
	case given.ID == o.assigned.ID:
		o.assigned = standing{}
	case strings.HasPrefix(given.ID, "cooldown-"):
		o.trust(given.CandidateID)
	case given.Principal != "":
		if o.principals[given.Principal].ID == given.ID {
			delete(o.principals, given.Principal)
		}
	default:
		if b := o.banned[given.CandidateID]; b.ordered.ID == given.ID {
			b.ordered = standing{}
			o.banned[given.CandidateID] = b
		}
	}
}

// approve counts an approval. The first of a round begins it.
func (o *orders) approve(e leadership.Event) {
	var count struct{ Have, Need int }
	if err := json.Unmarshal([]byte(e.Detail), &count); err != nil {
		o.report.add(Untrue, "%s says %s", shown(e), e.Detail)
		return
	}
	if count.Have == 1 {
		clear(o.approvers)
	}
	if o.approvers[e.Actor] || count.Have != len(o.approvers)+1 {
		o.report.add(Twice, "%s by %q counts as number %d of %d, and %d others have approved", shown(e), e.Actor, count.Have, count.Need, len(o.approvers))
	}
	o.approvers[e.Actor] = true
	if count.Have >= count.Need {
		o.awaits = false
		clear(o.approvers)
	}
}

// depose begins the cooldown. A candidate that has not led for as long as the last one was, since
// it was granted after that, is out for twice as long.
func (o *orders) depose(e leadership.Event) {
	length := o.policy.Cooldown
	if length == 0 {
		return
	}
	b := o.banned[e.PreviousLeaderID]
	soon := !o.begun.At.IsZero() && e.At.Sub(o.begun.At) < b.length && o.begun.At.Before(b.cooldown.Add(forgotten))
	if b.length > 0 && soon {
		length = min(max(length, 2*b.length), leadership.MaxCooldown)
	}
	from := e.At
	if ranOut(e) {
		from = o.begun.At // it may have run out long before that was recorded
	}
	b.cooldown, b.length = from.Add(length), length
	if given := standingOf(e); given.ID == "" && given.Until.Before(b.cooldown) && b.cooldown.Sub(given.Until) < longestCommit {
		b.cooldown = given.Until // it counts from the decision
	}
	o.banned[e.PreviousLeaderID] = b
	if most := 8; len(o.banned) > most { // an election remembers no more
		clear(o.banned)
	}
}

// longestCommit is how long after its decision a change may be committed.
const longestCommit = time.Minute

// forgotten is how long after a cooldown its candidate is trusted again at the latest.
const forgotten = 24 * time.Hour

// orderOf is the order that made the events, if an order did.
func orderOf(events []leadership.Event, now time.Time) (c leadership.OrderCommand, ok bool) {
	e := events[len(events)-1]
	given := standingOf(e)
	since := now.UTC().Round(0)
	if short := since.Truncate(time.Microsecond); !short.Equal(since) {
		since = short.Add(time.Microsecond)
	}
	c = leadership.OrderCommand{Reason: e.Reason, Actor: e.Actor}
	switch e.Type {
	case leadership.EventAssigned:
		c.Kind, c.CandidateID, c.For = leadership.OrderAssign, given.CandidateID, given.Until.Sub(since)
	case leadership.EventPaused:
		c.Kind, c.Mode, c.For = leadership.OrderPause, given.Mode, given.Until.Sub(since)
	case leadership.EventBanned:
		c.Kind, c.CandidateID, c.Principal, c.For = leadership.OrderBan, given.CandidateID, given.Principal, given.Until.Sub(since)
	case leadership.EventEvicted:
		if c.Kind = leadership.OrderEvict; given.ID != "" {
			c.Ban = given.Until.Sub(since)
		}
	case leadership.EventResumed:
		c.Kind = leadership.OrderResume
	case leadership.EventLifted:
		c.Kind, c.Override = leadership.OrderLift, leadership.OverrideID(given.ID)
	case leadership.EventApproved, leadership.EventEpoch:
		i := slices.IndexFunc(events, func(e leadership.Event) bool { return e.Type == leadership.EventApproved })
		c.Kind, c.NewEpoch = leadership.OrderApprove, e.Type == leadership.EventEpoch
		if c.Token = e.Token; i >= 0 {
			c.Token = events[i].Token
		}
	default:
		return c, false
	}
	return c, true
}
