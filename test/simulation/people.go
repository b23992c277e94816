package simulation

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/test/checker"
)

// give does what an operator or a verifier may do.
func (s *simulation) give(e leadership.Election) {
	w := s.w
	d := max(w.about(3*s.plan.lease), leadership.MinOrder).Truncate(time.Millisecond)
	actor := []string{"dot", "pia", "sam"}[w.random.IntN(3)]
	token := max(1, s.truth.reign(e).token)
	o := leadership.Order{Reason: "it has to be", Actor: actor}
	who := s.agents[w.random.IntN(len(s.agents))].name
	switch w.random.IntN(11) {
	case 0:
		o.Kind, o.CandidateID, o.For = leadership.OrderAssign, who, d
	case 1:
		o.Kind = leadership.OrderEvict
		if w.chance(0.5) {
			o.Ban = d
		}
	case 2:
		o.Kind, o.For, o.Mode = leadership.OrderPause, d, leadership.PauseDrain
		if w.chance(0.5) {
			o.Mode = leadership.PauseFreeze
		}
	case 3:
		o.Kind = leadership.OrderResume
	case 4:
		o.Kind, o.CandidateID, o.For = leadership.OrderBan, who, d
	case 5:
		orders := (&rule.Snapshot{Record: s.data.row(e).record, Now: epoch.Add(w.now)}).Orders().List()
		if len(orders) == 0 {
			return
		}
		o.Kind, o.Override = leadership.OrderLift, orders[w.random.IntN(len(orders))].ID
	case 6, 7, 8:
		o.Kind, o.Token, o.NewEpoch = leadership.OrderApprove, token, w.chance(0.4)
		o.IfRevision = s.data.row(e).record.Revision
	default:
		c := leadership.Judge{Token: token, Verdict: leadership.VerdictBad, Evidence: "as it seems", Actor: actor}
		if w.chance(0.3) {
			c.Verdict = leadership.VerdictGood
		}
		s.judge(e, c, 3)
		return
	}
	s.giveAgain(e, o, 3)
}

// giveAgain gives an order, and again if its outcome is unknown: it does what once would have done.
func (s *simulation) giveAgain(e leadership.Election, o leadership.Order, tries int) {
	s.w.tell("%s: %s orders %s %s for %v", e, o.Actor, o.Kind, o.CandidateID, max(o.For, o.Ban))
	s.operator(e, checker.Call{Verb: checker.Order, Order: o}, o.In(e), s.again(tries, func() { s.giveAgain(e, o, tries-1) }))
}

func (s *simulation) judge(e leadership.Election, c leadership.Judge, tries int) {
	s.w.tell("%s: %s judges the work of token %d %s", e, c.Actor, c.Token, c.Verdict)
	call := checker.Call{Verb: checker.Judge, Token: c.Token, Verdict: c.Verdict, Reason: c.Evidence, Actor: c.Actor}
	c.Election = e
	s.operator(e, call, c, s.again(tries, func() { s.judge(e, c, tries-1) }))
}

// again does something once more if a call came to nothing.
func (s *simulation) again(tries int, do func()) func(error) {
	return func(err error) {
		if err != nil && !sound(err) && tries > 0 && s.plan.faults.people {
			s.w.after(s.w.upTo(2*time.Second), do)
		}
	}
}

// operator makes a call through any instance.
func (s *simulation) operator(e leadership.Election, c checker.Call, command leadership.Command, answered func(error)) {
	c.Caller, c.Election = "operator", e
	at := s.record.called(c)
	s.any().serve(s.record.id(at), command, func(l leadership.Lease, err error) {
		s.record.answered(at, reply{lease: &l, err: err})
		answered(err)
	})
}

// barred reports whether an order keeps the agent from being granted the lease.
func (s *simulation) barred(a *agent) bool {
	return len(barring(s.data.row(a.election).record, a.name, s.storeNow())) > 0
}

func (s *simulation) storeNow() time.Time { return epoch.Add(s.w.now + s.data.ahead) }

// barring are the orders, and the approval that is awaited, by which a candidate would be refused.
func barring(r rule.Record, c leadership.CandidateID, now time.Time) []leadership.Cause {
	return slices.DeleteFunc(rule.Explain(rule.Snapshot{Record: r, Now: now}, c).Causes, func(c leadership.Cause) bool {
		return !slices.Contains([]leadership.Reason{leadership.ReasonBanned, leadership.ReasonAssigned, leadership.ReasonPaused, leadership.ReasonApproval, leadership.ReasonParked}, c.Code)
	})
}

// history is all events of the store.
func (s *simulation) history() (all []leadership.Event) {
	for _, e := range s.stored() {
		all = append(all, s.data.row(e).events...)
	}
	return all
}
