package leadership_test

import (
	"errors"
	"testing"
	"time"

	"regent/leadership"
)

// balloted is a vacant election with that policy.
func balloted(t *testing.T, p leadership.BallotPolicy) leadership.Snapshot {
	t.Helper()
	s := leadership.Snapshot{Record: leadership.Record{Election: "jobs"}, Now: noon}
	return play(t, s, 0, func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Configure(s, leadership.ConfigureCommand{Config: leadership.Config{Ballot: p}})
	})
}

func caller(id leadership.CandidateID) leadership.AcquireCommand {
	return leadership.AcquireCommand{CandidateID: id, KeyHash: hash(id[0])}
}

// bidder is the call of a candidate with that priority.
func bidder(id leadership.CandidateID, priority int64) leadership.AcquireCommand {
	c := caller(id)
	c.Priority = priority
	return c
}

func asks(c leadership.AcquireCommand) func(leadership.Snapshot) (leadership.Change, error) {
	return func(s leadership.Snapshot) (leadership.Change, error) { return leadership.Acquire(s, c) }
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

func TestABidderThatIsGoneCostsOneTurn(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
	s = play(t, s, 0, asks(bidder("ann", 1)))
	s = play(t, s, 0, asks(bidder("bob", 2)))
	s = play(t, s, leadership.DefaultWindow+leadership.BidTurn, asks(bidder("ann", 1)))
	if s.Record.LeaderID != "ann" {
		t.Errorf("%+v", s.Record)
	}
}

func TestABetterCandidateEndsTheTermAndTakesItsChallengeWithIt(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true})
	s = play(t, s, 0, asks(bidder("ann", 1)))
	if s.Record.LeaderID != "ann" {
		t.Fatalf("without a window the first is granted: %+v", s.Record)
	}
	promised := s.Record.LeaseEnd()
	s, events := playEvents(t, s, time.Second, asks(bidder("bob", 2)))
	if !s.Record.EndsBy.Equal(promised) || s.Record.EndsBecause != leadership.EndsHandOver || events[0].Type != leadership.EventHandingOver {
		t.Fatalf("%+v, %+v", s.Record, events)
	}
	s, events = playEvents(t, s, 0, func(s leadership.Snapshot) (leadership.Change, error) { return leadership.Withdraw(s, "bob") })
	if !s.Record.EndsBy.IsZero() || events[0].Type != leadership.EventGoesOn {
		t.Errorf("%+v, %+v", s.Record, events)
	}
}

func TestAGrantNeedsTheUnionOfTheMembersThatArePresent(t *testing.T) {
	quorum := leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "wit")}
	s := balloted(t, leadership.BallotPolicy{Quorum: quorum})
	s = play(t, s, 0, by("ann"))
	late := at(s, noon.Add(leadership.DefaultWindow))
	if _, err := by("ann")(late); !errors.Is(err, leadership.LeaseHeld) {
		t.Fatalf("one of three: %v", err)
	}
	witness := caller("wit")
	witness.Role = leadership.RoleWitness
	s = play(t, late, 0, asks(witness))
	s = play(t, s, 0, by("ann"))
	if s.Record.LeaderID != "ann" {
		t.Errorf("two of three: %+v", s.Record)
	}
}
