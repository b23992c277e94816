package rule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
)

func (b ballot) shown(bid leadership.Bid) leadership.ShownBid {
	x := leadership.ShownBid{CandidateID: bid.CandidateID}
	switch b.policy.Strategy {
	case leadership.StrategyPriority:
		x.Priority = &bid.Priority
	case leadership.StrategyCapability:
		x.Preferred, x.Priority = &bid.Preferred, &bid.Priority
	case leadership.StrategyLeastLoaded:
		x.Load = &bid.Load
	case leadership.StrategyRandom:
		draw := b.draw.of(bid.CandidateID)
		x.Draw = fmt.Sprintf("%x", draw[:8])
	case leadership.StrategyRoundRobin:
	default:
		x.Since = &bid.Since
	}
	return x
}

// result is the detail of the winner's event: by it everybody can repeat the ranking. Of the bids
// it has the winner's, and of the others the best ones, as far as there is room.
func (b ballot) result() string {
	ranked := Rank(b.policy, b.draw, b.all())
	detail := leadership.Detail{
		Bids: len(ranked), Place: b.better + 1, Strategy: cmp.Or(b.policy.Strategy, leadership.StrategyFirstCome),
		Winner: new(b.shown(b.own)), Present: b.present(),
	}
	switch b.policy.Strategy {
	case leadership.StrategyRandom:
		detail.Secret = b.draw.Secret
	case leadership.StrategyRoundRobin:
		detail.Last = b.draw.Last
	}
	text := detailText(detail)
	for _, bid := range ranked {
		if bid.CandidateID == b.own.CandidateID {
			continue
		}
		detail.Others = append(detail.Others, b.shown(bid))
		longer := detailText(detail)
		if len(longer) > leadership.MaxDetailBytes {
			break
		}
		text = longer
	}
	return text
}

// cause says why the candidate is not granted now, and when it should ask again.
func (b ballot) cause(now time.Time) leadership.Cause {
	cause := leadership.Cause{Code: leadership.ReasonBallot, Position: b.better + 1, Of: len(Rank(b.policy, b.draw, b.all()))}
	left := b.turn().Sub(now)
	switch quorate := b.quorate(b.own); {
	case !quorate:
		cause.Code, cause.Have, cause.Need = leadership.ReasonQuorum, b.present(), b.policy.Quorum.Needed()
		if b.own.Witness || left <= 0 {
			left = quorumRetry
		}
	case b.own.Witness:
		cause, left = leadership.Cause{Code: leadership.ReasonWitness}, quorumRetry
	case b.better > 0:
		cause.Code = leadership.ReasonOutranked
	}
	cause.Left = max(left, time.Millisecond) // the commit may have taken longer than the wait
	cause.Until = now.Add(cause.Left)
	return cause
}

// present is how many members of the electorate are.
func (b ballot) present() int { return count(union(b.all())) }

// RefuseWaiting refuses a candidate whose call has changed something, and granted nothing.
func (s *Snapshot) RefuseWaiting(c AcquireCommand) error {
	if barriers := s.barriers(c.CandidateID, c.Principal); len(barriers) > 0 {
		return s.refuseBarred(c.CandidateID, barriers)
	}
	return s.refuseBid(c)
}

// refuseBid tells a candidate that has bid, or need not, when its turn comes.
func (s *Snapshot) refuseBid(c AcquireCommand) error {
	return s.refuseTurn(c, s.ballot(c).cause(s.Now))
}

// refuseTurn is refuseBid for that cause.
func (s *Snapshot) refuseTurn(c AcquireCommand, cause leadership.Cause) error {
	election := s.Record.Election
	var detail string
	switch in := cause.Left.Round(time.Millisecond); cause.Code {
	case leadership.ReasonQuorum:
		detail = fmt.Sprintf("election %q needs %d members of its electorate present, and has %d; try again in %v", election, cause.Need, cause.Have, in)
	case leadership.ReasonWitness:
		detail = fmt.Sprintf("%q is a witness of election %q: it counts for the quorum, and never leads", c.CandidateID, election)
	case leadership.ReasonOutranked:
		detail = fmt.Sprintf("%d candidates for election %q are better than %q; its turn comes in %v, if none of them leads by then; try again then", cause.Position-1, election, c.CandidateID, in)
	default:
		detail = fmt.Sprintf("election %q collects bids for another %v, and %q has the best one so far; try again then", election, in, c.CandidateID)
	}
	return s.refuseFor(cause, cause.Left, "%s", detail)
}

// refuseIneligible refuses a candidate that lacks what the policy requires.
func (s *Snapshot) refuseIneligible(c AcquireCommand) error {
	if missing := s.Record.Policy.Ballot.Require.Without(c.Capabilities); len(missing) > 0 && !witness(c.Candidacy) {
		return s.Refuse(leadership.NotEligible, "%q cannot lead election %q: the policy requires capabilities that it does not have: %s; waiting does not help",
			c.CandidateID, s.Record.Election, strings.Join(missing, ", "))
	}
	return nil
}
