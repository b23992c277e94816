package rule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// balloted is a vacant election with that policy.
func balloted(t *testing.T, p leadership.BallotPolicy) rule.Snapshot {
	t.Helper()
	s := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon}
	return play(t, s, 0, applies(leadership.Configure{Config: leadership.Config{Ballot: p}}))
}

func caller(id leadership.CandidateID) rule.AcquireCommand {
	return rule.AcquireCommand{CandidateID: id, KeyHash: hash(id[0])}
}

// bidder is the call of a candidate with that priority.
func bidder(id leadership.CandidateID, priority int64) rule.AcquireCommand {
	c := caller(id)
	c.Priority = priority
	return c
}

// tried is s after a call that may be refused because it is not the caller's turn yet.
func tried(t *testing.T, s rule.Snapshot, later time.Duration, rule decision) rule.Snapshot {
	t.Helper()
	s.Now = s.Now.Add(later)
	if _, err := rule(s); err != nil {
		require.ErrorIs(t, err, leadership.LeaseHeld)
		return s
	}
	return play(t, s, 0, rule)
}

// releases ends the present lease.
func releases(s rule.Snapshot) decision {
	r := s.Record
	return applies(leadership.Release{LeaseRequest: rule.Renewal{Election: "jobs", CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}.Request()})
}

// refused is how the rule refuses.
func refused(t *testing.T, s rule.Snapshot, rule decision) *leadership.Error {
	t.Helper()
	ch, err := rule(s)
	var e *leadership.Error
	if !errors.As(err, &e) || e.Detail == "" {
		t.Fatalf("it is not refused with a sentence: %+v, %v", ch, err)
	}
	return e
}

// electors are in the electorates of these tests.
var electors = []string{"a", "ann", "b", "bob", "cy", "m1", "m2", "m3", "member-0", "member-1", "member-2", "member-3", "member-4", "wit"}

// present lets the instance of the candidate know those members.
func present(c rule.AcquireCommand, members ...leadership.CandidateID) rule.AcquireCommand {
	c.Present = rule.Presence{}
	for _, id := range append(electorate(leadership.MaxElectorate).List(), electors...) {
		c.Present[leadership.CandidateID(id)] = slices.Contains(members, leadership.CandidateID(id))
	}
	return c
}

var byPriority = leadership.BallotPolicy{Strategy: leadership.StrategyPriority}

func asks(c rule.AcquireCommand) decision {
	return func(s rule.Snapshot) (rule.Change, error) { return rule.Acquire(s, c) }
}

func TestTheBestBidderIsGrantedAtTheEndOfTheWindow(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
	s = play(t, s, 0, asks(bidder("ann", 1)))
	s = play(t, s, 10*time.Millisecond, asks(bidder("bob", 2)))
	if s.Record.LeaderID != "" || s.Record.Revision != 1 {
		t.Fatalf("bids are quiet: %+v", s.Record)
	}
	if ch, err := asks(bidder("cy", 0))(s); !errors.Is(err, leadership.LeaseHeld) || !ch.Empty() {
		t.Errorf("with two better bids there is nothing to write: %+v, %v", ch, err)
	}
	late := at(s, noon.Add(leadership.DefaultWindow))
	if ch, err := asks(bidder("ann", 1))(late); err != nil && !errors.Is(err, leadership.LeaseHeld) || len(ch.Events) > 0 {
		t.Errorf("the second best is granted before its turn: %+v, %v", ch, err)
	}
	s, events := playEvents(t, late, 0, asks(bidder("bob", 2)))
	if s.Record.LeaderID != "bob" || len(events) != 1 {
		t.Fatalf("%+v", s.Record)
	}
	want := `{"bids":2,"others":[{"candidateId":"ann","priority":1}],"place":1,"strategy":"priority","winner":{"candidateId":"bob","priority":2}}`
	if events[0].Detail != want {
		t.Errorf("the event says %s, want %s", events[0].Detail, want)
	}
}

func TestABidIsVoidFourSecondsAfterTheWindow(t *testing.T) {
	s := balloted(t, byPriority)
	s = play(t, s, 0, asks(bidder("bob", 9)))
	void := leadership.DefaultWindow + 4*time.Second
	if s := play(t, s, void, asks(bidder("ann", 1))); s.Record.LeaderID != "ann" {
		t.Errorf("the ballot is open for long, and the turn of the better bid is over: %+v", s.Record)
	}
	s = play(t, s, void+time.Microsecond, asks(bidder("ann", 1)))
	if s.Record.LeaderID != "" || !s.Record.Standing.Opened.Equal(s.Now) {
		t.Fatalf("the only bid is void, and no new ballot opens: %+v", s.Record)
	}
	if e := refused(t, s, asks(bidder("ann", 1))); e.Reason != leadership.ReasonBallot || e.Cause.Of != 1 {
		t.Errorf("a void bid counts: %+v", e.Cause)
	}
	if s = play(t, s, leadership.DefaultWindow, asks(bidder("ann", 1))); s.Record.LeaderID != "ann" {
		t.Errorf("%+v", s.Record)
	}
}

func TestAnOlderBidIsWrittenAnewBeforeItIsVoid(t *testing.T) {
	quorum := leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "cy")}
	s := balloted(t, leadership.BallotPolicy{Quorum: quorum})
	s = play(t, s, 0, asks(caller("ann")))
	first := s.Record.Standing.Bids
	half := s.Now.Add((leadership.DefaultWindow + 4*time.Second) / 2)
	if ch, err := asks(caller("ann"))(at(s, half)); err != nil || !ch.Quiet {
		t.Errorf("half way: %+v, %v", ch, err)
	}
	for i := range 60 { // a minute of waiting for the quorum
		e := refused(t, s, asks(caller("ann")))
		if e.Reason != leadership.ReasonQuorum || e.Cause.Have != 1 || e.Cause.Need != 2 {
			t.Fatalf("after %d calls: %+v", i, e.Cause)
		}
		s = tried(t, s, e.RetryAfter, asks(caller("ann")))
	}
	if s.Record.Standing.Bids == first || s.Record.Revision != 1 {
		t.Errorf("%+v", s.Record)
	}
	if s = play(t, s, 0, asks(caller("bob"))); s.Record.LeaderID != "" { // it has waited for less long
		t.Fatalf("%+v", s.Record)
	}
	e := refused(t, s, asks(caller("ann")))
	if s = play(t, s, e.RetryAfter, asks(caller("ann"))); e.RetryAfter > leadership.DefaultWindow || s.Record.LeaderID != "ann" {
		t.Errorf("the best does not lead once the quorum is complete: %+v", s.Record)
	}
}

// A witness keeps the window of no candidate, which comes later, shorter.
func TestABallotOpensWithItsFirstCandidate(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "wit")}})
	witness := caller("wit")
	witness.Role = leadership.RoleWitness
	s = play(t, s, 0, asks(witness))
	s = play(t, s, time.Second, asks(bidder("ann", 1)))
	s = tried(t, s, time.Second, asks(witness))
	if !s.Record.Standing.Opened.Equal(noon.Add(time.Second)) {
		t.Errorf("it opens at %v", s.Record.Standing.Opened)
	}
}

func TestTheBestBidderNeedNotWaitForAQuorumThatItCompletesLate(t *testing.T) {
	quorum := leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "cy")}
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Quorum: quorum})
	s = play(t, s, 0, asks(bidder("ann", 1)))
	if s = play(t, s, time.Second, asks(bidder("bob", 2))); s.Record.LeaderID != "bob" {
		t.Errorf("%+v", s.Record)
	}
}

func TestABidIsWrittenForItsMembersOnlyIfNoBetterOneHasThem(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Quorum: leadership.QuorumPolicy{Electorate: electorate(3), Need: 3}})
	for i, id := range []leadership.CandidateID{"cy", "bob"} {
		s = play(t, s, 0, asks(present(bidder(id, int64(9-i)), "m0")))
	}
	refused(t, s, asks(present(bidder("ann", 1), "m0")))
	if s = play(t, s, 0, asks(present(bidder("ann", 1), "m0", "m1"))); len(s.Record.Bids()) != 3 {
		t.Errorf("it knows another one: %+v", s.Record.Bids())
	}
}

func TestCandidatesThatSayAnotherThingInEachCallKeepNoBallotOpenForEver(t *testing.T) {
	s := balloted(t, byPriority)
	s = play(t, s, 0, asks(bidder("ann", 5)))
	for i := range 101 {
		s = play(t, s, 0, asks(bidder("bob", int64(9-9*(i%2)))))
	}
	if s = play(t, s, leadership.DefaultWindow+17*rule.BidTurn, asks(bidder("ann", 5))); s.Record.LeaderID != "ann" {
		t.Errorf("it is put off for %v", s.Record.Standing.Delay)
	}
}

func TestABidThatItsInstanceWithdrawsKeepsNoneWaiting(t *testing.T) {
	s := balloted(t, byPriority)
	s = play(t, s, 0, asks(bidder("cy", 3)))
	s = play(t, s, 0, asks(bidder("bob", 2)))
	instead := bidder("ann", 1)
	instead.Withdraw = "cy"
	s = play(t, s, 10*time.Millisecond, asks(instead))
	if e := refused(t, s, asks(bidder("bob", 2))); e.Reason != leadership.ReasonBallot || e.RetryAfter != leadership.DefaultWindow-10*time.Millisecond {
		t.Errorf("the candidate after it hears %+v", e.Cause)
	}
	s = balloted(t, byPriority)
	for _, c := range []rule.AcquireCommand{bidder("cy", 3), bidder("dee", 4), bidder("eve", 5)} {
		s = play(t, s, 0, asks(c))
	}
	s = play(t, s, 0, asks(instead)) // though two are better than it
	if e := refused(t, s, asks(bidder("dee", 4))); e.Cause.Of != 3 || strings.Contains(string(s.Record.Standing.Bids), "cy") {
		t.Errorf("the bid stays: %+v, %s", e.Cause, s.Record.Standing.Bids)
	}
	s = balloted(t, byPriority)
	s = play(t, s, 0, asks(bidder("cy", 3)))
	s = play(t, s, 10*time.Millisecond, asks(instead))
	if e := refused(t, s, asks(bidder("ann", 1))); e.RetryAfter != leadership.DefaultWindow-10*time.Millisecond {
		t.Errorf("the window begins again: %+v", e.Cause)
	}
	s = play(t, s, 0, applies(leadership.Withdraw{CandidateID: "ann"}))
	if s.Record.Standing.Bids != "" || !s.Record.Standing.Opened.IsZero() || s.Record.Revision != 1 {
		t.Errorf("the last bid is withdrawn: %+v", s.Record)
	}
	if ch, err := rule.Apply(s, (leadership.Withdraw{CandidateID: "ann"})); err != nil || !ch.Empty() {
		t.Errorf("withdrawn again: %+v, %v", ch, err)
	}
}

// The second of two was told a turn before a better one came between it and the best; that one was
// told the same turn.
func TestABidderThatMovesUpUnawaresIsNotPassedAtItsTurn(t *testing.T) {
	const second = leadership.DefaultWindow + rule.BidTurn
	instead, lower := bidder("dee", 1), bidder("cy", 0)
	instead.Withdraw = "cy"
	for what, gives := range map[string]decision{
		"withdrawn":                         applies(leadership.Withdraw{CandidateID: "cy"}),
		"replaced by one that is no better": asks(instead),
		"lowered":                           asks(lower),
	} {
		s := balloted(t, byPriority)
		opened := s.Now
		s = play(t, s, 0, asks(bidder("cy", 9)))
		s = play(t, s, 0, asks(bidder("ann", 2)))
		s = play(t, s, 50*time.Millisecond, asks(bidder("bob", 3)))
		if e := refused(t, s, asks(bidder("bob", 3))); e.RetryAfter != second-50*time.Millisecond {
			t.Fatalf("the second is told %+v", e.Cause)
		}
		s = play(t, s, 50*time.Millisecond, gives)
		s = tried(t, at(s, opened), second, asks(bidder("ann", 2)))
		if s.Record.LeaderID != "" {
			t.Errorf("%s: %s was granted, and bob is better and asks now", what, s.Record.LeaderID)
			continue
		}
		if s = tried(t, s, 0, asks(bidder("bob", 3))); s.Record.LeaderID != "bob" {
			t.Errorf("%s: bob is not granted at the turn that it was told", what)
		}
	}
	s := balloted(t, byPriority)
	s = play(t, s, 0, asks(bidder("bob", 3)))
	s = play(t, s, 0, asks(bidder("ann", 2)))
	before := s.Record.Standing.Opened
	s = play(t, s, 0, applies(leadership.Withdraw{CandidateID: "ann"}))
	assert.True(t, s.Record.Standing.Opened.Equal(before), "the last bid is withdrawn, and the others have to wait")
}

func TestARecordKeepsTheSixteenBestBids(t *testing.T) {
	s := balloted(t, byPriority)
	for i := range 40 { // each is better than all before
		s = play(t, s, 0, asks(bidder(leadership.CandidateID(fmt.Sprintf("agent-%02d", i)), int64(i))))
	}
	e := refused(t, s, asks(bidder("agent-39", 39)))
	if e.Cause.Of != 16 || strings.Contains(string(s.Record.Standing.Bids), "agent-23") || !strings.Contains(string(s.Record.Standing.Bids), "agent-24") {
		t.Errorf("%+v: %s", e.Cause, s.Record.Standing.Bids)
	}
}

// Bids that alone know a member are kept before better ones that add none.
func TestTheSixteenBidsKeepTheMembersThatArePresent(t *testing.T) {
	members := make([]string, 5)
	for i := range members {
		members[i] = fmt.Sprintf("member-%d", i)
	}
	policy := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames(members...), Need: 5}}
	s := balloted(t, policy)
	for i := range 4 { // the worst candidates, each of which alone knows a member
		s = play(t, s, 0, asks(present(bidder(leadership.CandidateID(fmt.Sprintf("a%d", i)), int64(-i)), leadership.CandidateID(members[i]))))
	}
	for i := range 30 {
		s = play(t, s, 0, asks(bidder(leadership.CandidateID(fmt.Sprintf("b%02d", i)), int64(i+1))))
	}
	last := present(bidder("b29", 30), leadership.CandidateID(members[4]))
	if s = play(t, s, leadership.DefaultWindow, asks(last)); s.Record.LeaderID != "b29" {
		t.Errorf("the members of the worst bids were forgotten: %+v", s.Record)
	}
	s = balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Quorum: leadership.QuorumPolicy{Electorate: electorate(17), Need: 17}})
	for i := range 17 {
		s = play(t, s, 0, asks(present(bidder(leadership.CandidateID(fmt.Sprintf("c%02d", i)), int64(i)), leadership.CandidateID(fmt.Sprintf("m%d", i)))))
	}
	if all := s.Record.Bids(); len(all) != 16 || all[15].CandidateID != "c01" {
		t.Errorf("each alone knows a member: %+v", all)
	}
}

func TestAStandingOrderAndANewPolicyEndTheBallot(t *testing.T) {
	open := balloted(t, byPriority)
	open = play(t, open, 0, asks(bidder("cy", 3)))
	open = play(t, open, 0, asks(bidder("bob", 2)))
	config := open.Record.Policy.Config
	config.Ballot.Strategy = leadership.StrategyLeastLoaded
	quorum := open.Record.Policy.Config
	quorum.Ballot.Quorum.Electorate = leadership.NewNames("ann", "bob")
	for name, rule := range map[string]decision{
		"the best is banned": ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "cy", For: time.Minute}),
		"assigned":           ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute}),
		"paused":             ordered(leadership.Order{Kind: leadership.OrderPause, For: time.Second}),
		"another strategy":   applies(leadership.Configure{Config: config}),
		"a quorum":           applies(leadership.Configure{Config: quorum}),
		"no ballot":          applies(leadership.Configure{}),
		"deleted":            applies(leadership.Delete{}),
		"raised": func(s rule.Snapshot) (rule.Change, error) {
			return rule.Raise(s, rule.RaiseCommand{Above: 100})
		},
	} {
		s := play(t, open, 100*time.Millisecond, rule)
		if s.Record.Standing.Bids != "" || !s.Record.Standing.Opened.IsZero() {
			t.Errorf("%s: %+v", name, s.Record.Standing)
		}
	}
	banned := play(t, open, 100*time.Millisecond, ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "cy", For: time.Minute}))
	banned = play(t, banned, 0, asks(bidder("bob", 2)))
	if e := refused(t, banned, asks(bidder("bob", 2))); e.Reason != leadership.ReasonBallot || e.Cause.Of != 1 {
		t.Errorf("the bid of a banned candidate counts: %+v", e.Cause)
	}
}
