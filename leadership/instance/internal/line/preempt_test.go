package line_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
)

var preempting = leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true}

// rules makes a candidate with that priority lead, through this instance.
func (i *instance) rules(c leadership.CandidateID, priority int64) leadership.Grant {
	i.Helper()
	g, err := i.Service.Acquire(i.Context(), rated(c, priority))
	require.NoError(i, err)
	i.learns(g.Lease)
	return g
}

// challenger is who the term of the present leader ends for.
func (i *instance) challenger() leadership.CandidateID {
	i.Helper()
	l, err := i.Get(i.Context(), jobs)
	require.NoError(i, err)
	return l.Challenger
}

func (i *instance) wantsChallenger(want leadership.CandidateID, when string) {
	i.Helper()
	assert.EqualValues(i, want, i.challenger(), "%s: the leader is challenged by", when)
}

func TestABetterCandidateChallengesTheLeaderOnce(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.elects(preempting)
		ann := i.rules("ann", 5)
		i.waits(rated("low", 1))
		i.wants(1, "as the line begins")
		i.waits(rated("lower", 0))
		i.wants(0, "for one that is not the best of the line")
		i.waits(rated("middle", 3))
		i.wants(1, "for a new best of the line")
		i.renews(ann)
		time.Sleep(lease / 3)
		i.renews(ann)
		i.wants(0, "while the leader renews")
		i.wantsChallenger("", "of worse candidates")
		challenged := time.Now()
		bob := i.waits(rated("bob", 9))
		i.wants(1, "for a better candidate")
		i.wantsChallenger("bob", "of a better one")
		time.Sleep(lease / 3)
		i.renews(ann)
		time.Sleep(lease / 3)
		i.renews(ann)
		i.wants(0, "while the term goes on to its end")
		bob.leads()
		if took := bob.ended.Sub(challenged); took < lease || took > lease+guard+100*time.Millisecond {
			t.Errorf("bob leads after %v, want the end that was promised", took)
		}
		i.wants(1, "for the grant")
	})
}

func TestALeaderIsSafeForTheShortestTerm(t *testing.T) {
	const safe = 3 * lease
	alone(t, func(t *testing.T, i *instance) {
		policy := preempting
		policy.MinTerm = safe
		i.elects(policy)
		ann := i.rules("ann", 5)
		bob := i.waits(rated("bob", 9))
		i.wants(1, "as the line begins")
		for now := time.Duration(0); now < safe-lease/3; now += lease / 3 {
			time.Sleep(lease / 3)
			i.renews(ann)
			i.wants(0, "while the leader is safe")
			i.wantsChallenger("", "while the leader is safe")
		}
		time.Sleep(lease/3 - time.Millisecond)
		i.waits(rated("cy", 99))
		i.wants(0, "while the leader is safe")
		time.Sleep(10 * time.Millisecond)
		i.wants(1, "when the leader is not safe any more")
		i.wantsChallenger("cy", "then")
		bob.waiting("for the end of the term")
	})
}

func TestAChallengerThatGoesTakesItsChallengeWithIt(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.elects(preempting)
		ann := i.rules("ann", 5)
		i.waits(rated("low", 1))
		bob := i.waits(rated("bob", 9))
		i.wantsChallenger("bob", "as it comes")
		i.called()
		bob.cancel()
		synctest.Wait()
		i.wantsChallenger("", "when it has gone")
		if n := i.withdrawn.Load(); n != 0 {
			t.Errorf("withdrawn by %d calls of its own, want none", n)
		}
		i.wants(1, "for the next best, which takes it back")
		for range 6 {
			time.Sleep(lease / 3)
			i.renews(ann)
		}
		i.wants(0, "while the leader goes on")
	})
}

func TestABetterCandidateElsewhereTriesWhenAChallengerHasGone(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		i.elects(preempting)
		ann := i.rules("ann", 5)
		bob := i.waits(rated("bob", 9))
		time.Sleep(time.Second)
		other.waits(rated("cy", 8))
		i.wantsChallenger("bob", "before")
		other.wants(1, "as its line begins")
		time.Sleep(lease/3 - time.Second)
		i.renews(ann)
		bob.cancel()
		time.Sleep(50 * time.Millisecond)
		i.wantsChallenger("cy", "after")
		other.wants(1, "after the challenger has gone")
	})
}

// It may have been done: so it is taken back like one that was.
func TestAChallengeOfUnknownOutcomeWhoseCandidateHasGoneIsTakenBack(t *testing.T) {
	for name, done := range map[string]bool{"done": true, "not done": false} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, i *instance) {
				i.elects(preempting)
				ann := i.rules("ann", 5)
				i.waits(rated("low", 1))
				i.called()
				var bob *waiter
				begun := make(chan struct{})
				i.hooks(once(func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
					if done {
						ask(ctx, r)
					}
					<-begun
					bob.cancel()
					return leadership.Grant{}, leadership.OutcomeUnknown
				}))
				bob = i.begins(rated("bob", 9))
				close(begun)
				time.Sleep(time.Second)
				i.wantsChallenger("", "when the challenger has gone")
				if n := i.called(); n > 3 {
					t.Errorf("the store was asked %d times, want for the challenge and once or twice to take it back", n)
				}
				for range 4 {
					time.Sleep(lease / 3)
					i.renews(ann)
				}
				i.wants(0, "while the leader goes on")
			})
		})
	}
}

func TestACandidateThatMayNotPreemptForWantOfMembersTriesAgain(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		present := false
		i := w.instance(func(c *line.Config) {
			c.Present = func(leadership.Election, leadership.CandidateID) bool { return present }
		})
		i.elects(preempting)
		ann := i.rules("ann", 5)
		policy := preempting
		policy.Window, policy.Quorum.Electorate = 0, leadership.NewNames("zoe")
		i.elects(policy)
		i.waits(rated("bob", 9))
		i.wants(1, "as the line begins")
		i.wantsChallenger("", "while no member is present")
		present = true
		for range 3 {
			time.Sleep(lease / 3)
			i.renews(ann)
		}
		i.wants(1, "again")
		i.wantsChallenger("bob", "once a member is present")
	})
}

// It may have been made, and ends with the term. The lease is locked from then on.
func TestAChallengeThatEndedWithItsTermIsNotWithdrawnAgainAndAgain(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.elects(preempting)
		i.rules("ann", 5)
		_, err := i.Do(t.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{Ballot: preempting, LockDelay: lease}})
		require.NoError(t, err)
		i.waits(rated("low", 1))
		i.called()
		lost := once(func(context.Context, leadership.AcquireRequest, acquire) (leadership.Grant, error) {
			time.Sleep(lease)
			return leadership.Grant{}, leadership.OutcomeUnknown
		})
		i.hooks(func(ctx context.Context, r leadership.AcquireRequest, ask acquire) (leadership.Grant, error) {
			time.Sleep(10 * time.Millisecond) // an answer takes a while, so that time goes on
			return lost(ctx, r, ask)
		})
		bob := i.begins(rated("bob", 9))
		time.Sleep(lease)
		bob.cancel()
		time.Sleep(lease / 2)
		if n := i.called(); n > 5 {
			t.Errorf("the store was asked %d times, want for the challenge and then once or twice", n)
		}
	})
}
