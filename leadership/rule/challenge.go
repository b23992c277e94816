package rule

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// challenge ends the term of the present leader, at the end that it was promised, because the
// candidate is better and the policy lets it preempt. The leader counts with its Candidacy at the
// grant, whatever it has said since, so that two candidates cannot outbid each other for ever. One
// challenge is enough; the ballot after the term decides among all. The challenge of a candidate
// that c.Withdraw names becomes this candidate's, or is taken back; one that this candidate made
// through another instance stays.
//
// With a quorum the candidate's instance must by itself know enough members: if fewer are present,
// no candidate could be granted after the term.
//
// Error: LeaseHeld, if the candidate is not better, or the leader is safe for a while.
func (s *Snapshot) challenge(c AcquireCommand, held leadership.Cause) (Change, error) {
	r := s.Record
	challenger := r.Standing.Challenger
	own := r.Standing.ChallengerAt == c.Instance
	gone := challenger != "" && challenger == c.Withdraw && own
	moved := challenger != "" && challenger == c.CandidateID && !own
	have, need := count(c.present(r.Policy.Ballot.Quorum)), r.Policy.Ballot.Quorum.Needed()
	switch safe := s.safe(); {
	case r.Yielded(), r.Standing.Succession.To != "" && challenger == "": // the term ends anyway
		return Change{}, s.refuseHeld(c.CandidateID, held.Left, held.Code)
	case gone && (safe.Left > 0 || have < need || !s.outranks(c)):
		return withdraw(*s, leadership.Withdraw{CandidateID: challenger, Instance: c.Instance})
	case !s.outranks(c), challenger != "" && !gone && !moved:
		return Change{}, s.refuseHeld(c.CandidateID, held.Left, held.Code)
	case safe.Left > 0:
		return Change{}, s.refuseFor(safe, min(safe.Left, held.Left), "%q leads election %q, and is safe from better candidates for another %v; try again then",
			r.LeaderID, r.Election, safe.Left.Round(time.Millisecond))
	case have < need:
		held.Have, held.Need = have, need
		return Change{}, s.refuseFor(held, min(leadership.DefaultGrace, held.Left), "%q leads election %q; %q is better, and may preempt it once %d members of the electorate are present at its instance, which knows of %d",
			r.LeaderID, r.Election, c.CandidateID, need, have)
	}
	ch := s.change()
	ch.Record.Standing.Challenger, ch.Record.Standing.ChallengerAt = c.CandidateID, c.Instance
	if gone || moved {
		ch.Quiet = true
		return ch, nil
	}
	promised := r.LeaseEnd()
	ch.Record.Standing.Ends.Challenged = form.Later(promised, 0)
	ch.limit(promised)
	ch.announce(leadership.EventHandingOver, "")
	ch.explain("", leadership.Detail{Because: BecausePreempt, To: c.CandidateID})
	return ch, nil
}

// outranks reports whether the candidate may preempt the present leader and is better.
func (s *Snapshot) outranks(c AcquireCommand) bool {
	r := s.Record
	p, leader := r.Policy.Ballot, r.Standing.Elected
	own := NewBid(c.Candidacy, c.CandidateID, p, s.Now)
	return p.Preempt && !own.Witness && r.LeaderID != c.CandidateID && leader.CandidateID != "" &&
		compareKeys(p, r.draw(), own, leader) < 0
}

// safe returns the cause, with its end, for which no candidate may preempt the present leader yet;
// the zero Cause if there is none.
func (s *Snapshot) safe() (cause leadership.Cause) {
	r := s.Record
	until := r.AcquiredAt.Add(r.Policy.Ballot.MinTerm)
	if !r.Policy.Ballot.Preempt || r.Standing.Elected.CandidateID == "" || !s.Now.Before(until) {
		return cause
	}
	cause = s.cause(leadership.ReasonHeld, until)
	cause.LeaderID, cause.Actor, cause.Because = r.LeaderID, "policy", "minTerm: until then no better candidate may preempt the leader"
	return cause
}

func withdraw(s Snapshot, w leadership.Withdraw) (Change, error) {
	c, instance := w.CandidateID, w.Instance
	ch := s.change()
	standing := &ch.Record.Standing
	if s.Live() && !s.Record.Yielded() && standing.Challenger == c && standing.ChallengerAt == instance {
		ch.unchallenge()
		ch.announce(leadership.EventGoesOn, "")
		ch.explain("", leadership.Detail{Because: BecausePreempt, To: c})
		return ch, nil
	}
	all := standing.Bids.list()
	i := slices.IndexFunc(all, func(b leadership.Bid) bool { return b.CandidateID == c && b.Instance == instance })
	if i < 0 {
		return Change{}, nil
	}
	others := slices.Concat(all[:i], all[i+1:])
	live := s.liveBids()
	if at := slices.Index(live, all[i]); at >= 0 {
		delay := given(s.Record.Policy.Ballot, s.Record.draw(), live[at:at+1], nil, slices.Delete(slices.Clone(live), at, at+1))
		standing.Opened, standing.Delay = putOff(standing.Opened, standing.Delay, delay)
	}
	if standing.Bids = bids(form.WriteList(others)); len(others) == 0 {
		standing.closeBallot()
	}
	ch.Quiet = true
	return ch, nil
}

// unchallenge lifts the end that a challenge has set.
func (c *Change) unchallenge() {
	s := &c.Record.Standing
	if now := &s.Succession; now.bound() == s.Challenger && s.Challenger != now.To && !c.Record.Yielded() {
		now.unbind()
	}
	s.Challenger, s.ChallengerAt, s.Ends.Challenged = "", 0, time.Time{}
	c.limit(c.Record.LeaseEnd())
}

// dropBarred takes back the challenge of a candidate that a standing order bars, and a hand-over to
// such a candidate: the leader goes on. The event of the order implies it.
func (c *Change) dropBarred(now time.Time) {
	s := c.Record.Standing
	barred := func(id leadership.CandidateID) bool {
		return id != "" && slices.ContainsFunc(s.overrides(now), func(o leadership.Override) bool { return bars(o, id, nil) })
	}
	if barred(s.Challenger) {
		c.unchallenge()
	}
	next := &c.Record.Standing.Succession
	if barred(next.bound()) && !c.Record.Yielded() {
		next.unbind()
	}
	if barred(next.To) && !c.Record.Yielded() {
		next.To, next.Since, next.Ends = "", time.Time{}, time.Time{}
		c.limit(c.Record.LeaseEnd())
	}
}
