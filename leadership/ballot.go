package leadership

import (
	"fmt"
	"slices"
	"time"
)

const (
	// maxBids is how many bids a record keeps.
	maxBids = 16
	// BidTurn is how long after a better bid's turn the next one's comes: so much a bidder that has
	// crashed costs.
	BidTurn = 200 * time.Millisecond
	// bidKept is how long after the window a bid counts that its instance does not write anew.
	bidKept = 4 * time.Second
	// enoughBids is how many better bids let a candidate wait for its turn without a bid of its own,
	// so that the writes of a ballot do not grow with the number of instances. With one of them
	// only, a crash of the best bidder would leave the next to chance.
	enoughBids = 2
)

// bids are the bids of an open ballot, the best first, as a JSON array; "" if there is none.
type bids string

func (b bids) list() []Bid { return readList[Bid](string(b)) }

// Bids returns the bids as they were written, the best first, also those that are void by now; none
// unless a ballot is open.
func (r Record) Bids() []Bid { return r.Standing.Bids.list() }

// ballot is an open ballot as one candidate sees it.
type ballot struct {
	policy BallotPolicy
	draw   Draw
	opened time.Time
	own    Bid
	others []Bid // that count now, without that of the candidate and what it withdraws
	before Bid   // of the candidate, as it was written last; zero if it was not
	better int   // how many of the others are better
}

// ballot is the ballot as a candidate that asks now sees it.
func (s Snapshot) ballot(c AcquireCommand) ballot {
	r := s.Record
	p := r.Policy.Ballot
	b := ballot{policy: p, opened: r.Standing.Opened, own: c.Candidacy.Bid(c.CandidateID, p, later(s.Now, -c.Waited))}
	b.own.At = later(s.Now, 0)
	b.own.Present = p.Quorum.present(func(member CandidateID) bool {
		return member == c.CandidateID || c.Present != nil && c.Present(member)
	})
	for _, bid := range r.Standing.Bids.list() {
		switch {
		case s.Now.Sub(bid.At) > p.window()+bidKept: // it is void
		case bid.CandidateID == c.CandidateID:
			b.before = bid
		case bid.CandidateID != c.Withdraw:
			b.others = append(b.others, bid)
		}
	}
	if b.before.CandidateID != "" && b.before.Since.Before(b.own.Since) {
		b.own.Since = b.before.Since // it has asked again
	}
	if len(b.others) == 0 && b.before.CandidateID == "" { // none that counts is left of an earlier ballot
		b.opened = b.own.At
	}
	b.draw = r.draw()
	if b.draw.Secret == "" && p.Strategy == StrategyRandom {
		b.draw.Secret = c.Secret
	}
	for _, bid := range Rank(p, b.draw, b.others) {
		if p.Better(b.draw, bid, b.own) {
			b.better++
		}
	}
	return b
}

// draw is what ranks the bids for the next token.
func (r Record) draw() Draw {
	return Draw{Election: r.Election, Token: r.Token + 1, Secret: string(r.Standing.Secret), Last: r.Standing.LastLeader}
}

// turn is from when on the candidate may be granted.
func (b ballot) turn() time.Time {
	return b.opened.Add(b.policy.window() + time.Duration(b.better)*BidTurn)
}

// present is the union of the members that the bidding instances have heard of.
func (b ballot) present() uint32 {
	set := b.own.Present
	for _, bid := range b.others {
		set |= bid.Present
	}
	return set
}

// adds reports whether the candidate's bid has members that no other bid has.
func (b ballot) adds() bool {
	var set uint32
	for _, bid := range b.others {
		set |= bid.Present
	}
	return b.own.Present&^set != 0
}

// wins reports whether the candidate is granted at that moment.
func (b ballot) wins(now time.Time) bool {
	return !b.own.Witness && !now.Before(b.turn()) && count(b.present()) >= b.policy.Quorum.Needed()
}

// bids reports whether the candidate's bid is written: it is not while enough others are better, or
// while the one that was written says the same and counts for a while.
func (b ballot) bids(now time.Time) bool {
	before, own := b.before, b.own
	if before.CandidateID != "" {
		fresh := now.Sub(before.At) < (b.policy.window()+bidKept)/2
		before.At, before.Since = own.At, own.Since
		return !fresh || before != own
	}
	return b.adds() || !own.Witness && b.better < enoughBids
}

// write puts the candidate's bid among the others.
func (c *Change) write(b ballot) {
	s := &c.Record.Standing
	all := append(Rank(b.policy, b.draw, append(slices.Clone(b.others), b.own)), b.witnesses()...)
	for len(all) > maxBids {
		all = slices.Delete(all, b.least(all), b.least(all)+1)
	}
	s.Opened, s.Bids = b.opened, bids(writeList(all))
	if b.policy.Strategy == StrategyRandom {
		s.Secret = secret(b.draw.Secret)
	}
	if len(c.Events) == 0 {
		c.Quiet = true
	}
}

// witnesses are the bids that never win.
func (b ballot) witnesses() []Bid {
	return slices.DeleteFunc(append(slices.Clone(b.others), b.own), func(bid Bid) bool { return !bid.Witness })
}

// least is the bid to give up if there are too many: the last whose members all other bids have,
// too, or else the last.
func (b ballot) least(all []Bid) int {
	for i := len(all) - 1; i >= 0; i-- {
		var rest uint32
		for n, bid := range all {
			if n != i {
				rest |= bid.Present
			}
		}
		if all[i].Present&^rest == 0 {
			return i
		}
	}
	return len(all) - 1
}

// closeBallot forgets the bids.
func (s *Standing) closeBallot() { s.Opened, s.Bids = time.Time{}, "" }

// vote grants the lease if it is the candidate's turn, and otherwise writes its bid, if that is of
// use. ch has the end of the last lease, if it ran out.
func (s Snapshot) vote(ch Change, c AcquireCommand) (Change, error) {
	b := s.ballot(c)
	switch {
	case b.wins(s.Now):
		ch.grant(c, s.Now)
		ch.Events[len(ch.Events)-1].Detail = b.result()
	case b.bids(s.Now):
		ch.write(b)
	case len(ch.Events) == 0:
		return Change{}, s.refuseBid(c)
	}
	return ch, nil
}

// shownBid is a bid as the event of a grant shows it: what the strategy counts.
type shownBid struct {
	CandidateID CandidateID `json:"candidateId"`
	Draw        string      `json:"draw,omitempty"` // its first eight bytes
	Load        *int64      `json:"load,omitempty"`
	Preferred   *int        `json:"preferred,omitempty"`
	Priority    *int64      `json:"priority,omitempty"`
	WaitedMS    *int64      `json:"waitedMs,omitempty"`
}

func (b ballot) shown(bid Bid) shownBid {
	x := shownBid{CandidateID: bid.CandidateID}
	switch b.policy.Strategy {
	case StrategyPriority:
		x.Priority = &bid.Priority
	case StrategyCapability:
		x.Preferred, x.Priority = &bid.Preferred, &bid.Priority
	case StrategyLeastLoaded:
		x.Load = &bid.Load
	case StrategyRandom:
		draw := b.draw.of(bid.CandidateID)
		x.Draw = fmt.Sprintf("%x", draw[:8])
	case StrategyRoundRobin:
	default:
		x.WaitedMS = new(b.own.At.Sub(bid.Since).Milliseconds())
	}
	return x
}

// result is the detail of the winner's event: by it everybody can repeat the ranking. Of the bids
// it has the winner's, and of the others the best ones, as far as there is room.
func (b ballot) result() string {
	ranked := Rank(b.policy, b.draw, append(slices.Clone(b.others), b.own))
	detail := struct {
		Bids     int         `json:"bids"`           // of candidates
		Last     CandidateID `json:"last,omitempty"` // the last leader
		Others   []shownBid  `json:"others,omitempty"`
		Place    int         `json:"place"` // the winner's among them, from 1
		Present  int         `json:"present,omitempty"`
		Secret   string      `json:"secret,omitempty"` // of the draw
		Strategy Strategy    `json:"strategy"`
		Winner   shownBid    `json:"winner"`
	}{
		Bids: len(ranked), Place: b.better + 1, Strategy: b.policy.strategy(), Winner: b.shown(b.own), Present: count(b.present()),
	}
	switch b.policy.Strategy {
	case StrategyRandom:
		detail.Secret = b.draw.Secret
	case StrategyRoundRobin:
		detail.Last = b.draw.Last
	}
	text, _ := encodeJSON(detail) // it always has a JSON form
	for _, bid := range ranked {
		if bid.CandidateID == b.own.CandidateID {
			continue
		}
		detail.Others = append(detail.Others, b.shown(bid))
		longer, _ := encodeJSON(detail)
		if len(longer) > MaxDetailBytes {
			break
		}
		text = longer
	}
	return string(text)
}

func (p BallotPolicy) strategy() Strategy {
	if p.Strategy == "" {
		return StrategyFirstCome
	}
	return p.Strategy
}

// refuseWaiting refuses a candidate whose call has changed something, and granted nothing.
func (s Snapshot) refuseWaiting(c AcquireCommand) error {
	if barriers := s.barriers(c.CandidateID); len(barriers) > 0 {
		return s.refuseBarred(c.CandidateID, barriers)
	}
	return s.refuseBid(c)
}

// refuseBid tells a candidate that has bid, or need not, when its turn comes.
func (s Snapshot) refuseBid(c AcquireCommand) error {
	b := s.ballot(c)
	election, of := s.Record.Election, len(Rank(b.policy, b.draw, append(slices.Clone(b.others), b.own)))
	cause := Cause{Position: b.better + 1, Of: of}
	wait := b.turn().Sub(s.Now)
	var detail string
	switch have, need := count(b.present()), b.policy.Quorum.Needed(); {
	case have < need:
		cause.Code, cause.Have, cause.Need = ReasonQuorum, have, need
		wait = max(wait, quorumRetry)
		detail = fmt.Sprintf("of the electorate of election %q %d members are present, and %d are needed; try again in %v", election, have, need, wait.Round(time.Millisecond))
	case b.own.Witness:
		cause = Cause{Code: ReasonWitness}
		wait = max(wait, quorumRetry)
		detail = fmt.Sprintf("%q is a witness of election %q, and is never granted it", c.CandidateID, election)
	case b.better > 0:
		cause.Code = ReasonOutranked
		detail = fmt.Sprintf("%d candidates for election %q are better than %q; if they have gone, its turn comes in %v", b.better, election, c.CandidateID, wait.Round(time.Millisecond))
	default:
		cause.Code = ReasonBallot
		detail = fmt.Sprintf("election %q collects bids for another %v, and %q has the best one so far; try again then", election, wait.Round(time.Millisecond), c.CandidateID)
	}
	err := s.refuse(LeaseHeld, "%s", detail)
	cause.Left = max(wait, time.Millisecond)
	cause.Until = s.Now.Add(cause.Left)
	err.Reason, err.RetryAfter, err.Cause = cause.Code, cause.Left, &cause
	return err
}

// quorumRetry is how soon a candidate asks again for want of a quorum: its bid must not become void.
const quorumRetry = 2 * time.Second

// refuseIneligible refuses a candidate that lacks what the policy requires.
func (s Snapshot) refuseIneligible(c AcquireCommand) error {
	if missing := s.Record.Policy.Ballot.Require.without(c.Capabilities); len(missing) > 0 && !c.witness() {
		return s.refuse(NotEligible, "%q cannot lead election %q: its policy requires %v, and the candidate lacks it; waiting does not help", c.CandidateID, s.Record.Election, missing)
	}
	return nil
}

// challenge lets the term of the present leader end, at the end that it was promised, because the
// candidate is better and the policy says so. The change is empty if that is so already.
//
// Error: LeaseHeld, if the candidate is not better, or the leader is safe for a while.
func (s Snapshot) challenge(c AcquireCommand, held Cause) (Change, error) {
	r := s.Record
	p, leader := r.Policy.Ballot, r.Standing.Elected
	own := c.Candidacy.Bid(c.CandidateID, p, s.Now)
	refused := func(after time.Duration) (Change, error) {
		return Change{}, s.refuseHeld(c.CandidateID, min(after, held.Left), held.Code)
	}
	switch safe := r.AcquiredAt.Add(p.MinTerm).Sub(s.Now); {
	case c.witness(), r.LeaderID == c.CandidateID, leader.CandidateID == "", p.compareKeys(r.draw(), own, leader) >= 0:
		return refused(held.Left)
	case safe > 0:
		return refused(safe)
	case r.Standing.Challenger != "":
		return refused(held.Left)
	}
	ch := s.change()
	promised := r.LeaseEnd()
	ch.Record.Standing.Challenger = c.CandidateID
	ch.Record.Standing.Ends.Challenged = later(promised, 0)
	ch.limit(promised)
	ch.announce(EventHandingOver, "")
	ch.Events[0].Detail = fmt.Sprintf(`{"because":"preempt","to":%q}`, c.CandidateID)
	return ch, nil
}

// Withdraw forgets the bid of a candidate that has gone, and its challenge: the leader goes on.
func Withdraw(s Snapshot, c CandidateID) (Change, error) {
	ch := s.change()
	standing := &ch.Record.Standing
	switch {
	case s.Live() && standing.Challenger == c:
		ch.unchallenge()
		ch.announce(EventGoesOn, "")
		ch.Events[0].Detail = fmt.Sprintf(`{"because":"preempt","to":%q}`, c)
		return ch, nil
	case ch.Record.LeaderID != "" || !slices.ContainsFunc(standing.Bids.list(), func(b Bid) bool { return b.CandidateID == c }):
		return Change{}, nil
	}
	left := slices.DeleteFunc(standing.Bids.list(), func(b Bid) bool { return b.CandidateID == c })
	if standing.Bids = bids(writeList(left)); len(left) == 0 {
		standing.closeBallot()
	}
	ch.Quiet = true
	return ch, nil
}

// unchallenge lifts the end that a challenge has set.
func (c *Change) unchallenge() {
	s := &c.Record.Standing
	s.Challenger, s.Ends.Challenged = "", time.Time{}
	c.limit(c.Record.LeaseEnd())
}
