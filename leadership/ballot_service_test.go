package leadership_test

import (
	"errors"
	"testing"

	"regent/leadership"
)

// electing is a service on an election with that policy, in which no candidate has asked.
func electing(t *testing.T, p leadership.BallotPolicy) (*slowStore, *leadership.Service) {
	t.Helper()
	store := &slowStore{snap: leadership.Snapshot{Now: noon, Guard: guard}}
	s := leadership.New(store)
	if _, err := s.Do(t.Context(), leadership.Configure{Election: "jobs", Config: leadership.Config{Ballot: p}}); err != nil {
		t.Fatal(err)
	}
	return store, s
}

func request(id leadership.CandidateID, priority int64) leadership.AcquireRequest {
	key := leadership.Key{id[0]}
	return leadership.AcquireRequest{Election: "jobs", CandidateID: id, Key: &key, Candidacy: leadership.Candidacy{Priority: priority}}
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
