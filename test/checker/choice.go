package checker

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// CH checks which candidate was chosen, by the history and by what candidates were told:
//
//   - no witness is granted, nor a candidate that lacks what the policy requires;
//   - where the policy asks for a ballot, the detail of the grant says how the winner was ranked:
//     rule.Rank, run on the bids in it, gives the same order; the draws are those of its
//     secret, which was told of no grant before; the last leader is the last leader;
//   - the winner's bid is what it said when it asked;
//   - the grant comes after the end of the last lease by the window and a turn for each better bid;
//   - a candidate that was told that its bid is the best so far, and not yet to ask again or is
//     asking, is counted among the better ones if it is better, unless it had waited before and
//     gone. It may still miss its turn;
//   - as many members of the electorate are present as the policy asks for, and no more than there
//     were, if Recording.Present tells of the election;
//   - a leader is preempted only where the policy says so, by a candidate that is better than it
//     and not by its id alone, after the minimum term, and not before the end that it was promised.
//
// A ballot for seats is that of the whole: it draws by the whole's name and next token, which no
// grant raises, several grants may be by the same secret, and of the better ones so many as there
// are seats cost no turn. Which leader was the last at any of them is not checked. A seat that is
// assigned to the candidate is granted without a ballot.
//
// What a candidate counts for is what it said in its calls: one whose calls say different things,
// or are not recorded, is not compared. With firstCome none is, because it is not known outside
// when an instance took a call. A grant under a policy that no call and no answer shows is not
// checked. Guard is by how much the clocks of the store's servers may differ.
func CH(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	configs, commits := configsOf(truth, r.Calls), commitsOf(truth, r)
	promises, seats := promisesOf(r.Calls), r.seated()
	for _, e := range truth.elections() {
		of, _, _ := e.SeatOf()
		x := choice{
			report: &report, whole: of, seats: seats[of], guard: guard + time.Microsecond, recording: r, election: e, calls: callsOf(r.Calls, e), commits: commits[e],
			known: true, secrets: make(map[string]bool), promises: promises,
		}
		for _, event := range truth[e] {
			if configures(event) {
				config, known := configs[event.ID()]
				x.policy, x.known = config.Ballot, known
			}
			x.follow(event)
		}
	}
	return report
}

// choice goes through the events of one election.
type choice struct {
	report    *Report
	guard     time.Duration
	recording Recording
	election  leadership.Election
	whole     leadership.Election // if it is a seat of that, or has such a name
	seats     int                 // of the whole, at most; 0 if it has none
	calls     []Call
	commits   []commit
	promises  map[grantID]time.Time

	policy  leadership.BallotPolicy
	known   bool
	since   leadership.Event       // since when there is no leader, and this policy; zero before the first change
	begun   leadership.Event       // the grant of the present leader
	last    leadership.CandidateID // with roundRobin
	secrets map[string]bool
	handing leadership.Event // the challenge that stands

	assigned standing
}

func (x *choice) follow(e leadership.Event) {
	switch {
	case e.Type == leadership.EventAssigned:
		x.assigned = standingOf(e)
	case e.Type == leadership.EventLifted && standingOf(e).ID == x.assigned.ID:
		x.assigned = standing{}
	case e.Type == leadership.EventAcquired:
		x.report.Checked++
		x.granted(e)
		x.begun, x.handing, x.last = e, leadership.Event{}, ""
		if x.policy.Strategy == leadership.StrategyRoundRobin {
			x.last = e.LeaderID
		}
	case e.Type == leadership.EventHandingOver && !byLeader(e):
		x.report.Checked++
		x.preempted(e)
		x.handing = e
	case e.Type == leadership.EventYielded:
		x.handing = leadership.Event{} // the leader has given up what it was promised
	case e.Type == leadership.EventGoesOn:
		if x.handing.Revision == 0 { // its candidate may be another one of the same line
			x.report.add(Untrue, "%s says %s, and no such challenge stood", shown(e), e.Detail)
		}
		x.handing = leadership.Event{}
	case ends(e):
		x.handedOver(e)
		x.since, x.handing, x.begun = e, leadership.Event{}, leadership.Event{}
	case configures(e):
		if x.since = e; !x.policy.Preempt {
			x.handing = leadership.Event{}
		}
		if x.last == "" && x.policy.Strategy == leadership.StrategyRoundRobin {
			x.last = x.begun.LeaderID
		}
	}
}

// granted checks a grant.
func (x *choice) granted(e leadership.Event) {
	asked := x.candidacies(e.LeaderID, e)
	if !x.known {
		return
	}
	for _, c := range asked {
		if c.Role == leadership.RoleWitness && len(asked) == 1 {
			x.report.add(Witness, "%s was granted to a witness", shown(e))
		}
		if lacks := without(x.policy.Require, c.Capabilities); len(lacks) > 0 && len(asked) == 1 {
			x.report.add(Ineligible, "%s was granted, and the policy requires %v", shown(e), lacks)
		}
	}
	if !x.policy.HasBallot() || handedTo(x.since) == e.LeaderID && x.since.Revision == e.Revision-1 {
		return
	}
	if x.seats > 0 && e.Detail == "" && x.assigned.CandidateID == e.LeaderID && e.At.Before(x.assigned.Until.Add(x.guard)) {
		return
	}
	b, err := ballotOf(e)
	if err != nil {
		x.report.add(Untrue, "%s says %q: %v", shown(e), e.Detail, err)
		return
	}
	x.ranked(e, b)
	x.turn(e, b)
	x.quorum(e, b)
	if len(asked) == 1 {
		x.said(e, b.Winner, asked[0])
		x.passed(e, b, asked[0])
	}
}

// ranked repeats the ranking.
func (x *choice) ranked(e leadership.Event, b shownBallot) {
	d := rule.Draw{Election: e.Election, Token: e.Token, Secret: b.Secret, Last: b.Last}
	if x.seats > 0 {
		d.Election, d.Token = x.whole, 1
	}
	bids := []leadership.Bid{b.Winner.bid()}
	for _, other := range b.Others {
		bids = append(bids, other.bid())
	}
	better := 0
	for i, bid := range bids[1:] {
		if rule.Better(x.policy, d, bid, bids[0]) {
			better++
		}
		if i > 0 && !rule.Better(x.policy, d, bids[i], bid) {
			x.report.add(Misranked, "%s says %s: %q is not better than %q", shown(e), e.Detail, bids[i].CandidateID, bid.CandidateID)
		}
	}
	strategy := strategyOf(x.policy)
	switch all := len(bids) == b.Bids; {
	case b.Strategy != strategy:
		x.report.add(Misranked, "%s says %s, and the strategy is %s", shown(e), e.Detail, strategy)
	case b.Bids > len(bids) && len(e.Detail) < leadership.MaxDetailBytes/2: // there was room for more
		x.report.add(Misranked, "%s says %s: bids are missing", shown(e), e.Detail)
	case len(bids) > b.Bids, better != min(b.Place-1, len(b.Others)), all && better != b.Place-1:
		x.report.add(Misranked, "%s says %s: %d of the others are better", shown(e), e.Detail, better)
	case strategy == leadership.StrategyRoundRobin && b.Last != x.last && x.seats == 0, strategy != leadership.StrategyRoundRobin && b.Last != "":
		x.report.add(Misranked, "%s says %s, and the last leader is %q", shown(e), e.Detail, x.last)
	case strategy == leadership.StrategyRandom && x.secrets[b.Secret] && x.seats == 0:
		x.report.add(Twice, "%s has the secret %q, which was known from a grant before", shown(e), b.Secret)
	}
	for _, bid := range append(b.Others, b.Winner) {
		draw := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", d.Election, d.Token, b.Secret, bid.CandidateID))
		if want := fmt.Sprintf("%x", draw[:8]); strategy == leadership.StrategyRandom && bid.Draw != want {
			x.report.add(Misranked, "%s says %s: the draw of %q is %s", shown(e), e.Detail, bid.CandidateID, want)
		}
	}
	x.secrets[b.Secret] = true
}

func strategyOf(p leadership.BallotPolicy) leadership.Strategy {
	return cmp.Or(p.Strategy, leadership.StrategyFirstCome)
}

// turn checks that the winner's turn had come, counted from the earliest moment at which the ballot
// can have been opened.
func (x *choice) turn(e leadership.Event, b shownBallot) {
	window := x.policy.Window
	if window == 0 {
		window = leadership.DefaultWindow
	}
	early := x.guard > time.Microsecond // it was decided some time before it was committed
	if x.since.Revision == 0 || ranOut(x.since) && (early || x.seats > 0) || x.seats > 0 && early {
		return
	}
	if turn := x.since.At.Add(window + time.Duration(max(b.Place-max(x.seats, 1), 0))*rule.BidTurn - x.guard); e.At.Before(turn) {
		x.report.add(TooSoon, "%s was granted before its turn, which came at %s", shown(e), stamp(turn))
	}
}

// quorum checks the members that were present.
func (x *choice) quorum(e leadership.Event, b shownBallot) {
	need := x.policy.Quorum.Needed()
	if b.Present < need {
		x.report.add(Few, "%s says %s, and %d members have to be present", shown(e), e.Detail, need)
	}
	at := x.commits[e.Revision-1]
	told, here := false, make(map[leadership.CandidateID]bool)
	for _, p := range x.recording.Present {
		if p.Election != x.election {
			continue
		}
		told = true
		if x.policy.Quorum.Electorate.Has(string(p.Member)) && p.From <= at.latest && p.Until >= at.earliest {
			here[p.Member] = true
		}
	}
	if told && b.Present > len(here) {
		x.report.add(Phantom, "%s says %s, and %d members of the electorate were there", shown(e), e.Detail, len(here))
	}
}

// said checks the winner's bid.
func (x *choice) said(e leadership.Event, b shownBid, c leadership.Candidacy) {
	own := rule.NewBid(c, e.LeaderID, x.policy, time.Time{})
	same := b.CandidateID == e.LeaderID
	switch x.policy.Strategy {
	case leadership.StrategyPriority:
		same = same && b.Priority == own.Priority
	case leadership.StrategyCapability:
		same = same && b.Priority == own.Priority && b.Preferred == own.Preferred
	case leadership.StrategyLeastLoaded:
		same = same && b.Load == own.Load
	}
	if !same {
		x.report.add(Untrue, "%s says %s, and the candidate said %+v", shown(e), e.Detail, c)
	}
}

// passed looks for a better candidate that was told that its bid was the best so far.
func (x *choice) passed(e leadership.Event, b shownBallot, c leadership.Candidacy) {
	if strategyOf(x.policy) == leadership.StrategyFirstCome || b.Place > 1 { // a better one has missed its turn
		return
	}
	d := rule.Draw{Election: e.Election, Token: e.Token, Secret: b.Secret, Last: b.Last}
	winner := rule.NewBid(c, e.LeaderID, x.policy, time.Time{})
	for _, told := range x.calls {
		if told.Verb != Acquire || told.Because != leadership.ReasonBallot || told.Waited > 0 || told.Answer == nil || told.Candidate == e.LeaderID ||
			!told.Answer.ReadAt.Before(e.At.Add(-x.guard)) || told.Answer.Revision < x.since.Revision || e.At.Sub(told.Answer.ReadAt) > x.bidKept() ||
			slices.ContainsFunc(x.calls, func(c Call) bool { return c.supersedes(told, e) || c.leftBefore(told) }) {
			continue
		}
		said := x.candidacies(told.Candidate, e)
		if len(said) != 1 || !rule.Better(x.policy, d, rule.NewBid(said[0], told.Candidate, x.policy, time.Time{}), winner) {
			continue
		}
		later := told.Answer.ReadAt.Add(told.Again).After(e.At.Add(x.guard)) // it was told to ask later
		if later || slices.ContainsFunc(x.calls, func(c Call) bool { return c.again(told) && c.Answer.Token >= e.Token }) {
			x.report.add(Passed, "%s was granted, and %q is better and waited: %v", shown(e), told.Candidate, told)
			return
		}
	}
}

// supersedes reports whether the call was answered after the former one of its candidate, and
// before the grant. It may have waited for a moment and gone, and its bid with it.
func (c Call) supersedes(former Call, grant leadership.Event) bool {
	return c.Verb == Acquire && c.Candidate == former.Candidate && c.Answer != nil &&
		c.Answer.ReadAt.After(former.Answer.ReadAt) && c.Answer.ReadAt.Before(grant.At)
}

// leftBefore reports whether the candidate of the later call had waited before it, and gone: the
// instance may since then be asking for another one, and give up the bid with that. Such an attempt
// takes as long as the store does.
func (c Call) leftBefore(later Call) bool {
	return c.Verb == Acquire && c.Candidate == later.Candidate && c.Waited > 0 && c.Code == leadership.LeaseHeld &&
		c.Answered < later.Asked && c.Answer != nil && c.Answer.Token == later.Answer.Token
}

// again reports whether the call came when the former one's caller was told to ask again, and told
// it how the election went on.
func (c Call) again(former Call) bool {
	return c.Verb == Acquire && c.Candidate == former.Candidate && c.Asked > former.Answered && c.Asked <= former.Answered+former.Again+rule.BidTurn/2 &&
		c.Answer != nil && c.Answered != Forever
}

// bidKept is how long a bid certainly counts.
func (x *choice) bidKept() time.Duration { return max(x.policy.Window, 0) + 4*time.Second - x.guard }

// preempted checks a challenge.
func (x *choice) preempted(e leadership.Event) {
	id := successorOf(e)
	challenger, leader := x.candidacies(id, e), x.candidacies(x.begun.LeaderID, x.begun)
	switch {
	case x.begun.Revision == 0 || e.LeaderID != x.begun.LeaderID || id == "" || id == e.LeaderID:
		x.report.add(Untrue, "%s says %s, and %q leads", shown(e), e.Detail, x.begun.LeaderID)
	case !x.known:
	case !x.policy.Preempt:
		x.report.add(Needless, "%s, and the policy lets no candidate preempt the leader", shown(e))
	case e.At.Before(x.begun.At.Add(x.policy.MinTerm - x.guard)):
		x.report.add(TooSoon, "%s, and its term began at %s and is safe for %v", shown(e), stamp(x.begun.At), x.policy.MinTerm)
	case len(challenger) == 1 && len(leader) == 1:
		// With equal ids only what the strategy counts makes one of them better.
		own, other := rule.NewBid(challenger[0], id, x.policy, time.Time{}), rule.NewBid(leader[0], id, x.policy, time.Time{})
		if own.Witness || !rule.Better(x.policy, rule.Draw{}, own, other) {
			x.report.add(Needless, "%s, and %+v is not better than %+v", shown(e), challenger[0], leader[0])
		}
	}
}

// handedOver checks that a term that was to end for a better candidate lasted as long as its leader
// was promised.
func (x *choice) handedOver(e leadership.Event) {
	promised := x.promises[grantID{x.election, e.Token}]
	if x.handing.Revision > 0 && e.Type == leadership.EventExpired && e.At.Before(promised.Add(-x.guard)) {
		x.report.add(Shortened, "%s: the leader was promised to lead until %s", shown(e), stamp(promised))
	}
}

// candidacies are what the candidate said in its calls that were asked before an event was
// committed. If it said one thing only, it is that.
func (x *choice) candidacies(id leadership.CandidateID, e leadership.Event) (all []leadership.Candidacy) {
	if e.Revision == 0 {
		return nil
	}
	at := x.commits[e.Revision-1]
	for _, c := range x.calls {
		if c.Verb == Acquire && c.Candidate == id && c.Asked <= at.latest && !slices.Contains(all, c.Candidacy) {
			all = append(all, c.Candidacy)
		}
	}
	return all
}

// shownBallot is the detail of a grant.
type shownBallot struct {
	Bids     int                    `json:"bids"`
	Last     leadership.CandidateID `json:"last"`
	Others   []shownBid             `json:"others"`
	Place    int                    `json:"place"`
	Present  int                    `json:"present"`
	Secret   string                 `json:"secret"`
	Strategy leadership.Strategy    `json:"strategy"`
	Winner   shownBid               `json:"winner"`
}

type shownBid struct {
	CandidateID leadership.CandidateID `json:"candidateId"`
	Draw        string                 `json:"draw"`
	Load        int64                  `json:"load"`
	Preferred   int                    `json:"preferred"`
	Priority    int64                  `json:"priority"`
	Since       time.Time              `json:"since"`
}

func (b shownBid) bid() leadership.Bid {
	return leadership.Bid{CandidateID: b.CandidateID, Load: b.Load, Preferred: b.Preferred, Priority: b.Priority, Since: b.Since}
}

// ballotOf is the ballot that a grant tells of.
func ballotOf(e leadership.Event) (b shownBallot, err error) {
	in := json.NewDecoder(strings.NewReader(e.Detail))
	in.DisallowUnknownFields()
	if err := in.Decode(&b); err != nil {
		return b, err
	}
	if b.Place < 1 || b.Place > b.Bids {
		return b, fmt.Errorf("place %d of %d", b.Place, b.Bids)
	}
	return b, nil
}

// candidacyOf is a candidacy that may have been granted, by the detail of the grant.
func candidacyOf(e leadership.Event, p leadership.BallotPolicy) leadership.Candidacy {
	b, _ := ballotOf(e) // without a ballot it says nothing
	capabilities := p.Require
	for _, name := range p.Prefer.List() {
		if c := (leadership.Candidacy{Capabilities: capabilities}); rule.NewBid(c, e.LeaderID, p, time.Time{}).Preferred < b.Winner.Preferred {
			capabilities = union(capabilities, leadership.NewNames(name))
		}
	}
	return leadership.Candidacy{Priority: b.Winner.Priority, Load: b.Winner.Load, Capabilities: capabilities}
}

// successorOf is the candidate for which a term ends, or goes on.
func successorOf(e leadership.Event) leadership.CandidateID { return e.ReadDetail().To }

func union(a, b leadership.Names) leadership.Names {
	return leadership.NewNames(append(a.List(), b.List()...)...)
}

// without are the names of a that b lacks.
func without(a, b leadership.Names) []string { return slices.DeleteFunc(a.List(), b.Has) }
