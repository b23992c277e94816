package leadership_test

import (
	"slices"
	"testing"
	"time"

	"regent/leadership"
)

func TestARecordHasTheBidsOfItsBallotUntilItsGrant(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
	bidders := func() (ids []leadership.CandidateID) {
		for _, b := range s.Record.Bids() {
			ids = append(ids, b.CandidateID)
		}
		return ids
	}
	s = play(t, s, 0, asks(bidder("ann", 1)))
	s = play(t, s, 10*time.Millisecond, asks(bidder("bob", 2)))
	if got := bidders(); !slices.Equal(got, []leadership.CandidateID{"bob", "ann"}) {
		t.Errorf("%v, want the best first", got)
	}
	s = play(t, s, time.Second, asks(bidder("bob", 2)))
	if got := bidders(); s.Record.LeaderID != "bob" || len(got) > 0 {
		t.Errorf("%s leads, and there are bids: %v", s.Record.LeaderID, got)
	}
}
