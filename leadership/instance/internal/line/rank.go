package line

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// rule is by what the places of a line rank: the policy and the draw that the store last told.
type ranking struct {
	policy leadership.BallotPolicy
	draw   rule.Draw
	known  bool // the store has told them, and no event since says that they may be others
	number int  // counts the changes
}

// ranked reports whether the best place is asked for, and not the first.
func (r *ranking) ranked() bool {
	return r.policy.Strategy != "" && r.policy.Strategy != leadership.StrategyFirstCome
}

// learnRule takes over what the store has said.
func (l *Line) learnRule() {
	if known := l.election.Lease(); known != nil {
		l.follow(known.Config.Ballot, rule.NextDraw(known.Lease))
	}
}

func (l *Line) follow(p leadership.BallotPolicy, d rule.Draw) {
	if r := &l.rule; p != r.policy || d != r.draw || !r.known {
		*r = ranking{policy: p, draw: d, known: true, number: r.number + 1}
		l.top.known = false
	}
}

// top is the place to ask for, as best found it last.
type top struct {
	place *place // nil if there is none
	until time.Duration
	known bool
}

// class orders places before any strategy does: the lower class is asked for first.
type class int

const (
	eligible   class = iota
	ineligible       // it lacks a capability, as far as is known: the store would refuse it
	witness          // it only adds to the quorum
)

func (l *Line) class(p *place) class {
	switch {
	case p.request.Role == leadership.RoleWitness:
		return witness
	case len(l.rule.policy.Require.Without(p.request.Capabilities)) > 0:
		return ineligible
	}
	return eligible
}

// precedes reports whether a is to be asked for rather than b, which came first.
func (l *Line) precedes(a, b *place) bool {
	if x, y := l.class(a), l.class(b); x != y {
		return x < y
	}
	return l.rule.ranked() && rule.Better(l.rule.policy, l.rule.draw, l.bid(a), l.bid(b))
}

// bid returns the bid of a place's candidate.
func (l *Line) bid(p *place) leadership.Bid {
	return rule.NewBid(p.request.Candidacy, p.request.CandidateID, l.rule.policy, time.Time{}.Add(p.since))
}

// best returns the best place that can be asked for, or nil. Such a place has a caller and is not
// barred; a witness counts only if the election may have a quorum.
func (l *Line) best(now time.Duration) *place {
	if l.top.known && now < l.top.until {
		return l.top.place
	}
	l.top = top{until: l.bars.over(now), known: true}
	for p := range l.each() {
		if !l.mayAsk(p, now) || l.top.place != nil && !l.precedes(p, l.top.place) {
			continue
		}
		if l.top.place = p; !l.rule.ranked() && l.class(p) == eligible {
			break
		}
	}
	return l.top.place
}

func (l *Line) mayAsk(p *place, now time.Duration) bool {
	counts := p.request.Role != leadership.RoleWitness || l.rule.policy.Quorum.Electorate != "" || !l.rule.known || !l.seen.live
	return counts && len(p.callers) > 0 && l.bars.of(callerOf(p.request), now) == nil
}

// consider compares a place that a caller has come to with the best one.
func (l *Line) consider(p *place, isNew bool, now time.Duration) {
	switch {
	case !l.top.known || !isNew && (p == l.top.place || !l.rule.ranked()):
		l.top.known = false
	case l.mayAsk(p, now) && (l.top.place == nil || l.precedes(p, l.top.place)):
		l.top.place = p
	}
}

// Stander is a candidate, or a witness, that stands in line.
type Stander struct {
	CandidateID leadership.CandidateID
	Role        leadership.Role
	// Position is in what place the candidate would be asked for, from 1, or that in which it came,
	// if the strategy is a secret draw. 0 for a witness.
	Position int
	Waited   time.Duration // since it came

	bid leadership.Bid
}

// standing returns all that stand in line, once for each place, in the order in which they came.
// rule.place sets their positions, without the lock under which the line is.
func (l *Line) standing(now time.Duration) []Stander {
	all := make([]Stander, 0, l.places.Len())
	for p := range l.each() {
		if p.forfeit(now) {
			continue
		}
		s := Stander{CandidateID: p.request.CandidateID, Role: leadership.RoleCandidate, Waited: now - p.since, bid: l.bid(p)}
		if p.request.Role == leadership.RoleWitness {
			s.Role = leadership.RoleWitness
		}
		all = append(all, s)
	}
	return all
}

// place sets the positions.
func (r *ranking) place(all []Stander) {
	var order []*Stander
	for i := range all {
		if all[i].Role != leadership.RoleWitness {
			order = append(order, &all[i])
		}
	}
	if r.shown() {
		slices.SortStableFunc(order, func(a, b *Stander) int { return rule.Compare(r.policy, r.draw, a.bid, b.bid) })
	}
	for i, s := range order {
		s.Position = i + 1
	}
}

// shown reports whether a candidate may be told how many are better: the order of a draw is a
// secret until it has been used.
func (r *ranking) shown() bool {
	return r.ranked() && r.policy.Strategy != leadership.StrategyRandom
}

// Position is where the candidate stands, as Stander.Position says, and how many stand in line;
// 0 if it does not, or is a witness.
func (l *Line) Position(c leadership.CandidateID, now time.Duration) (position, of int) {
	var own *place
	for p := range l.each() {
		if p.forfeit(now) || p.request.Role == leadership.RoleWitness {
			continue
		}
		if of++; own == nil && p.request.CandidateID == c {
			own, position = p, of
		}
	}
	if own == nil || !l.rule.shown() {
		return position, of
	}
	position = 1
	for p := range l.each() {
		if !p.forfeit(now) && p != own && p.request.Role != leadership.RoleWitness && l.precedes(p, own) {
			position++
		}
	}
	return position, of
}
