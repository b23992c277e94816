package rule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/rule"
)

// preemptible is ann's lease of 30 s with the priority 1, granted at noon in an election in which
// better candidates preempt.
func preemptible(t *testing.T, change func(*leadership.Config)) rule.Snapshot {
	t.Helper()
	config := leadership.Config{Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true}}
	if change != nil {
		change(&config)
	}
	s := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}
	s = play(t, s, 0, applies(leadership.Configure{Config: config}))
	return play(t, s, 0, asks(bidder("ann", 1)))
}

func renews(s rule.Snapshot) (rule.Change, error) {
	r := s.Record
	return rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token})
}

func withdraws(id leadership.CandidateID) decision {
	return applies(leadership.Withdraw{CandidateID: id})
}

func needTwo(c *leadership.Config) {
	c.Ballot.Window, c.Ballot.Quorum = 0, leadership.QuorumPolicy{Electorate: leadership.NewNames("m1", "m2", "m3")}
}

// granted is ann's lease, with the priority 1, under the configuration.
func granted(t *testing.T, config leadership.Config) rule.Snapshot {
	t.Helper()
	s := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}
	s = play(t, s, 0, applies(leadership.Configure{Config: config}))
	ann := present(bidder("ann", 1), "m1", "m2")
	if s = play(t, s, 0, asks(ann)); s.Record.LeaderID == "" {
		s = play(t, s, leadership.DefaultWindow, asks(ann))
	}
	return s
}

func TestALeaderIsSafeForMinTermAndTheCandidateIsToldForHowLong(t *testing.T) {
	s := preemptible(t, func(c *leadership.Config) { c.Ballot.MinTerm = 20 * time.Second })
	s.Now = noon.Add(5 * time.Second)
	e := refused(t, s, asks(bidder("bob", 2)))
	if e.Reason != leadership.ReasonHeld || e.RetryAfter != 15*time.Second || e.Cause == nil || !e.Cause.Until.Equal(noon.Add(20*time.Second)) {
		t.Errorf("got %+v with %+v", e, e.Cause)
	}
	for _, priority := range []int64{0, 1} {
		if e := refused(t, s, asks(bidder("bob", priority))); e.RetryAfter != 25*time.Second+guard || e.Cause != nil {
			t.Errorf("a candidate that is not better is told %+v with %+v", e, e.Cause)
		}
	}
	x := rule.Explain(s, "bob")
	if len(x.Causes) != 2 || x.Causes[0].Code != leadership.ReasonHeld || x.Causes[0].LeaderID != "ann" || x.Causes[1].Because == "" || x.Causes[1].Left != 15*time.Second {
		t.Errorf("explained as %+v", x.Causes)
	}
	if s = play(t, s, e.RetryAfter, asks(bidder("bob", 2))); s.Record.Standing.Challenger != "bob" {
		t.Errorf("and then: %+v", s.Record)
	}
	x = rule.Explain(s, "ann")
	if !x.Leads || len(x.Causes) != 1 || x.Causes[0].Code != leadership.ReasonOutranked || !x.Causes[0].Until.Equal(s.Record.EndsBy) || x.Causes[0].Because != `"bob" is the better candidate` {
		t.Errorf("the leader is told %+v", x)
	}
}

func TestALeaderWhoseCapabilitiesAreNotKnownIsSafe(t *testing.T) {
	s := preemptible(t, func(c *leadership.Config) { c.Ballot.Strategy, c.Ballot.Prefer = leadership.StrategyCapability, "gpu" })
	config := s.Record.Policy.Config
	config.Ballot.Prefer = "ssd"
	s = play(t, s, 0, applies(leadership.Configure{Config: config}))
	if bob := bidder("bob", 9); s.Record.Standing.Elected != (leadership.Bid{}) || refused(t, s, asks(bob)).Reason != leadership.ReasonHeld {
		t.Errorf("it counts with what the policy preferred before: %+v", s.Record.Standing.Elected)
	}
}

func TestAChallengerWithoutAQuorumIsToldWhatIsMissing(t *testing.T) {
	config := preemptible(t, nil).Record.Policy.Config
	needTwo(&config)
	s := granted(t, config)
	s.Now = s.Now.Add(time.Second)
	e := refused(t, s, asks(present(bidder("bob", 9), "m1")))
	if e.Reason != leadership.ReasonHeld || e.Cause == nil || e.Cause.Have != 1 || e.Cause.Need != 2 || e.RetryAfter != leadership.DefaultGrace {
		t.Errorf("got %+v with %+v", e, e.Cause)
	}
	bob := present(bidder("bob", 9), "m1", "m2")
	bob.Instance = 7
	s = play(t, s, time.Second, asks(bob))
	wantRefusal(t, "another, better challenger", s, asks(present(bidder("dee", 99), "m1", "m2")), leadership.LeaseHeld, leadership.ReasonHeld)
	bob.Instance = 0
	s = play(t, s, 0, asks(bob))
	s = play(t, s, time.Second, asks(instead(present(bidder("dee", 9), "m1"), "bob")))
	if s.Record.Standing.Challenger != "" {
		t.Errorf("the challenge passes to a candidate without a quorum: %+v", s.Record)
	}
}

func TestALeaderThatIsChallengedHandsOverToTheChallenger(t *testing.T) {
	s := play(t, preemptible(t, nil), time.Second, asks(bidder("bob", 2)))
	handing := leadership.HandOver{LeaseRequest: annsLease(s).Request(), To: "cy", Chosen: true}
	_, err := rule.Apply(s, leadership.HandOver{LeaseRequest: handing.LeaseRequest, To: "cy"})
	assert.ErrorIs(t, err, leadership.NotEligible, "to another, by name")
	s = play(t, s, 0, applies(handing))
	assert.EqualValues(t, "bob", s.Lease().Succession.To, "the best candidate that waits")
}

func TestAChallengeThatIsTakenBackGivesTheTermBackWhatItTook(t *testing.T) {
	ban := leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: time.Minute}
	configure := func(change func(*leadership.Config)) decision {
		return func(s rule.Snapshot) (rule.Change, error) {
			config := s.Record.Policy.Config
			change(&config)
			return rule.Apply(s, leadership.Configure{Config: config})
		}
	}
	for name, c := range map[string]struct {
		rule    decision
		because leadership.EndReason // of the end that stays
		event   leadership.EventType
	}{
		"it goes away":               {withdraws("bob"), "", leadership.EventGoesOn},
		"it is banned":               {ordered(ban), "", leadership.EventBanned},
		"another is assigned":        {ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "cy", For: time.Minute}), leadership.EndsHandOver, leadership.EventAssigned},
		"the leader is assigned":     {ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Minute}), "", leadership.EventAssigned},
		"it is assigned":             {ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute}), leadership.EndsHandOver, leadership.EventAssigned},
		"the election is paused":     {ordered(leadership.Order{Kind: leadership.OrderPause, For: time.Minute}), "", leadership.EventPaused},
		"it is paused, and drained":  {ordered(leadership.Order{Kind: leadership.OrderPause, For: time.Minute, Mode: leadership.PauseDrain}), leadership.EndsDrained, leadership.EventPaused},
		"the leader is evicted":      {ordered(leadership.Order{Kind: leadership.OrderEvict}), leadership.EndsEvicted, leadership.EventEvicted},
		"no preemption any more":     {configure(func(c *leadership.Config) { c.Ballot.Preempt = false }), "", leadership.EventConfigured},
		"other capabilities":         {configure(func(c *leadership.Config) { c.Ballot.Require = "gpu" }), "", leadership.EventConfigured},
		"another description":        {configure(func(c *leadership.Config) { c.Description = "x" }), leadership.EndsHandOver, leadership.EventConfigured},
		"the leader acquires anew":   {asks(bidder("ann", 9)), leadership.EndsHandOver, ""},
		"its line bids a better one": {asks(instead(bidder("dee", 3), "bob")), leadership.EndsHandOver, ""},
		"its line bids a worse one":  {asks(instead(bidder("dee", 0), "bob")), "", leadership.EventGoesOn},
	} {
		s := preemptible(t, nil)
		s = play(t, s, 5*time.Second, asks(bidder("bob", 2)))
		promised := noon.Add(30 * time.Second)
		s, events := playEvents(t, s, time.Second, c.rule)
		if r := s.Record; r.EndsBecause != c.because || c.because != "" && !r.EndsBy.Equal(promised) || r.LeaseEnd().Before(promised) {
			t.Errorf("%s: ends by %v because %q, want %v because %q", name, r.EndsBy, r.EndsBecause, promised, c.because)
		}
		if len(events) != 1 && c.event != "" || c.event != "" && events[0].Type != c.event || c.event == "" && len(events) > 0 {
			t.Errorf("%s: %+v", name, events)
		}
		s = play(t, s, time.Second, renews)
		if goesOn := s.Record.LeaseEnd().After(promised); goesOn != (c.because == "") {
			t.Errorf("%s: renewed, it ends at %v", name, s.Record.LeaseEnd())
		}
	}
}

func instead(c rule.AcquireCommand, of leadership.CandidateID) rule.AcquireCommand {
	c.Withdraw = of
	return c
}
