package line

import (
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
)

// ballot is one that the store has told this line of: nobody leads, and the store says when it may
// grant to the candidate that it was asked for.
type ballot struct {
	refusal *leadership.Error // the last one, with a Cause; nil if no ballot is open
	until   time.Duration     // when the candidate's turn comes
	asked   candidacy         // for which it was refused
	along   []*place          // whose candidates have bid with it
}

func (b *ballot) open() bool { return b.refusal != nil }

// candidacy is a candidate as it counts.
type candidacy struct {
	id leadership.CandidateID
	leadership.Candidacy
}

func (p *place) candidacy() candidacy { return candidacy{p.request.CandidateID, p.request.Candidacy} }

// isBallot reports whether a refusal says that a ballot is open. It bars no candidate.
func isBallot(c *leadership.Cause) bool {
	if c == nil {
		return false
	}
	switch c.Code {
	case leadership.ReasonBallot, leadership.ReasonOutranked, leadership.ReasonQuorum, leadership.ReasonWitness:
		return true
	}
	return false
}

// bidden takes a refusal because of a ballot.
func (l *Line) bidden(a *Attempt, refusal *leadership.Error, now time.Duration) {
	l.ballot = ballot{refusal: refusal, until: now + refusal.RetryAfter, asked: candidacy{a.Request.CandidateID, a.Request.Candidacy}, along: a.along}
	l.learnRule()
	if slices.ContainsFunc(l.along(a.place, now), func(p *place) bool { return !slices.Contains(a.along, p) }) {
		l.ballot.until = now // some have come meanwhile, or it was not known how many seats are free
	}
	l.claim = claim{place: a.place, id: a.Request.CandidateID, token: refusal.Lease.Token}
}

// brings reports whether the candidate of a place that joins is to bid with the one that has bid.
func (l *Line) brings(p *place, now time.Duration) bool {
	n := len(l.ballot.along)
	more := n+1 < l.free(now) || n > 0 && l.precedes(p, l.ballot.along[n-1])
	return l.ballot.open() && more && l.class(p) == eligible
}

// writes reports whether the next attempt will most likely bid or be granted in a ballot. At the
// turn of a candidate that others outrank one of them leads, most likely.
func (l *Line) writes() bool {
	leader, _ := l.election.Term()
	best := !l.ballot.open() || l.ballot.refusal.Reason == leadership.ReasonBallot
	return leader == "" && len(l.seats) == 0 && l.rule.known && l.rule.policy.HasBallot() && best
}

// sooner is when the store is asked for the best place before the line's time: at once in a ballot
// for another candidate than before, or for one that counts as another; in a term, once for each
// place that may challenge the leader, and in place of a challenger that has gone. never if there
// is no such reason.
func (l *Line) sooner(best *place, now time.Duration) time.Duration {
	switch {
	case l.ballot.open() && l.ballot.asked != best.candidacy(), l.replaces(best, now):
		return l.failures.again
	case !l.ballot.open():
		return l.challenges(best)
	}
	return never
}

// replaces reports whether an attempt for the place withdraws the challenge of a candidate that has
// gone.
func (l *Line) replaces(p *place, now time.Duration) bool {
	return l.claim.challenge && p != nil && l.class(p) != ineligible && l.deserted(now, false)
}

// try is a term, and a rule, for which the store was asked for a place.
type try struct {
	token leadership.Token
	rule  int
}

// challenges is when the store is asked whether the place's candidate may challenge the leader:
// once, after the leader's shortest term. never if it was asked already, or need not be.
func (l *Line) challenges(p *place) time.Duration {
	known := l.election.Lease()
	if !l.rule.policy.Preempt || known == nil || known.State != leadership.Held || known.Succession.Yielded {
		return never
	}
	if elsewhere := known.Challenger == p.request.CandidateID && !l.claim.challenge; l.challenged && !elsewhere {
		return never
	}
	if p.tried == l.try(known.Token) || p.request.CandidateID == known.LeaderID || l.class(p) != eligible {
		return never
	}
	return max(known.Learnt+safeFor(known.Lease), p.retry, l.failures.again)
}

func (l *Line) try(t leadership.Token) try { return try{t, l.rule.number} }

// safeFor is how long no candidate can challenge the leader; not above 0 if one can.
func safeFor(l leadership.Lease) time.Duration {
	return l.AcquiredAt.Add(l.Config.Ballot.MinTerm).Sub(l.ReadAt)
}

// challenge notes whether the leader is challenged. If it is not any more, others may try again.
func (l *Line) challenge(yes bool) {
	if l.challenged && !yes {
		l.rule.number++
	}
	l.challenged = yes
}

// challengedBy takes the store's word on which candidate challenges the leader; "" for none.
func (l *Line) challengedBy(c leadership.CandidateID) {
	l.challenge(c != "")
	if l.claim.challenge && l.claim.id != c {
		l.claim = claim{}
	}
}

// tried takes note of a refusal during a term: whether the candidate has challenged the leader. One
// that could not, for want of members, tries again when the refusal says.
func (l *Line) tried(a *Attempt, refusal *leadership.Error, now time.Duration) {
	lease := *refusal.Lease
	if lease.State != leadership.Held {
		if l.claim.challenge { // it ended with the term; to withdraw it again and again would never stop
			l.claim = claim{}
		}
		return
	}
	l.challengedBy(lease.Challenger)
	if l.claim.challenge && l.claim.id == a.Request.InLine.Withdraw { // it cannot be withdrawn so
		l.claim = claim{}
	}
	if lease.Challenger == a.Request.CandidateID {
		l.claim = claim{place: a.place, id: a.Request.CandidateID, token: lease.Token, challenge: true}
	}
	switch {
	case refusal.Cause != nil && refusal.Cause.Need > 0:
		a.place.retry = now + refusal.RetryAfter
	case safeFor(lease) <= 0:
		a.place.tried = l.try(lease.Token)
	}
}

// claim is what the store has of this line: the bid of a candidate, or its challenge.
type claim struct {
	place     *place
	id        leadership.CandidateID // "" if there is none
	token     leadership.Token       // of the last term when it was made
	challenge bool

	failed int           // attempts to withdraw it
	again  time.Duration // no sooner it is tried again
}

// mayClaim notes that an attempt of unknown outcome may have left a bid or a challenge.
func (l *Line) mayClaim(a *Attempt) {
	if p := l.rule.policy; l.claim.id == "" && (p.HasBallot() || p.Preempt || !l.rule.known) {
		leader, token := l.election.Term()
		l.claim = claim{place: a.place, id: a.Request.CandidateID, token: token, challenge: p.Preempt && leader != ""}
	}
}

// maxWithdrawals is how often it is tried to withdraw a claim. A bid becomes void by itself; a
// challenge then ends the term.
const maxWithdrawals = 5

// outdated forgets a claim that the store has forgotten.
func (l *Line) outdated() {
	leader, token := l.election.Term()
	if token > l.claim.token || l.claim.challenge && token == l.claim.token && leader == "" {
		l.claim = claim{}
	}
	if leader != "" {
		l.ballot = ballot{}
	} else {
		l.challenged = false
	}
}

// deserted reports whether the candidate of the claim has gone. One whose wait is over may be back
// at once.
func (l *Line) deserted(now time.Duration, closed bool) bool {
	p := l.claim.place
	if closed || p.removed || len(p.callers) == 0 && (!p.awaited || p.forfeit(now)) {
		for other := range l.each() { // in another place, or the same anew
			if other.request.CandidateID == l.claim.id && len(other.callers) > 0 {
				l.claim.place = other
				return false
			}
		}
		return true
	}
	return false
}

// Withdrawal returns a candidate that has gone, and whose bid or challenge the store has: the
// driver withdraws it, and tells Withdrawn. It is asked before each Turn. One that the next attempt
// takes back is not returned.
func (l *Line) Withdrawal(now time.Duration, closed bool) (c leadership.CandidateID, ok bool) {
	if l.claim.id == "" || l.asking != nil || now < l.claim.again && !closed || !l.deserted(now, closed) {
		return "", false
	}
	if head := l.head(now); !closed && head != nil && l.class(head) != ineligible {
		return "", false
	}
	return l.claim.id, true
}

// Withdrawn takes the outcome of a withdrawal. If it has failed it is repeated, unless the line is
// closed.
func (l *Line) Withdrawn(c leadership.CandidateID, err error, now time.Duration, closed bool) {
	switch p := &l.claim; {
	case p.id != c:
	case err == nil || closed || p.failed+1 >= maxWithdrawals:
		*p = claim{}
	default:
		p.again = now + backoff.After(p.failed, firstRetry, maxRetry)
		p.failed++
	}
}

// replaced reports whether the attempt under way withdraws the place's bid.
func (l *Line) replaced(p *place) bool {
	return l.asking != nil && l.asking != p && l.ballot.asked == p.candidacy()
}

// explain puts the ballot into the refusal of a candidate, and says it in a sentence.
func (b *ballot) explain(e *leadership.Error, p *place, now time.Duration) string {
	cause := *b.refusal.Cause
	cause.Left = max(b.until-now, 0)
	switch own := b.asked == p.candidacy(); {
	case cause.Code == leadership.ReasonQuorum || own:
	case p.request.Role == leadership.RoleWitness:
		cause = leadership.Cause{Code: leadership.ReasonWitness, Left: cause.Left, Until: cause.Until}
	default: // by the candidate that was asked for, at least
		cause.Code, cause.Position = leadership.ReasonOutranked, 0
	}
	e.Reason, e.Cause, e.RetryAfter = cause.Code, &cause, cause.Left
	name, left := b.refusal.Lease.Election, cause.Left.Round(time.Millisecond)
	switch cause.Code {
	case leadership.ReasonQuorum:
		return fmt.Sprintf("election %q needs %d members of its electorate present, and has %d", name, cause.Need, cause.Have)
	case leadership.ReasonWitness:
		return fmt.Sprintf("%q is a witness of election %q, and is never granted it", p.request.CandidateID, name)
	case leadership.ReasonOutranked:
		return fmt.Sprintf("better candidates than %q have bid for election %q", p.request.CandidateID, name)
	}
	return fmt.Sprintf("election %q collects bids for another %v, and %q has the best one so far", name, left, p.request.CandidateID)
}
