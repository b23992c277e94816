package leadership

import (
	"fmt"
	"slices"
	"time"
)

// Cause is one reason why a candidate does not lead, or may soon not lead any more.
type Cause struct {
	Code      Reason
	Until     time.Time     // zero if that is not known
	Left      time.Duration // until then; 0 if it is not known
	LeaderID  CandidateID   // with HELD
	Only      CandidateID   // with ASSIGNED: the one candidate that is granted
	Override  OverrideID    // the standing order
	Actor     string        // that gave it
	Principal string        // with BANNED: it is banned, and the candidate only if it calls as it
	Because   string        // what that principal said
	Position  int           // in line, or with BALLOT, OUTRANKED and QUORUM among the bids, from 1; 0 if it is not known
	Of        int           // with IN_LINE: how many stand in line at this instance; in a ballot: how many have bid
	Have      int           // with QUORUM, and with HELD for a challenger without one: how many members are present
	Need      int           // so, too: how many must be
}

// Explanation says whether a candidate leads and, if not, why.
type Explanation struct {
	Election    Election
	CandidateID CandidateID
	Leads       bool
	Causes      []Cause // the most lasting first
	ReadAt      time.Time
}

// Banned names what a cause of the code BANNED bars, where it bars the candidate.
func (c Cause) Banned(by CandidateID) string {
	if c.Principal != "" {
		return fmt.Sprintf("principal %q, as which %q calls,", c.Principal, by)
	}
	return fmt.Sprintf("%q", by)
}

func (s Snapshot) cause(code Reason, until time.Time) Cause {
	return Cause{Code: code, Until: until, Left: until.Sub(s.Now)}
}

// Explain says why the candidate does not lead, as far as the record tells. It is what Acquire
// refuses by.
func Explain(s Snapshot, c CandidateID) Explanation {
	s = s.ended()
	x := Explanation{Election: s.Record.Election, CandidateID: c, ReadAt: s.Now}
	x.Leads = s.Live() && !s.Record.yielded() && s.Record.LeaderID == c
	if !x.Leads {
		x.Causes = append(s.barriers(c, nil), s.lineUp(c)...)
		for _, o := range s.Orders().List() { // it is not known as which principal the candidate calls
			if o.Principal != "" {
				x.Causes = append(x.Causes, s.ordered(o))
			}
		}
	}
	standing := s.Record.Standing
	if b, tripped := standing.Breakers.at(s.Now).of(c); tripped && !s.Now.Before(b.Until) {
		p := Cause{Code: ReasonProbation, Actor: "policy", Because: b.Why}
		if x.Leads && !standing.Probation.Until.IsZero() {
			p.Until, p.Left = standing.Probation.Until, max(standing.Probation.Until.Sub(s.Now), 0)
		}
		x.Causes = append(x.Causes, p)
	}
	if end := standing.Ends.Approval; x.Leads && s.Record.EndsBecause == EndsApproval {
		x.Causes = append(x.Causes, s.cause(ReasonApproval, end))
	}
	if challenger := standing.Challenger; x.Leads && challenger != "" {
		cause := s.cause(ReasonOutranked, standing.Ends.Challenged)
		cause.Actor, cause.Because = "policy", fmt.Sprintf("%q is the better candidate", challenger)
		x.Causes = append(x.Causes, cause)
	}
	return x
}

// orphaned adds that the election's parent has no leader: behind the orders, before what is about
// the line.
func (x *Explanation) orphaned() {
	at := slices.IndexFunc(x.Causes, func(c Cause) bool {
		return !slices.Contains([]Reason{ReasonBanned, ReasonAssigned, ReasonPaused, ReasonApproval}, c.Code)
	})
	if at < 0 {
		at = len(x.Causes)
	}
	x.Causes = slices.Insert(x.Causes, at, Cause{Code: ReasonParent})
}

// lineUp is how the candidate stands among those that want to lead: in the ballot, if one is open,
// or against a leader that better candidates may preempt. What a candidate that has not bid has to
// offer is not known here.
func (s Snapshot) lineUp(c CandidateID) []Cause {
	if s.Live() {
		if safe := s.safe(); safe.Code != "" {
			return []Cause{safe}
		}
		return nil
	}
	live := s.liveBids()
	if len(live) == 0 {
		return nil
	}
	if i := slices.IndexFunc(live, func(b Bid) bool { return b.CandidateID == c }); i >= 0 {
		return []Cause{s.ballotOf(live[i], "", "").cause(s.Now)}
	}
	p := s.Record.Policy.Ballot
	if have, need := count(union(live)), p.Quorum.Needed(); have < need {
		return []Cause{{Code: ReasonQuorum, Have: have, Need: need}}
	}
	cause := Cause{Code: ReasonBallot, Of: len(live)}
	if end := s.Record.Standing.Opened.Add(p.window()); s.Now.Before(end) {
		cause.Until, cause.Left = end, end.Sub(s.Now)
	}
	return []Cause{cause}
}

// reason is the one for which such an order bars a candidate.
func (k OverrideKind) reason() Reason {
	switch k {
	case OverrideAssign:
		return ReasonAssigned
	case OverridePause:
		return ReasonPaused
	}
	return ReasonBanned
}

// ordered is the cause that an order is.
func (s Snapshot) ordered(o Override) Cause {
	cause := s.cause(o.Kind.reason(), o.Until)
	cause.Override, cause.Actor, cause.Because, cause.Principal = o.ID, o.Actor, o.Reason, o.Principal
	if o.Kind == OverrideAssign {
		cause.Only = o.CandidateID
	}
	return cause
}

// barriers are what stands against a grant to the candidate now, which calls as the principal: what
// is about this candidate first, then what is about all. A lease that has ended may have left some,
// recorded or not.
func (s Snapshot) barriers(c CandidateID, principal []string) (all []Cause) {
	s = s.ended()
	orders := s.Orders().List()
	for _, reason := range []Reason{ReasonBanned, ReasonAssigned, ReasonPaused} {
		for _, o := range orders {
			if o.Kind.reason() == reason && o.bars(c, principal) {
				all = append(all, s.ordered(o))
			}
		}
	}
	if full, first := s.tripped(c); full {
		cause := s.cause(ReasonBanned, first.Until)
		cause.Override, cause.Actor = first.override().ID, "policy"
		cause.Because = fmt.Sprintf("%d other candidates are in their cooldowns, and no more can be remembered", maxBreakers)
		all = append(all, cause)
	}
	if s.Record.Standing.Approval.Awaited && s.Record.Policy.Term.Approval.Every > 0 {
		all = append(all, Cause{Code: ReasonApproval})
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

// endedBecause is why the lease ended, if that was at EndsBy; "" if it ran out by itself. EndsBy
// may be the end that was promised, rounded up.
func (r Record) endedBecause(endedAt time.Time) EndReason {
	if !r.EndsBy.IsZero() && !r.EndsBy.After(later(endedAt, 0)) {
		return r.EndsBecause
	}
	return ""
}

// refuseBarred tells a candidate what stands against its grant.
func (s Snapshot) refuseBarred(by CandidateID, barriers []Cause) error {
	r, first := s.Record, barriers[0]
	var wait time.Duration
	for _, b := range barriers {
		wait = max(wait, b.Left)
	}
	in := first.Left.Round(time.Millisecond)
	var detail string
	switch first.Code {
	case ReasonBanned:
		detail = fmt.Sprintf("%s is not granted election %q for another %v: %s (ordered by %s)", first.Banned(by), r.Election, in, first.Because, first.Actor)
	case ReasonAssigned:
		detail = fmt.Sprintf("election %q is assigned to another candidate for another %v: %s (ordered by %s)", r.Election, in, first.Because, first.Actor)
	case ReasonPaused:
		detail = fmt.Sprintf("election %q is paused for another %v: %s (ordered by %s)", r.Election, in, first.Because, first.Actor)
	case ReasonApproval:
		detail = fmt.Sprintf("the last term of election %q ended because no operator had approved of it; it is granted again once it is approved (fencing token %d)", r.Election, r.Token)
	default:
		return s.refuseHeld(by, first.Left, first.Code)
	}
	err := s.refuse(LeaseHeld, "%s", detail)
	err.Reason, err.RetryAfter, err.Cause = first.Code, wait, &first
	return err
}
