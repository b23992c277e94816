package rule_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// electing is a service on an election with that policy, in which no candidate has asked.
func electing(t *testing.T, p leadership.BallotPolicy) (*slowStore, *service.Service) {
	t.Helper()
	store := &slowStore{snap: rule.Snapshot{Now: noon, Guard: guard}}
	s := service.New(store)
	_, err := s.Do(t.Context(), leadership.Configure{Election: "jobs", Config: leadership.Config{Ballot: p}})
	require.NoError(t, err)
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
	_, err := s.Acquire(t.Context(), request("bob", 2))
	require.ErrorIs(t, err, leadership.LeaseHeld)
	store.snap.Now = store.snap.Now.Add(leadership.DefaultWindow)
	store.aborted = &free
	_, err = s.Acquire(t.Context(), request("ann", 1))
	assert.ErrorIs(t, err, leadership.LeaseHeld)
	var e *leadership.Error
	if _, err := s.Acquire(t.Context(), request("ann", 1)); !errors.As(err, &e) || e.Reason != leadership.ReasonOutranked {
		t.Errorf("got %v", err)
	}
}

// Who of the electorate is present is asked for before the rule decides: once more if the policy
// was not known.
func TestNoMemberIsAskedForWithinATransaction(t *testing.T) {
	t.Parallel()
	policy := byPriority
	policy.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "cy")}
	for _, c := range []struct {
		known leadership.Names
		want  int // transactions
	}{{policy.Quorum.Electorate, 1}, {"", 2}, {leadership.NewNames("ann", "bob"), 2}} {
		store, s := electing(t, policy)
		r := request("ann", 1)
		r.InLine.Quorum.Electorate = c.known
		r.InLine.Present = func(id leadership.CandidateID) bool {
			assert.False(t, store.deciding, "%s is asked for within a transaction", id)
			return id == "bob"
		}
		store.updates = 0
		_, err := s.Acquire(t.Context(), r)
		require.ErrorIs(t, err, leadership.LeaseHeld)
		if got := store.snap.Record.Bids(); len(got) != 1 || got[0].Present != 0b011 || store.updates != c.want {
			t.Errorf("with %q known, after %d transactions: %+v", c.known, store.updates, got)
		}
	}
}
