package telemetry_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/leadership/telemetry/telemetrytest"
	"regent/leadership/wire"
	"regent/store/memory"
)

// ballot sets who should lead an election.
func ballot(w *telemetrytest.Fixture, e leadership.Election, p leadership.BallotPolicy) {
	w.Helper()
	c := leadership.Configure{Config: leadership.Config{Ballot: p}}
	_, err := w.Service.Do(w.Context(), c.In(e))
	require.NoError(w, err)
}

// bid asks for the lease without waiting, and returns why it was refused; "" if it was granted.
func bid(w *telemetrytest.Fixture, e leadership.Election, c leadership.CandidateID, priority int64) leadership.Reason {
	w.Helper()
	r := leadership.AcquireRequest{Election: e, CandidateID: c, Candidacy: leadership.Candidacy{Priority: priority}}
	_, err := w.Service.Acquire(w.Context(), r)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok {
		return refusal.Reason
	}
	require.NoError(w, err)
	return ""
}

func TestABallotIsTimedFromItsFirstBidToItsGrantAndEachBidIsCounted(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		ballot(w, "jobs", leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
		before := w.Read()
		for _, c := range []struct {
			id       leadership.CandidateID
			priority int64
			reason   leadership.Reason
		}{
			{"ann", 1, leadership.ReasonBallot},
			{"bob", 3, leadership.ReasonBallot},
			{"cy", 2, leadership.ReasonOutranked},
			{"bob", 3, leadership.ReasonBallot},    // it says what it has said
			{"dan", 0, leadership.ReasonOutranked}, // enough are better
		} {
			if why := bid(w, "jobs", c.id, c.priority); why != c.reason {
				w.Errorf("%s is refused for %q, want %q", c.id, why, c.reason)
			}
		}
		w.Settle(400 * time.Millisecond)
		require.Empty(w, bid(w, "jobs", "bob", 3), "bob is refused")
		want(w, w.Read().Since(before), map[string]float64{
			"regent.ballots.bids": 3, "regent.ballots.duration:count": 1, "regent.ballots.duration:sum": 0.4,
			"regent.leadership.changes{type=acquired}": 1, "regent.elections{state=held}": 1, "regent.elections{state=vacant}": -1,
			"regent.lease.contention{reason=ballot}": 3, "regent.lease.contention{reason=outranked}": 2,
			"regent.lease.operations{op=acquire,outcome=lease_held}": 5, "regent.lease.operations{op=acquire,outcome=ok}": 1,
		})
		inCatalogue(w)
	})
}

func TestABidThatIsTakenBackIsNoBid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		w := telemetrytest.On(t, store)
		ballot(w, "jobs", leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
		before := w.Read()
		bid(w, "jobs", "ann", 1)
		bid(w, "jobs", "bob", 2)
		for _, gone := range []leadership.CandidateID{"ann", "bob"} {
			_, err := service.New(w.Metrics.Store(store)).Do(t.Context(), leadership.Withdraw{Election: "jobs", CandidateID: gone})
			require.NoError(t, err)
		}
		assert.EqualValues(t, 2, w.Read().Since(before)["regent.ballots.bids"], "bids")
	})
}

func TestATermThatEndsForABetterCandidateIsAPreemption(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		ballot(w, "jobs", leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Preempt: true})
		bid(w, "jobs", "ann", 1)
		w.Settle(time.Second)
		bid(w, "jobs", "ann", 1)
		before := w.Read()
		bid(w, "jobs", "bob", 2)
		bid(w, "jobs", "bob", 2)
		want(w, w.Read().Since(before), map[string]float64{
			"regent.leadership.preemptions": 1, "regent.leadership.changes{type=handingOver}": 1,
			"regent.lease.operations{op=acquire,outcome=lease_held}": 2, "regent.lease.contention{reason=held}": 2,
		})
		w.Settle(leadership.DefaultLeaseDuration + 2*time.Second)
		values(w, "at the end", w.Read().Since(before), map[string]float64{
			"regent.leadership.preemptions": 1, "regent.leadership.terms.limited{because=handOver}": 1,
		})
		inCatalogue(w)
	})
}

// join makes a member of an election for a minute.
func join(w *telemetrytest.Fixture, e leadership.Election, c leadership.CandidateID, role leadership.Role, seen leadership.Token) {
	w.Helper()
	r := leadership.JoinRequest{Election: e, CandidateID: c, Role: role, TTL: time.Minute, SeenToken: seen}
	_, err := w.Service.Join(w.Context(), r)
	require.NoError(w, err)
}

func TestMembersAreCountedByRoleWhileTheyAreHere(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		before := w.Read()
		values(w, "without members", before, map[string]float64{"regent.elections.participation": 1, "regent.members{role=follower}": 0})
		w.Lead("jobs", "ann")
		go w.Acquire("jobs", "bob", 20*time.Second)
		join(w, "jobs", "flo", leadership.RoleFollower, 1)
		join(w, "jobs", "fox", leadership.RoleFollower, 1)
		join(w, "jobs", "wes", leadership.RoleWorker, 0)
		join(w, "jobs", "wit", leadership.RoleWitness, 0)
		w.Settle(2 * time.Second)
		values(w, "while they are here", w.Read(), map[string]float64{
			"regent.members{role=candidate}": 1, "regent.members{role=follower}": 2, "regent.members{role=worker}": 1, "regent.members{role=witness}": 1,
		})
		inCatalogue(w)
		w.Settle(2 * time.Minute)
		values(w, "once they have gone", w.Read(), map[string]float64{
			"regent.members{role=candidate}": 0, "regent.members{role=follower}": 0, "regent.members{role=worker}": 0, "regent.members{role=witness}": 0,
		})
	})
}

// quorum lets ann lead an election whose electorate is ann, wit and bob, the first two of whom are
// present.
func quorum(w *telemetrytest.Fixture, e leadership.Election) leadership.LeaseRequest {
	w.Helper()
	ballot(w, e, leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "wit")}})
	join(w, e, "wit", leadership.RoleWitness, 0)
	lease, err := w.Acquire(e, "ann", 10*time.Second)
	require.NoError(w, err)
	return lease
}

func TestWaitsForAcknowledgementsAreCountedWhileTheyLastAndAreNoWatchers(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		before := w.Read()
		row := wire.VerbAcknowledgement.Row()
		done, err := w.Metrics.Enter(w.Context(), instance.Op{Row: &row, Election: "jobs", Waits: true})
		require.NoError(w, err)
		want(w, w.Read().Since(before), map[string]float64{"regent.acknowledgements.waiting": 1})
		done(nil)
		want(w, w.Read().Since(before), map[string]float64{})
	})
}
