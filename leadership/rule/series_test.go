package rule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/rule"
)

func releasing(outcome leadership.Outcome, note string) decision {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.Release{LeaseRequest: annsLease(s).Request(), Outcome: outcome, Note: note})
	}
}

func seriesHeld(t *testing.T, p leadership.SeriesPolicy) rule.Snapshot {
	t.Helper()
	return limitedHeld(t, leadership.TermPolicy{Series: p, Cooldown: time.Minute})
}

func TestAnElectionIsParkedByFailedTermsUntilAnOperatorApproves(t *testing.T) {
	s := seriesHeld(t, leadership.SeriesPolicy{Failures: 3, Within: time.Hour})
	s, events := playEvents(t, s, time.Second, releasing(leadership.OutcomeFailed, "exit status 2"))
	if e := events[0]; len(events) != 1 || e.Type != leadership.EventReleased || e.Reason != "exit status 2" || e.Detail != `{"outcome":"failed"}` {
		t.Errorf("a failed term: %+v", events)
	}
	requireNothing(t, "its release, however late", s, func(s rule.Snapshot) (rule.Change, error) {
		lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1}
		return rule.Apply(s, leadership.Release{LeaseRequest: lease, Outcome: leadership.OutcomeFailed})
	})
	for _, outcome := range []leadership.Outcome{leadership.OutcomeDone, leadership.OutcomeStopped, ""} {
		s = play(t, play(t, s, 0, by("ann")), time.Second, releasing(outcome, ""))
	}
	s = play(t, s, 0, by("ann"))
	s = play(t, s, time.Minute, rule.Expire) // its leader has vanished
	s = play(t, s, 0, by("ann"))
	s, events = playEvents(t, s, time.Second, releasing(leadership.OutcomeFailed, ""))
	why := "3 terms have failed within 1h, the last with fencing token 6"
	if e := events[len(events)-1]; len(events) != 2 || e.Type != leadership.EventParked || e.Reason != why || e.Detail != `{"failures":3,"withinMs":3600000}` {
		t.Fatalf("the third failure: %+v", events)
	}
	for _, who := range []leadership.CandidateID{"ann", "bob"} {
		assert.Equal(t, leadership.ReasonParked, refusal(by(who), at(s, s.Now.Add(100*time.Hour))), "%s, days later", who)
	}
	if x := rule.Explain(s, "bob"); len(x.Causes) != 1 || x.Causes[0].Code != leadership.ReasonParked || x.Causes[0].Because != why {
		t.Errorf("it is explained by %+v", x.Causes)
	}
	_, err := approve("olga@x", 5, 0, false)(s)
	assert.ErrorIs(t, err, leadership.TokenStale, "an approval of an earlier term")
	s = play(t, s, 0, approve("olga@x", 6, 0, false))
	requireNothing(t, "the approval again", s, approve("olga@x", 6, 0, false))
	for range 2 { // the count begins anew
		s = play(t, play(t, s, 0, by("ann")), time.Second, releasing(leadership.OutcomeFailed, ""))
	}
	assert.EqualValues(t, "<nil>", refusal(by("bob"), s), "after two failures more")
	s = play(t, s, time.Hour, by("ann"))
	if s, events = playEvents(t, s, time.Second, releasing(leadership.OutcomeFailed, "")); len(events) != 1 {
		t.Errorf("failures of more than an hour ago still count: %+v", events)
	}
}

func TestAsManyFailuresAsThereMayBePark(t *testing.T) {
	s := seriesHeld(t, leadership.SeriesPolicy{Failures: leadership.MaxFailures, Within: time.Hour})
	for range leadership.MaxFailures - 1 {
		s = play(t, play(t, s, time.Second, releasing(leadership.OutcomeFailed, "")), 0, by("ann"))
	}
	if s = play(t, s, time.Second, releasing(leadership.OutcomeFailed, "")); refusal(by("bob"), s) != leadership.ReasonParked {
		t.Errorf("after %d failures: %v", leadership.MaxFailures, refusal(by("bob"), s))
	}
}

// An operator that approves of a leader has not looked at why the election is parked.
func TestAnApprovalOfATermDoesNotUnpark(t *testing.T) {
	p := leadership.TermPolicy{Series: leadership.SeriesPolicy{Failures: 1, Within: time.Hour}, Approval: leadership.ApprovalPolicy{Every: time.Hour, Need: 2}}
	s := play(t, limitedHeld(t, p), time.Second, approve("ann@x", 1, 0, false))
	over := at(s, s.Now.Add(time.Minute)) // its end is not recorded yet
	_, err := approve("bob@x", 1, 0, false)(over)
	assert.ErrorIs(t, err, leadership.TokenStale, "an approval that comes after the end")
	s = play(t, over, 0, rule.Expire)
	if s = play(t, s, 0, approve("bob@x", 1, 0, false)); refusal(by("cy"), s) != leadership.ReasonParked {
		t.Errorf("the approval before the end counts: %v", refusal(by("cy"), s))
	}
	if s = play(t, s, 0, approve("cy@x", 1, 0, false)); refusal(by("cy"), s) != "<nil>" {
		t.Errorf("after two: %v", refusal(by("cy"), s))
	}
}

func TestATripAndALackOfProgressAreFailures(t *testing.T) {
	p := leadership.TermPolicy{Series: leadership.SeriesPolicy{Failures: 1, Within: time.Hour}, Budget: leadership.Counters{Tasks: 1}, StuckAfter: 30 * time.Second}
	for name, end := range map[string]func(s rule.Snapshot) (rule.Snapshot, []leadership.Event){
		"over the budget": func(s rule.Snapshot) (rule.Snapshot, []leadership.Event) {
			return playEvents(t, s, time.Second, reporting(t, 1, `{"tasks":2}`))
		},
		"no progress": func(s rule.Snapshot) (rule.Snapshot, []leadership.Event) {
			s.Record.HeartbeatAt = noon.Add(25 * time.Second)
			return playEvents(t, s, time.Minute, rule.Expire)
		},
		"released just before": func(s rule.Snapshot) (rule.Snapshot, []leadership.Event) {
			s.Record.HeartbeatAt = noon.Add(25 * time.Second)
			return playEvents(t, s, 28*time.Second, released)
		},
	} {
		s, events := end(limitedHeld(t, p))
		if n := len(events); n != 2 || events[1].Type != leadership.EventParked || refusal(by("bob"), at(s, s.Now.Add(time.Hour))) != leadership.ReasonParked {
			t.Errorf("%s: %+v", name, events)
		}
	}
	for name, end := range map[string]decision{
		"an eviction": ordered(leadership.Order{Kind: leadership.OrderEvict, Token: 1}),
		"a drain":     ordered(leadership.Order{Kind: leadership.OrderPause, Mode: leadership.PauseDrain, For: time.Second}),
	} {
		s := play(t, limitedHeld(t, p), time.Second, end)
		if s = play(t, s, time.Minute, rule.Expire); refusal(by("bob"), s) != "<nil>" {
			t.Errorf("%s counts as a failure: %v", name, refusal(by("bob"), s))
		}
	}
}

func TestTheTermsOfASeriesShareABudget(t *testing.T) {
	s := seriesHeld(t, leadership.SeriesPolicy{Budget: leadership.Counters{TokensUsed: 100}, BudgetWithin: 16 * time.Minute})
	for token := leadership.Token(1); token <= 3; token++ {
		s = play(t, s, time.Second, reporting(t, token, `{"tokensUsed":30}`))
		end := released
		if token == 2 {
			_, err := unlock(s, "")
			end = func(s rule.Snapshot) (rule.Change, error) { return unlock(s, sentence(err)) }
		}
		s = play(t, play(t, s, 0, end), time.Minute, by("ann"))
	}
	s = play(t, s, time.Second, reporting(t, 4, `{"tokensUsed":10}`))
	s, events := playEvents(t, s, time.Second, reporting(t, 4, `{"tokensUsed":11}`))
	why := "tokensUsed is 101, and its budget is 100 for all terms within 16m"
	if len(events) != 2 || events[0].Type != leadership.EventDeposed || events[1].Type != leadership.EventParked || events[1].Reason != why {
		t.Fatalf("beyond the budget: %+v", events)
	}
	if e := events[1]; e.Detail != `{"budget":100,"counter":"tokensUsed","value":101,"withinMs":960000}` {
		t.Errorf("its detail is %s", e.Detail)
	}
	s = at(s, s.Now.Add(time.Minute))
	assert.Equal(t, leadership.ReasonParked, refusal(by("ann"), s), "the candidate")
	s = play(t, s, 0, approve("olga@x", 4, 0, false))
	s = play(t, play(t, s, 0, by("ann")), time.Second, reporting(t, 5, `{"tokensUsed":100}`))
	s = play(t, play(t, s, 0, released), 17*time.Minute, by("ann"))
	if s = play(t, s, time.Second, reporting(t, 6, `{"tokensUsed":100}`)); !s.Live() {
		t.Error("what was used long ago still counts")
	}
}

func TestASeriesIsRememberedInFewSteps(t *testing.T) {
	s := seriesHeld(t, leadership.SeriesPolicy{Failures: 16, Within: time.Hour, Budget: leadership.Counters{Calls: 1 << 52}, BudgetWithin: time.Hour})
	for token := leadership.Token(1); token <= 200; token++ {
		s = play(t, s, time.Second, reporting(t, token, fmt.Sprintf(`{"calls":%d}`, token)))
		s = play(t, play(t, s, 5*time.Second, released), 30*time.Second, by("ann"))
	}
	if n := len(s.Record.Standing.Series.Spent); n > 17*80 {
		t.Errorf("what the terms have used takes %d bytes", n)
	}
	s = play(t, s, 0, releasing(leadership.OutcomeFailed, ""))
	if s = play(t, s, 0, limits(leadership.TermPolicy{})); s.Record.Standing.Series.Spent != "" || s.Record.Standing.Series.Failed != "" {
		t.Errorf("without a policy it remembers %+v", s.Record.Standing.Series)
	}
}

func TestAParkedElectionIsFreeOnceItHasNoSeries(t *testing.T) {
	s := seriesHeld(t, leadership.SeriesPolicy{Failures: 1, Within: time.Hour})
	s = play(t, s, time.Second, releasing(leadership.OutcomeFailed, ""))
	if other := play(t, s, 0, limits(leadership.TermPolicy{})); refusal(by("bob"), other) != "<nil>" {
		t.Errorf("without a policy: %v", refusal(by("bob"), other))
	}
	if other := play(t, s, 0, limits(leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Hour}})); refusal(by("bob"), other) != "<nil>" {
		t.Errorf("with approvals: %v", refusal(by("bob"), other))
	}
	if other := play(t, s, 0, limits(leadership.TermPolicy{Series: leadership.SeriesPolicy{Failures: 9, Within: time.Hour}})); refusal(by("bob"), other) != leadership.ReasonParked {
		t.Errorf("with another one: %v", refusal(by("bob"), other))
	}
}

func TestAStepDownAtTheEndOfABudgetParks(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{Series: leadership.SeriesPolicy{Budget: leadership.Counters{Tasks: 1}, BudgetWithin: time.Hour}, OnTrip: leadership.TripNotify})
	s = play(t, s, time.Second, reporting(t, 1, `{"tasks":2}`))
	_, events := playEvents(t, s, time.Second, func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.StepDown{LeaseRequest: annsLease(s).Request(), Reason: "tired", For: time.Minute})
	})
	if len(events) != 2 || events[0].Reason != "tired" || events[1].Type != leadership.EventParked {
		t.Errorf("got %+v", events)
	}
}
