package rule

import (
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

func (s *Snapshot) cause(code leadership.Reason, until time.Time) leadership.Cause {
	return leadership.Cause{Code: code, Until: until, Left: until.Sub(s.Now)}
}

// Explain returns why the candidate does not lead, as far as the record tells. Acquire refuses by
// the same causes.
func Explain(s Snapshot, c leadership.CandidateID) leadership.Explanation {
	s = *s.ended()
	x := leadership.Explanation{Election: s.Record.Election, CandidateID: c, ReadAt: s.Now}
	x.Leads = s.Live() && !s.Record.Yielded() && s.Record.LeaderID == c
	if !x.Leads {
		x.Causes = append(s.barriers(c, nil), s.lineUp(c)...)
		for _, o := range s.Orders().List() { // the candidate's principal is not known here
			if o.Principal != "" && !bars(o, c, nil) {
				x.Causes = append(x.Causes, s.ordered(o, c))
			}
		}
	}
	standing := s.Record.Standing
	if b, tripped := standing.Breakers.at(s.Now).of(c, ""); tripped && !s.Now.Before(b.Until) {
		p := leadership.Cause{Code: leadership.ReasonProbation, Actor: "policy", Because: b.Why}
		if x.Leads && !standing.Probation.Until.IsZero() {
			p.Until, p.Left = standing.Probation.Until, max(standing.Probation.Until.Sub(s.Now), 0)
		}
		x.Causes = append(x.Causes, p)
	}
	if end := standing.Ends.Approval; x.Leads && s.Record.EndsBecause == leadership.EndsApproval {
		x.Causes = append(x.Causes, s.cause(leadership.ReasonApproval, end))
	}
	if challenger := standing.Challenger; x.Leads && challenger != "" {
		cause := s.cause(leadership.ReasonOutranked, standing.Ends.Challenged)
		cause.Actor, cause.Because = "policy", fmt.Sprintf("%q is the better candidate", challenger)
		x.Causes = append(x.Causes, cause)
	}
	return x
}

// lineUp returns the cause that follows from the candidate's rank: in the ballot, if one is open,
// or against a leader that better candidates may preempt. The Candidacy of a candidate that has not
// bid is not known here.
func (s *Snapshot) lineUp(c leadership.CandidateID) []leadership.Cause {
	if s.Live() {
		if safe := s.safe(); safe.Code != "" {
			return []leadership.Cause{safe}
		}
		return nil
	}
	live := s.liveBids()
	if len(live) == 0 {
		return nil
	}
	if i := slices.IndexFunc(live, func(b leadership.Bid) bool { return b.CandidateID == c }); i >= 0 {
		return []leadership.Cause{s.ballotOf(live[i], AcquireCommand{}).cause(s.Now)}
	}
	p := s.Record.Policy.Ballot
	if have, need := count(union(live)), p.Quorum.Needed(); have < need {
		return []leadership.Cause{{Code: leadership.ReasonQuorum, Have: have, Need: need}}
	}
	cause := leadership.Cause{Code: leadership.ReasonBallot, Of: len(live)}
	if end := s.Record.Standing.Opened.Add(p.EffectiveWindow()); s.Now.Before(end) {
		cause.Until, cause.Left = end, end.Sub(s.Now)
	}
	return []leadership.Cause{cause}
}

// reasonOf returns the reason for which an order of that kind bars a candidate.
func reasonOf(k leadership.OverrideKind) leadership.Reason {
	switch k {
	case leadership.OverrideAssign:
		return leadership.ReasonAssigned
	case leadership.OverridePause:
		return leadership.ReasonPaused
	case leadership.OverrideHalt:
		return leadership.ReasonHalted
	}
	return leadership.ReasonBanned
}

// ordered returns the cause for an order that bars the candidate. It names the pattern, principal
// or halt of the order unless the order names the candidate itself.
func (s *Snapshot) ordered(o leadership.Override, c leadership.CandidateID) leadership.Cause {
	cause := s.cause(reasonOf(o.Kind), o.Until)
	cause.Override, cause.Actor, cause.Because = o.ID, o.Actor, o.Reason
	switch {
	case o.Kind == leadership.OverrideHalt:
		cause.Elections = o.Elections
	case o.Kind == leadership.OverrideAssign:
		cause.Only = o.CandidateID
	case o.CandidateID.IsPattern():
		cause.Pattern = o.CandidateID
	case o.CandidateID != c:
		cause.Principal = o.Principal
	}
	return cause
}

// barriers returns all causes that forbid a grant to candidate c, which calls as the principal:
// first those about this candidate, then those about all. They include the consequences of a lease
// that has ended, even if its end is not recorded yet.
func (s *Snapshot) barriers(c leadership.CandidateID, principal []string) (all []leadership.Cause) {
	s = s.ended()
	orders := s.Orders().List()
	for _, reason := range []leadership.Reason{leadership.ReasonBanned, leadership.ReasonAssigned, leadership.ReasonPaused} {
		for _, o := range orders {
			if reasonOf(o.Kind) == reason && bars(o, c, principal) {
				all = append(all, s.ordered(o, c))
			}
		}
	}
	for _, o := range s.Halts.Halting(s.Record.Election, s.Now) {
		all = append(all, s.ordered(o, c))
	}
	if full, first := s.tripped(c, principal); full {
		cause := s.cause(leadership.ReasonBanned, first.Until)
		cause.Override, cause.Actor = first.override().ID, "policy"
		cause.Because = fmt.Sprintf("%d other candidates are in their cooldowns, and no more can be remembered", maxBreakers)
		all = append(all, cause)
	}
	switch standing := s.Record.Standing; {
	case s.Record.parked():
		all = append(all, leadership.Cause{Code: leadership.ReasonParked, Actor: "policy", Because: standing.Series.Parked})
	case standing.Approval.Awaited && s.Record.Policy.Term.Approval.Every > 0:
		all = append(all, leadership.Cause{Code: leadership.ReasonApproval})
	}
	if left, reason := s.blocked(); left > 0 {
		cause := s.cause(reason, s.Now.Add(left))
		if s.Live() {
			cause.LeaderID = s.Record.LeaderID
		}
		all = append(all, cause)
	}
	return all
}

// endedBecause returns why the lease ended, if that was at EndsBy, and "" if it ran out by itself.
// EndsBy may be the promised end, rounded up.
func (r *Record) endedBecause(endedAt time.Time) leadership.EndReason {
	if !r.EndsBy.IsZero() && !r.EndsBy.After(form.Later(endedAt, 0)) {
		return r.EndsBecause
	}
	return ""
}

// refuseBarred returns the refusal for the first of the barriers; its RetryAfter is when the last
// of them ends.
func (s *Snapshot) refuseBarred(by leadership.CandidateID, barriers []leadership.Cause) error {
	r, first := s.Record, barriers[0]
	var wait time.Duration
	for _, b := range barriers {
		wait = max(wait, b.Left)
	}
	in := first.Left.Round(time.Millisecond)
	var detail string
	switch first.Code {
	case leadership.ReasonBanned:
		detail = fmt.Sprintf("%s is not granted election %q for another %v: %s (ordered by %s)", first.Banned(by), r.Election, in, first.Because, first.Actor)
	case leadership.ReasonAssigned:
		detail = fmt.Sprintf("election %q is assigned to another candidate for another %v: %s (ordered by %s)", r.Election, in, first.Because, first.Actor)
	case leadership.ReasonPaused:
		detail = fmt.Sprintf("election %q is paused for another %v: %s (ordered by %s)", r.Election, in, first.Because, first.Actor)
	case leadership.ReasonHalted:
		detail = fmt.Sprintf("election %q is halted, as all of %q, for another %v: %s (ordered by %s)", r.Election, first.Elections, in, first.Because, first.Actor)
	case leadership.ReasonParked:
		detail = fmt.Sprintf("election %q is parked: %s; it is granted again once an operator approves (fencing token %d)", r.Election, first.Because, r.Token)
	case leadership.ReasonApproval:
		detail = fmt.Sprintf("the last term of election %q ended because no operator had approved of it; it is granted again once it is approved (fencing token %d)", r.Election, r.Token)
	default:
		return s.refuseHeld(by, first.Left, first.Code)
	}
	return s.refuseFor(first, wait, "%s", detail)
}
