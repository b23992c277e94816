package leadership_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"regent/leadership"
)

// electing is a service on an election with that policy, in which no candidate has asked.
func electing(t *testing.T, p leadership.BallotPolicy) (*slowStore, *leadership.Service) {
	t.Helper()
	store := &slowStore{snap: leadership.Snapshot{Now: noon, Guard: guard}}
	s := leadership.New(store)
	if _, err := s.Configure(t.Context(), leadership.ConfigureRequest{Election: "jobs", ConfigureCommand: leadership.ConfigureCommand{Config: leadership.Config{Ballot: p}}}); err != nil {
		t.Fatal(err)
	}
	return store, s
}

func request(id leadership.CandidateID, priority int64) leadership.AcquireRequest {
	key := leadership.Key{id[0]}
	return leadership.AcquireRequest{Election: "jobs", CandidateID: id, Key: &key, Candidacy: leadership.Candidacy{Priority: priority}}
}

func TestACallThatHasBidIsRefusedWithItsTurn(t *testing.T) {
	store, s := electing(t, byPriority)
	store.commit = 100 * time.Millisecond
	_, err := s.Acquire(t.Context(), request("ann", 1))
	var e *leadership.Error
	if !errors.As(err, &e) || e.Code != leadership.LeaseHeld || e.Reason != leadership.ReasonBallot || e.RetryAfter != leadership.DefaultWindow-100*time.Millisecond {
		t.Fatalf("got %+v", err)
	}
	if e.Lease.State != leadership.Vacant || e.Lease.Revision != 1 || store.snap.Record.Standing.Bids == "" {
		t.Errorf("it shows %+v", e.Lease)
	}
	store.commit = time.Second // longer than the window
	if _, err := s.Acquire(t.Context(), request("bob", 2)); !errors.As(err, &e) || e.RetryAfter != time.Millisecond {
		t.Errorf("a bid that is committed after its turn has come: %v", err)
	}
	if g, err := s.Acquire(t.Context(), request("bob", 2)); err != nil || g.LeaderID != "bob" {
		t.Errorf("and then: %+v, %v", g, err)
	}
}

func TestACallThatHasChallengedIsRefusedAsHeld(t *testing.T) {
	store, s := electing(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true})
	if _, err := s.Acquire(t.Context(), request("ann", 1)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Acquire(t.Context(), request("bob", 2))
	var e *leadership.Error
	if !errors.As(err, &e) || e.Reason != leadership.ReasonHeld || e.Lease.Challenger != "bob" || e.RetryAfter != leadership.DefaultLeaseDuration+guard {
		t.Errorf("got %+v", err)
	}
	if l, err := s.Withdraw(t.Context(), "jobs", "bob", 0); err != nil || l.Challenger != "" || !l.EndsBy.IsZero() || l.LeaderID != "ann" {
		t.Errorf("withdrawn: %+v, %v", l, err)
	}
	if _, err := s.Withdraw(t.Context(), "jobs", "a b", 0); !errors.Is(err, leadership.InvalidArgument) {
		t.Error(err)
	}
	if n := len(store.events); store.events[n-1].Type != leadership.EventGoesOn {
		t.Errorf("%+v", store.events)
	}
}

// A grant, a bid and a challenge whose reply was lost: the same call again does what the first
// would have done, and nothing twice.
func TestALostReplyOfABallotCostsNothing(t *testing.T) {
	lost := errors.New("lost")
	policy := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Preempt: true}
	store, s := electing(t, policy)
	again := func(r leadership.AcquireRequest) (first, second leadership.Snapshot, g leadership.Grant, err error) {
		t.Helper()
		store.lost = lost
		if _, err := s.Acquire(t.Context(), r); !errors.Is(err, lost) {
			t.Fatalf("got %v", err)
		}
		first, store.lost = store.snap, nil
		g, err = s.Acquire(t.Context(), r)
		return first, store.snap, g, err
	}
	first, second, _, err := again(request("ann", 1))
	if !errors.Is(err, leadership.LeaseHeld) || first.Record != second.Record || first.Record.Standing.Bids == "" {
		t.Errorf("a bid: %+v, then %+v, %v", first.Record, second.Record, err)
	}
	store.snap.Now = store.snap.Now.Add(leadership.DefaultWindow)
	first, second, g, err := again(request("ann", 1))
	if err != nil || g.Token != 1 || first.Record.Token != 1 || first.Record.LeaderID != "ann" || second.Record.Revision != first.Record.Revision {
		t.Errorf("a grant: %+v, then %+v, %v", first.Record, g, err)
	}
	first, second, _, err = again(request("bob", 2))
	if !errors.Is(err, leadership.LeaseHeld) || first.Record != second.Record || first.Record.Standing.Challenger != "bob" {
		t.Errorf("a challenge: %+v, then %+v, %v", first.Record, second.Record, err)
	}
	store.lost = lost
	if _, err = s.Withdraw(t.Context(), "jobs", "bob", 0); !errors.Is(err, lost) {
		t.Error(err)
	}
	if _, err = s.Withdraw(t.Context(), "jobs", "bob", 0); err != nil { // there is nothing to write, and no reply to lose
		t.Error(err)
	}
	if r := store.snap.Record; r.Revision != first.Record.Revision+1 || r.Standing.Challenger != "" {
		t.Errorf("withdrawn twice: %+v", r)
	}
}

// The store may run the rule more than once. What it decided before counts for nothing.
func TestABallotThatIsDecidedAnewIsDecidedOnWhatIsThen(t *testing.T) {
	store, s := electing(t, byPriority)
	free := store.snap
	if _, err := s.Acquire(t.Context(), request("bob", 2)); !errors.Is(err, leadership.LeaseHeld) {
		t.Fatal(err)
	}
	store.snap.Now = store.snap.Now.Add(leadership.DefaultWindow)
	store.aborted = &free
	if _, err := s.Acquire(t.Context(), request("ann", 1)); !errors.Is(err, leadership.LeaseHeld) {
		t.Errorf("got %v", err)
	}
	var e *leadership.Error
	if _, err := s.Acquire(t.Context(), request("ann", 1)); !errors.As(err, &e) || e.Reason != leadership.ReasonOutranked {
		t.Errorf("got %v", err)
	}
}

func TestACallThatIsCancelledBidsNot(t *testing.T) {
	store, s := electing(t, byPriority)
	ctx, cancel := context.WithCancel(t.Context())
	store.reading = cancel
	if _, err := s.Acquire(ctx, request("ann", 1)); !errors.Is(err, leadership.StoreUnavailable) || store.snap.Record.Standing.Bids != "" {
		t.Errorf("got %v, and %+v", err, store.snap.Record)
	}
}
