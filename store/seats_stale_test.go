package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/service"
)

// An instance that hears of no events takes a seat for led until it has asked the store.
func TestACandidateIsGrantedASeatThatItsInstanceTakesForLed(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := service.New(c.memory(0))
	config := leadership.Config{LeaseDuration: time.Hour, Seats: 1, Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority}}
	if _, err := s.Do(t.Context(), leadership.Configure{Election: "gpu", Config: config}); err != nil {
		t.Fatal(err)
	}
	seat := leadership.Seat{Election: "gpu.1", Leader: "eve", Left: time.Hour}
	var learned []leadership.Lease
	seating := &leadership.Seating{
		Known: func(context.Context, leadership.Lease) ([]leadership.Seat, error) {
			return []leadership.Seat{seat}, nil
		},
		Refused: func(e *leadership.Error) { learned = append(learned, *e.Lease) },
	}
	ask := leadership.AcquireRequest{Election: "gpu", CandidateID: "ann", Key: &leadership.Key{1}, InLine: leadership.InLine{Seats: seating}}
	_, err := s.Acquire(t.Context(), ask)
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Reason != leadership.ReasonBallot || refusal.Lease.Election != "gpu" {
		t.Fatalf("the first time: %v; want that it has bid", err)
	}
	if len(learned) != 1 || learned[0].Election != "gpu.1" || learned[0].State != leadership.Vacant {
		t.Errorf("the instance learned %+v; want that the seat is vacant", learned)
	}
	c.advance(refusal.RetryAfter)
	if g, err := s.Acquire(t.Context(), ask); err != nil || g.Election != "gpu.1" {
		t.Errorf("in its turn: %q, %v", g.Election, err)
	}
}
