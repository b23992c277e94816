package leadership_test

import (
	"fmt"
	"testing"
	"time"

	"regent/leadership"
)

func electorate(n int) leadership.Names {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	return leadership.NewNames(names...)
}

func TestAMajorityToleratesTheFailuresOfTheTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, need, tolerated int }{
		{1, 1, 0}, {2, 2, 0}, {3, 2, 1}, {4, 3, 1}, {5, 3, 2}, {6, 4, 2}, {7, 4, 3}, {31, 16, 15},
	} {
		q := leadership.QuorumPolicy{Electorate: electorate(c.size)}
		if q.Size() != c.size || q.Needed() != c.need || q.ToleratedFailures() != c.tolerated {
			t.Errorf("of %d members %d are needed and %d may fail, want %d and %d", q.Size(), q.Needed(), q.ToleratedFailures(), c.need, c.tolerated)
		}
		q.Need = 1
		if q.Needed() != 1 || q.ToleratedFailures() != c.size-1 {
			t.Errorf("of %d members one is needed by the policy, and not %d", c.size, q.Needed())
		}
	}
	if none := (leadership.QuorumPolicy{}); none.Needed() != 0 || none.ToleratedFailures() != 0 {
		t.Error("a policy without an electorate asks for a quorum")
	}
}

// wants is an election with an electorate of m0 to m4, of which three must be present.
func wants(t *testing.T) leadership.Snapshot {
	t.Helper()
	return balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Quorum: leadership.QuorumPolicy{Electorate: electorate(5)}})
}

func TestAQuorumThatIsCompleteLateNeedsNoBetterBidderThatHasGone(t *testing.T) {
	s := wants(t)
	s = play(t, s, 0, asks(present(bidder("bob", 2), "m1"))) // and goes
	s = tried(t, s, leadership.DefaultWindow, asks(present(bidder("ann", 1), "m0")))
	s = play(t, s, time.Second, asks(present(bidder("ann", 1), "m0", "m2")))
	e := refused(t, s, asks(present(bidder("ann", 1), "m0", "m2")))
	if s = play(t, s, e.RetryAfter, asks(present(bidder("ann", 1), "m0", "m2"))); s.Record.LeaderID != "ann" || e.RetryAfter > 2*time.Second {
		t.Errorf("after %v: %+v", e.RetryAfter, s.Record)
	}
}

func witness(id leadership.CandidateID) leadership.AcquireCommand {
	c := bidder(id, leadership.MaxPriority)
	c.Role = leadership.RoleWitness
	return c
}

func TestAWitnessCountsAndNeverLeads(t *testing.T) {
	s := wants(t)
	s = play(t, s, 0, asks(witness("m0")))
	s = play(t, s, 0, asks(witness("m1")))
	s = play(t, s, 0, asks(bidder("m2", 0)))
	for range 20 {
		s = tried(t, s, 200*time.Millisecond, asks(witness("m0")))
		if e := refused(t, s, asks(witness("m0"))); e.Reason != leadership.ReasonWitness || e.RetryAfter <= 0 {
			t.Fatalf("%+v", e)
		}
	}
	if s = play(t, s, 0, asks(bidder("m2", 0))); s.Record.LeaderID != "m2" {
		t.Errorf("%+v", s.Record)
	}
	if e := refused(t, s, asks(witness("m0"))); e.Reason != leadership.ReasonHeld {
		t.Errorf("while another leads: %+v", e)
	}
}
