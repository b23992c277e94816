package simulation

import (
	"encoding/json"
	"time"

	"regent/leadership"
)

// ballot is an open ballot as an observer of every commit knows it.
type ballot struct {
	opened time.Time // when the first of its bids was written
	bids   []leadership.Bid
}

// live are the bids that count at that instant: each does for the window and 4 s.
func (c ballot) live(p leadership.BallotPolicy, now time.Time) (live []leadership.Bid) {
	for _, bid := range c.bids {
		if now.Sub(bid.At) <= windowOf(p)+4*time.Second {
			live = append(live, bid)
		}
	}
	return live
}

// bidsOf are the bids in a record, in their stored form.
func bidsOf(r leadership.Record) (bids []leadership.Bid) {
	if r.Standing.Bids != "" {
		_ = json.Unmarshal([]byte(r.Standing.Bids), &bids) // leadership.Codec has written them
	}
	return bids
}

// bid notes what a change leaves of the ballot.
func (t *truth) bid(before, now leadership.Record, decided time.Time) {
	r := t.reign(now.Election)
	bids := bidsOf(now)
	if before.LeaderID != "" || len(r.ballot.live(before.Policy.Ballot, decided)) == 0 {
		r.ballot.opened = decided
	}
	if r.ballot.bids = bids; len(bids) > 0 {
		t.figures.Bids++
	}
}

// chosen checks a grant: no witness leads, nor a candidate that lacks what is required; the winner
// comes in its turn; enough members are present; and a better bidder that waits was counted.
func (t *truth) chosen(before leadership.Record, e leadership.Event, decided time.Time) {
	p, r := before.Policy.Ballot, t.reign(e.Election)
	if a := t.agent(e.Election, e.LeaderID); !a.eligibleBy(p) {
		t.accuse(CH, "%s: token %d was granted to %q, which is %+v", e.Election, e.Token, e.LeaderID, a.candidacy)
	}
	if !p.HasBallot() {
		return
	}
	t.figures.Ballots++
	var told struct {
		Place, Present int
		Winner         leadership.Bid
	}
	if err := json.Unmarshal([]byte(e.Detail), &told); err != nil || told.Winner.CandidateID != e.LeaderID {
		t.accuse(CH, "%s: token %d was granted to %q, and its event says %q", e.Election, e.Token, e.LeaderID, e.Detail)
		return
	}
	live, opened := r.ballot.live(p, decided), r.ballot.opened
	if len(r.ballot.live(p, decided.Add(-2*t.slack))) == 0 {
		opened = decided
	}
	turn := opened.Add(windowOf(p) + time.Duration(told.Place-1)*leadership.BidTurn - 2*t.slack)
	if decided.Before(turn) {
		t.accuse(CH, "%s: token %d was granted to %q %v before its turn: %s", e.Election, e.Token, e.LeaderID, turn.Sub(decided), e.Detail)
	}
	if told.Present < p.Quorum.Needed() {
		t.accuse(CH, "%s: token %d was granted to %q with too few members: %s", e.Election, e.Token, e.LeaderID, e.Detail)
	}
	better := 0
	for _, bid := range live {
		if other := t.agent(e.Election, bid.CandidateID); other.willing && !other.leading && beats(p.Strategy, bid, told.Winner) {
			better++
		}
	}
	if t.settled && better > told.Place-1 {
		t.accuse(CH, "%s: token %d was granted to %q, and %d better candidates had bid and wait: %s, %+v", e.Election, e.Token, e.LeaderID, better, e.Detail, live)
	}
}

// beats reports whether a bid is better than another by what the strategy counts. Those that are
// equal, and those of other strategies, are not compared.
func beats(s leadership.Strategy, a, b leadership.Bid) bool {
	switch {
	case a.Witness:
		return false
	case s == leadership.StrategyPriority:
		return a.Priority > b.Priority
	case s == leadership.StrategyCapability:
		return a.Preferred > b.Preferred || a.Preferred == b.Preferred && a.Priority > b.Priority
	}
	return s == leadership.StrategyLeastLoaded && a.Load < b.Load
}

// preempted checks that a leader has to hand over only to a better candidate, and not before its
// term has lasted for as long as the policy says. What a candidate's load was then is not known.
func (t *truth) preempted(before leadership.Record, e leadership.Event, decided time.Time) {
	t.figures.Preempted++
	var told struct{ To leadership.CandidateID }
	_ = json.Unmarshal([]byte(e.Detail), &told) // it is accused then
	p := before.Policy.Ballot
	if !p.Preempt || told.To == "" || told.To == e.LeaderID || decided.Before(before.AcquiredAt.Add(p.MinTerm-2*t.slack)) {
		t.accuse(CH, "%s: %q has to hand over at %v: %s, and leads since %v", e.Election, e.LeaderID, decided.Sub(epoch), e.Detail, before.AcquiredAt.Sub(epoch))
		return
	}
	a, b := t.agent(e.Election, told.To), t.agent(e.Election, e.LeaderID)
	challenger, leader := a.candidacy.Bid(a.name, p, time.Time{}), b.candidacy.Bid(b.name, p, time.Time{})
	if p.Strategy != leadership.StrategyLeastLoaded && !beats(p.Strategy, challenger, leader) || !a.eligible() {
		t.accuse(CH, "%s: %q has to hand over to %q: %+v, %+v", e.Election, e.LeaderID, told.To, leader, challenger)
	}
}

// agent is the candidate of that name.
func (t *truth) agent(e leadership.Election, name leadership.CandidateID) *agent {
	for _, a := range t.believers(e) {
		if a.name == name {
			return a
		}
	}
	panic("simulation: there is no candidate " + string(name))
}
