package rule

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

const (
	// maxBids is how many bids a record keeps.
	maxBids = 16
	// BidTurn is how long after a better bid's turn the next one's comes. So much time a bidder
	// that has crashed costs.
	BidTurn = 200 * time.Millisecond
	// bidKept is how long after the window a bid counts that its instance does not write anew.
	bidKept = 4 * time.Second
	// enoughBids is how many better bids let a candidate wait for its turn without a bid of its
	// own, so that the writes of a ballot do not grow with the number of instances. With one of
	// them only, a crash of the best bidder would leave the next to chance.
	enoughBids = 2
	// quorumRetry is how soon a candidate asks again once the window is over and members are
	// missing. Bids must not become void meanwhile. If a bid completes the quorum that late, the
	// turns of the others than the best begin so long after it: by then the best has asked again.
	quorumRetry = time.Second
	// maxDelay is by how much bidders that go, or count for less than before, put the turns of a
	// ballot off in all: as if all had gone. Without a limit, candidates that say something else in
	// each call would keep the ballot open for ever.
	maxDelay = maxBids * BidTurn
)

// bids are the bids of an open ballot, the best first, as a JSON array; "" if there is none.
type bids string

func (b bids) list() []leadership.Bid { return form.List[leadership.Bid](string(b)) }

// Bids returns the bids as they were written, the best first, also those that are void by now; none
// unless a ballot is open.
func (r *Record) Bids() []leadership.Bid { return r.Standing.Bids.list() }

// ballot is an open ballot as one candidate sees it.
type ballot struct {
	policy leadership.BallotPolicy
	draw   Draw
	opened time.Time     // the window begins
	delay  time.Duration // by which it was put off
	own    leadership.Bid
	before leadership.Bid   // of the candidate, as it was written last; zero if it was not
	others []leadership.Bid // that count now, without that of the candidate and what it withdraws
	along  []leadership.Bid // of the others: that come with the candidate's, and are not written so
	better int              // how many of the others are better
	above  uint32
	gone   bool // the bid that the candidate withdraws is among those written

	free    int       // seats; 1 if it is a ballot without any
	vacant  time.Time // when the seat that is asked for could be granted first
	granted time.Time // the last grant of a seat that is known
	drawn   time.Time // the last one that the draw counts with
}

// ballot is the ballot as a candidate that asks now sees it.
func (s *Snapshot) ballot(c AcquireCommand) ballot {
	p := s.Record.Policy.Ballot
	own := NewBid(c.Candidacy, c.CandidateID, p, form.Later(s.Now, -c.Waited))
	own.At = form.Later(s.Now, 0)
	own.Present, own.Instance = c.present(p.Quorum), c.Instance
	return s.ballotOf(own, c)
}

// present are the members of the electorate that the instance of a candidate has heard of, and the
// candidate: bit i is the i-th name.
func (c AcquireCommand) present(q leadership.QuorumPolicy) (set uint32) {
	for i, name := range q.Electorate.List() {
		if member := leadership.CandidateID(name); member == c.CandidateID || c.Present[member] {
			set |= 1 << i
		}
	}
	return set
}

// A needsPresence asks for the rule to be run again with the presence of this electorate's members.
type NeedsPresence struct{ Of leadership.QuorumPolicy }

func (*NeedsPresence) Error() string {
	return "the presence of the electorate's members is not known"
}

// refuseUncounted refuses a candidate whose electorate's presence is not known yet.
func (s *Snapshot) refuseUncounted(c AcquireCommand) error {
	p := s.Record.Policy.Ballot
	if c.Present == nil || s.Live() && !s.Record.Yielded() && !p.Preempt {
		return nil
	}
	for _, name := range p.Quorum.Electorate.List() {
		if _, known := c.Present[leadership.CandidateID(name)]; !known {
			return &NeedsPresence{p.Quorum}
		}
	}
	return nil
}

// ballotOf is the ballot as the candidate of the bid sees it, which may withdraw another one's. The
// secret of the command is of the draw if there is none yet.
func (s *Snapshot) ballotOf(own leadership.Bid, c AcquireCommand) ballot {
	r := s.Record
	p := r.Policy.Ballot
	b := ballot{policy: p, draw: r.draw(), opened: r.Standing.Opened, delay: r.Standing.Delay, own: own}
	b.free, b.granted = c.free()
	b.drawn = r.Standing.Drawn
	if b.draw.Secret == "" && p.Strategy == leadership.StrategyRandom {
		b.draw.Secret = c.Secret
	}
	begun := false            // a candidate has bid
	var left []leadership.Bid // the bids that this one takes the place of
	for _, bid := range s.liveBids() {
		if bid.CandidateID != own.CandidateID && c.sits(bid) {
			continue
		}
		begun = begun || !bid.Witness
		switch {
		case bid.CandidateID == own.CandidateID:
			b.before, left = bid, append(left, bid)
		case bid.CandidateID == c.Withdraw && bid.Instance == own.Instance:
			b.gone, left = true, append(left, bid)
		default:
			b.others = append(b.others, bid)
		}
	}
	if b.before.CandidateID != "" && b.before.Since.Before(own.Since) {
		b.own.Since = b.before.Since // it has asked again
	}
	b.bring(c.Along, s.Now)
	for _, bid := range b.others {
		if Better(p, b.draw, bid, b.own) {
			b.above |= bid.Present
			if !bid.Witness {
				b.better++
			}
		}
	}
	switch {
	case !begun: // nothing that counts is left of an earlier ballot
		b.opened, b.delay = b.own.At, 0
	case b.completesLate(s.Now):
		b.opened = form.Later(s.Now, quorumRetry-p.EffectiveWindow())
	default:
		b.opened, b.delay = putOff(b.opened, b.delay, given(p, b.draw, left, &b.own, b.others))
	}
	return b
}

// given is how much later the turns begin once the bids of left are given up, for own unless that
// is nil: a turn for each place by which another bidder moves up. The bidder does not know of that,
// and asks at the turn of its former place. A worse one, to which that place was told before the
// better one came, must not be granted at that very moment.
func given(p leadership.BallotPolicy, d Draw, left []leadership.Bid, own *leadership.Bid, others []leadership.Bid) (delay time.Duration) {
	for _, bid := range others {
		up := 0
		for _, former := range left {
			if !former.Witness && Better(p, d, former, bid) {
				up++
			}
		}
		if own != nil && !own.Witness && Better(p, d, *own, bid) {
			up--
		}
		if !bid.Witness {
			delay = max(delay, time.Duration(up)*BidTurn)
		}
	}
	return delay
}

// putOff puts the turns off, as far as maxDelay allows.
func putOff(opened time.Time, delay, by time.Duration) (time.Time, time.Duration) {
	by = min(by, max(maxDelay-delay, 0))
	return opened.Add(by), delay + by
}

// liveBids are the bids that are not void.
func (s *Snapshot) liveBids() []leadership.Bid {
	void := s.Record.Policy.Ballot.EffectiveWindow() + bidKept
	return slices.DeleteFunc(s.Record.Standing.Bids.list(), func(b leadership.Bid) bool { return s.Now.Sub(b.At) > void })
}

// draw is what ranks the bids for the next token.
func (r *Record) draw() Draw {
	return Draw{Election: r.Election, Token: r.Token + 1, Secret: string(r.Standing.Secret), Last: r.Standing.LastLeader}
}

// all are the bids that count now, the candidate's among them.
func (b ballot) all() []leadership.Bid { return append(slices.Clone(b.others), b.own) }

// turn is from when on the candidate may be granted. The best need not wait for longer than the
// window after its bid: if turns begin late, the others wait for it. Of several seats that are free
// so many of the best are granted one at the same time, and the turns of the others begin after the
// last of these.
func (b ballot) turn() time.Time {
	opened := b.opened
	if b.better == 0 && b.before.CandidateID != "" && b.before.At.Before(opened) {
		opened = b.before.At
	}
	at := later(opened, b.vacant).Add(b.policy.EffectiveWindow())
	if turns := b.better + 1 - b.free; turns > 0 {
		at = later(at, b.granted).Add(time.Duration(turns) * BidTurn)
	}
	if b.drawn.After(b.granted) { // fewer seats are free than is known
		at = later(at, b.drawn.Add(BidTurn))
	}
	return at
}

// union is the set of the members that the bidding instances have heard of.
func union(all []leadership.Bid) (present uint32) {
	for _, bid := range all {
		present |= bid.Present
	}
	return present
}

// quorate reports whether enough members are present with that bid of the candidate.
func (b ballot) quorate(own leadership.Bid) bool {
	return count(union(b.others)|own.Present) >= b.policy.Quorum.Needed()
}

// completesLate reports whether the quorum is complete by the candidate's bid alone, and only after
// the window: better candidates have been told to ask again later, and would miss their turns.
func (b ballot) completesLate(now time.Time) bool {
	return b.better > 0 && !now.Before(b.opened.Add(b.policy.EffectiveWindow())) && b.quorate(b.own) && !b.quorate(b.before)
}

// wins reports whether the candidate is granted at that moment.
func (b ballot) wins(now time.Time) bool {
	return !b.own.Witness && !now.Before(b.turn()) && b.quorate(b.own)
}

// bids reports whether the candidate's bid is written: if it is of use, and is not written so
// already, or if what is written would mislead the others.
func (b ballot) bids(now time.Time) bool {
	before := b.before
	before.At, before.Since = b.own.At, b.own.Since
	written := b.before.CandidateID != ""
	fresh := written && b.fresh(b.before, now)
	switch {
	case b.gone, written && before != b.own, b.brings():
		return true
	case fresh || !b.use():
		return false
	}
	return slices.Contains(b.kept(), b.own)
}

// fresh reports whether a bid need not be written anew yet.
func (b ballot) fresh(bid leadership.Bid, now time.Time) bool {
	return now.Sub(bid.At) < (b.policy.EffectiveWindow()+bidKept)/2
}

// use reports whether the candidate's bid is of use: fewer than enough are better, or it has
// members that no better one has.
func (b ballot) use() bool {
	return b.own.Present&^b.above != 0 || !b.own.Witness && b.better < b.enough()
}

// enough is how many better bids are enough.
func (b ballot) enough() int { return b.free - 1 + enoughBids }

// kept are the bids as they are written, the best first. If there are too many, those are given up
// first whose members all others have, too.
func (b ballot) kept() []leadership.Bid {
	all := b.all()
	slices.SortFunc(all, func(x, y leadership.Bid) int { return Compare(b.policy, b.draw, x, y) })
	for len(all) > maxBids {
		i := len(all) - 1
		for i > 0 && all[i].Present&^union(slices.Concat(all[:i], all[i+1:])) != 0 {
			i--
		}
		if i == 0 {
			i = len(all) - 1
		}
		all = slices.Delete(all, i, i+1)
	}
	return all
}

// write puts the candidate's bid among the others.
func (c *Change) write(b ballot) {
	s := &c.Record.Standing
	s.Opened, s.Delay, s.Bids = b.opened, b.delay, bids(form.WriteList(b.kept()))
	if b.policy.Strategy == leadership.StrategyRandom {
		s.Secret = secret(b.draw.Secret)
	}
	c.Quiet = len(c.Events) == 0
}

// closeBallot forgets the bids.
func (s *Standing) closeBallot() { s.Opened, s.Delay, s.Bids = time.Time{}, 0, "" }

// vote grants the lease if it is the candidate's turn, and otherwise writes its bid, if that is of
// use. ch has the end of the last lease, if it ran out.
func (s *Snapshot) vote(ch Change, c AcquireCommand) (Change, error) {
	if s.Record.Standing.Seat > 0 && s.Record.Policy.Ballot.HasBallot() {
		return s.elect(ch, c)
	}
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

// witness reports whether the candidate is never granted.
func witness(c leadership.Candidacy) bool { return c.Role == leadership.RoleWitness }
