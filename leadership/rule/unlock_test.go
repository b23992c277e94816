package rule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// sentence is what the refusal of an unlock asks the operator to repeat; "" if it asks for nothing.
func sentence(err error) string {
	var refusal *leadership.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	_, sentence, _ := strings.Cut(refusal.Detail, "with exactly this acknowledge: ")
	return sentence
}

func unlock(s rule.Snapshot, acknowledge string) (rule.Change, error) {
	return rule.Apply(s, leadership.Unlock{Reason: "the host is gone", Actor: "olga", Acknowledge: acknowledge})
}

func acquireAs(s rule.Snapshot, who byte) (rule.Change, error) {
	return rule.Acquire(s, rule.AcquireCommand{CandidateID: leadership.CandidateID([]byte{who}), KeyHash: hash(who)})
}

// waits are the states in which no lease is granted though none can be released.
func waits(t *testing.T) map[string]rule.Snapshot {
	t.Helper()
	long := held(t, 0)
	long.Record.LeaseDuration = leadership.MaxLeaseDuration

	delayed := held(t, 40*time.Second)
	delayed.Record.Policy.LockDelay = time.Hour
	recorded := delayed
	ch, err := rule.Expire(recorded)
	if err != nil || ch.Empty() {
		t.Fatal(ch, err)
	}
	recorded = apply(recorded, ch)

	both := long
	both.Record.Policy.LockDelay = time.Hour

	forced := long
	for _, rule := range []decision{
		applies(leadership.Delete{Force: true}),
		applies(leadership.Configure{}),
	} {
		ch, err := rule(forced)
		require.NoError(t, err)
		forced = apply(forced, ch)
	}
	return map[string]rule.Snapshot{
		"a lease of 24 h": long, "a lease of 24 h before a lock delay": both, "a lock delay that is not recorded yet": delayed, "a lock delay": recorded, "a lease that was deleted by force": forced,
	}
}

func TestUnlockEndsEachWaitAndTheNextLeaderHasTheNextToken(t *testing.T) {
	t.Parallel()
	for name, s := range waits(t) {
		_, err := acquireAs(s, 'b')
		require.ErrorIs(t, err, leadership.LeaseHeld, "%s: before", name)
		_, err = unlock(s, "")
		ch, err := unlock(s, sentence(err))
		if err != nil || len(ch.Events) == 0 {
			t.Fatalf("%s: %+v, %v", name, ch, err)
		}
		e := ch.Events[len(ch.Events)-1]
		if e.Type != leadership.EventUnlocked || e.Reason != "the host is gone" || e.LeaderID != "" || !strings.Contains(e.Detail, "twoMayBelieveUntil") {
			t.Errorf("%s: the event is %+v", name, e)
		}
		if want := s.Record.LeaderID; s.Live() && e.PreviousLeaderID != want || !s.Live() && e.PreviousLeaderID != "" {
			t.Errorf("%s: the event names %q as the leader before", name, e.PreviousLeaderID)
		}
		after := apply(s, ch)
		assert.NoError(t, rule.Verify(after, rule.Newest{Revision: e.Revision, Token: e.Token}), name)
		if l := after.Lease(); l.State != leadership.Vacant || l.LockedFor != 0 || l.Token != 1 {
			t.Errorf("%s: unlocked, it is %+v", name, l)
		}
		if ch, err := acquireAs(after, 'b'); err != nil || ch.Record.Token != 2 {
			t.Errorf("%s: the next grant: token %d, %v", name, ch.Record.Token, err)
		}
		_, err = rule.Renew(after, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1})
		assert.ErrorIs(t, err, leadership.LeaseLost, "%s: the former leader renews", name)
	}
}

func TestUnlockIsRefusedWithoutTheSentenceOfThisVeryLease(t *testing.T) {
	t.Parallel()
	for name, s := range waits(t) {
		_, err := unlock(s, "")
		var refusal *leadership.Error
		if !errors.As(err, &refusal) || refusal.Code != leadership.LeaseHeld || refusal.Lease == nil || !strings.HasPrefix(sentence(err), "two leaders may believe until 2026-") {
			t.Fatalf("%s: %v", name, err)
		}
		for _, other := range []string{"yes", "two leaders may believe", strings.ToUpper(sentence(err)), sentence(err) + " ", "two leaders may believe until 2126-01-01T12:00:00Z"} {
			if ch, err := unlock(s, other); !errors.Is(err, leadership.LeaseHeld) || !ch.Empty() {
				t.Errorf("%s: acknowledged with %q: %v", name, other, err)
			}
		}
	}
	s := held(t, time.Second)
	_, err := unlock(s, "")
	before := sentence(err)
	ch, err := rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1})
	require.NoError(t, err)
	if _, err := unlock(apply(s, ch), before); !errors.Is(err, leadership.LeaseHeld) || sentence(err) == before {
		t.Errorf("the sentence from before a renewal: %v", err)
	}
}

// The sentence names the instant from which the next lease would be granted without an unlock.
func TestTheSentenceNamesTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	for name, s := range waits(t) {
		_, err := unlock(s, "")
		end, bad := time.Parse(time.RFC3339Nano, strings.TrimPrefix(sentence(err), "two leaders may believe until "))
		if bad != nil {
			t.Fatalf("%s: %v", name, bad)
		}
		s.Now = end.Add(-time.Nanosecond)
		_, err = acquireAs(s, 'b')
		assert.ErrorIs(t, err, leadership.LeaseHeld, "%s: right before", name)
		s.Now = end
		_, err = acquireAs(s, 'b')
		assert.NoError(t, err, "%s: then", name)
	}
}

func TestTheRefusalToUnlockAYieldedLeaseNamesTheSuccessor(t *testing.T) {
	_, err := unlock(yielded(t), "")
	if err == nil || !strings.Contains(err.Error(), `"ann" has yielded it, and "bob" takes it over`) || sentence(err) == "" {
		t.Errorf("refused with %v", err)
	}
}
