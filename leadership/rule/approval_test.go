package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/rule"
)

func approve(actor string, token leadership.Token, d time.Duration, epoch bool) decision {
	return ordered(leadership.Order{Kind: leadership.OrderApprove, Token: token, For: d, NewEpoch: epoch, Actor: actor, Reason: "fine"})
}

func approvedHeld(t *testing.T, need int) rule.Snapshot {
	t.Helper()
	return limitedHeld(t, leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Hour, Need: need}})
}

func requireNothing(t *testing.T, what string, s rule.Snapshot, rule decision) {
	t.Helper()
	if ch, err := rule(s); err != nil || !ch.Empty() {
		t.Errorf("%s: %+v, %v; want nothing to be written", what, ch.Events, err)
	}
}

func TestTwoPrincipalsApproveAndOneOfThemTwiceCountsOnce(t *testing.T) {
	s := approvedHeld(t, 2)
	s.Record.HeartbeatAt = noon.Add(30 * time.Minute)
	s, events := playEvents(t, at(s, s.Record.HeartbeatAt), 0, approve("ann@x", 1, 0, false))
	if len(events) != 1 || events[0].Detail != `{"have":1,"need":2}` || events[0].Actor != "ann@x" || !s.Record.EndsBy.Equal(noon.Add(time.Hour)) {
		t.Fatalf("one of two: %+v, until %v", events, s.Record.EndsBy)
	}
	requireNothing(t, "the same again", s, approve("ann@x", 1, 0, false))
	_, err := approve("ann@x", 1, 0, true)(s)
	assert.ErrorIs(t, err, leadership.InvalidArgument, "the same principal, now with a new epoch")
	requireNothing(t, "the same principal with other words", s, ordered(leadership.Order{Kind: leadership.OrderApprove, Token: 1, Actor: "ann@x", Reason: "really"}))
	s, events = playEvents(t, s, time.Second, approve("bob@x", 1, 0, false))
	if !s.Record.EndsBy.Equal(s.Now.Add(time.Hour)) || events[0].Detail != `{"have":2,"need":2}` {
		t.Fatalf("two of two: until %v, %+v", s.Record.EndsBy, events)
	}
	requireNothing(t, "the first, after a lost reply", s, approve("ann@x", 1, 0, false))
	requireNothing(t, "the second, after a lost reply", s, approve("bob@x", 1, 0, false))
	s = play(t, s, time.Second, approve("cy@x", 1, 0, false)) // begins the next round
	requireNothing(t, "the first, into the next round", s, approve("ann@x", 1, 0, false))
	requireNothing(t, "the second, into the next round", s, approve("bob@x", 1, 0, false))
	s = at(s, s.Now.Add(59*time.Minute))
	s.Record.HeartbeatAt = s.Now
	for _, who := range []string{"ann@x", "bob@x", "cy@x"} {
		requireNothing(t, who+", however late", s, approve(who, 1, 0, false))
	}
	_, err = approve("cy@x", 1, 0, false)(play(t, s, 0, released))
	assert.ErrorIs(t, err, leadership.TokenStale, "an approval that was counted, after the term")
	anew := leadership.Order{Kind: leadership.OrderApprove, Token: 1, Actor: "ann@x", Reason: "fine", IfRevision: s.Record.Revision}
	if s = play(t, s, 0, ordered(anew)); !s.Record.EndsBy.Equal(s.Now.Add(time.Hour)) {
		t.Errorf("the same words at another revision: until %v", s.Record.EndsBy)
	}
	requireNothing(t, "that again", s, ordered(anew))
}

func TestTheShortestTimeThatIsApprovedCounts(t *testing.T) {
	s := approvedHeld(t, 2)
	ask := func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.RequestApproval{LeaseRequest: annsLease(s).Request(), Note: "may I"})
	}
	asked, events := playEvents(t, s, 0, ask)
	if len(events) != 1 || events[0].Detail != `{"endsBy":"2026-01-01T13:00:00Z"}` {
		t.Errorf("asked: %+v", events)
	}
	requireNothing(t, "asked again", asked, ask)
	s = play(t, s, 0, approve("ann@x", 1, 2*time.Hour, false))
	s = play(t, s, 0, approve("bob@x", 1, 30*24*time.Hour, false))
	if !s.Record.EndsBy.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("until %v", s.Record.EndsBy)
	}
}

func TestANewEpochIsAskedForOnceMoreThanAnApproval(t *testing.T) {
	s := approvedHeld(t, 1)
	ask := func(l rule.Renewal, epoch bool) decision {
		return applies(leadership.RequestApproval{LeaseRequest: l.Request(), Note: "a new task", NewEpoch: epoch})
	}
	plain, _ := playEvents(t, s, 0, ask(annsLease(s), false))
	asked, events := playEvents(t, s, 0, ask(annsLease(s), true))
	if len(events) != 1 || events[0].Detail != `{"endsBy":"2026-01-01T13:00:00Z","newEpoch":true}` || events[0].Reason != "a new task" {
		t.Errorf("asked: %+v", events)
	}
	requireNothing(t, "asked again without", asked, ask(annsLease(s), false))
	later, events := playEvents(t, plain, 0, ask(annsLease(s), true))
	if len(events) != 1 || !events[0].ReadDetail().NewEpoch {
		t.Errorf("asked for a new epoch later: %+v", events)
	}
	requireNothing(t, "that again", later, ask(annsLease(s), true))
	if s = play(t, asked, 0, approve("op", 1, 0, false)); s.Record.Token != 1 {
		t.Errorf("approved without a new epoch: token %d", s.Record.Token)
	}
}

func TestOnlyTheLeaderAsksForAnApproval(t *testing.T) {
	s := approvedHeld(t, 1)
	former := annsLease(s)
	other, late := former, former
	other.KeyHash, late.Token = hash('b'), 2
	anew := play(t, play(t, s, 0, released), 0, by("ann"))
	for what, c := range map[string]struct {
		s rule.Snapshot
		l rule.Renewal
	}{
		"with another key": {s, other}, "with a token that was never granted": {s, late},
		"after a release": {play(t, s, 0, released), former}, "once another leads": {play(t, play(t, s, 0, released), 0, by("bob")), former},
		"under the token of its term before": {anew, former}, "after its end": {at(s, noon.Add(48*time.Hour)), former},
	} {
		ch, err := rule.Apply(c.s, leadership.RequestApproval{LeaseRequest: c.l.Request(), Note: "may I"})
		if !errors.Is(err, leadership.LeaseLost) || !ch.Empty() {
			t.Errorf("%s: %+v, %v", what, ch.Events, err)
		}
	}
}

func TestLeaderThatReleasesAtItsDeadlineLeavesTheApprovalToWaitFor(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 15 * time.Second}})
	s = play(t, s, 9*time.Second, reporting(t, 1, `{"progress":1}`))
	early := play(t, at(s, noon.Add(9*time.Second)), 0, released)
	assert.EqualValues(t, "<nil>", refusal(by("ann"), early), "after a release long before the end")
	late, events := playEvents(t, at(s, noon.Add(10*time.Second)), 0, released) // half a lease is left
	if e := events[0]; e.Type != leadership.EventReleased || e.Detail != `{"endsBecause":"approval"}` {
		t.Errorf("got %+v", e)
	}
	requireNothing(t, "released again", late, released)
	assert.Equal(t, leadership.ReasonApproval, refusal(by("ann"), late), "the next grant")
	other := late
	for _, rule := range []decision{limits(leadership.TermPolicy{}), by("bob"), limits(s.Record.Policy.Term), released} {
		other = play(t, other, 0, rule)
	}
	assert.EqualValues(t, "<nil>", refusal(by("ann"), other), "a term that needed none has followed")
	if s = play(t, late, 0, approve("ann@x", 1, 0, false)); refusal(by("bob"), s) != "<nil>" {
		t.Errorf("after the approval: %v", refusal(by("bob"), s))
	}
}

func TestNewEpochRaisesTheTokenInTheSameCommitAndTheOldOneHearsOfIt(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{})
	s, events := playEvents(t, s, 3*time.Second, approve("op", 1, 0, true))
	r := s.Record
	if len(events) != 2 || events[0].Token != 1 || events[1].Type != leadership.EventEpoch || events[1].Token != 2 || events[1].LeaderID != "ann" ||
		events[1].Actor != "op" || events[1].Reason != "fine" || events[1].Detail != `{"from":1}` || r.Token != 2 || r.KeyHash != hash('a') || !r.HeartbeatAt.Equal(s.Now) {
		t.Fatalf("got %+v, %+v", events, r)
	}
	if l := s.Lease(); l.CreatedAt != noon.Unix() || l.PreviousEnd != leadership.EndsEpoch {
		t.Errorf("the term before ended by %q, and the election is of %d", l.PreviousEnd, l.CreatedAt)
	}
	requireNothing(t, "a retry", s, approve("op", 1, 0, true))
	s = play(t, s, 0, approve("op", 2, 0, true))
	for token := leadership.Token(1); token < 3; token++ {
		assert.Equal(t, leadership.ReasonEpoch, refusal(reporting(t, token, `{}`), s), "a renewal with token %d", token)
		requireNothing(t, "a retry later", s, approve("op", token, 0, true))
		requireNothing(t, "another's order for the epoch that there is", s, approve("olga", token, 0, true))
		if _, err := ordered(leadership.Order{Kind: leadership.OrderEvict, Token: token})(s); !errors.Is(err, leadership.TokenStale) || !strings.Contains(err.Error(), "by its fencing token 3") {
			t.Errorf("evicting token %d: %v", token, err)
		}
		lease := rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: token}
		if ch, err := rule.Apply(s, (leadership.Release{LeaseRequest: lease.Request()})); err != nil || ch.Empty() || ch.Record.LeaderID != "" {
			t.Errorf("a release under token %d: %+v, %v", token, ch, err)
		}
		if lease.KeyHash = hash('x'); refusal(func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, lease) }, s) == leadership.ReasonEpoch {
			t.Error("another incarnation hears of the epoch")
		}
	}
	if s = play(t, s, time.Second, by("ann")); s.Record.Token != 3 || len(s.Record.LeaderID) == 0 {
		t.Errorf("acquired again: %+v", s.Record)
	}
	s = play(t, s, time.Minute, by("bob"))
	if got := refusal(reporting(t, 2, `{}`), s); got == leadership.ReasonEpoch {
		t.Error("the epochs of a leader outlive it")
	}
}

func TestAtMostThirtyTwoOverridesStandAndCandidatesTakeHalfOfTheRoom(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{})
	ban := func(i int) leadership.Order {
		return leadership.Order{Kind: leadership.OrderBan, CandidateID: leadership.CandidateID(fmt.Sprintf("c%d", i)), For: time.Minute, Actor: "operator@example.com"}
	}
	for i := range leadership.MaxOverrides {
		s = play(t, s, 0, ordered(ban(i)))
		down := func(s rule.Snapshot) (rule.Change, error) {
			return rule.Apply(s, leadership.StepDown{
				LeaseRequest: rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1}.Request(), Reason: "tired", For: time.Minute,
			})
		}
		if ch, err := down(s); err == nil && ch.Events[0].Detail == "" || (err == nil) != (i < leadership.MaxOverrides/2-1) || err != nil && (!errors.Is(err, leadership.LimitExceeded) || !ch.Empty() || !strings.Contains(err.Error(), "step down without for")) {
			t.Errorf("a candidate steps down where %d stand: %v", i+1, err)
		}
	}
	if ch, err := ordered(ban(99))(s); !errors.Is(err, leadership.LimitExceeded) || !ch.Empty() || !strings.Contains(err.Error(), "lift one first") {
		t.Errorf("one more: %+v, %v", ch, err)
	}
	s = play(t, s, 0, ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "c0", For: time.Hour})) // in the place of the one that stands
	s = play(t, s, 0, ordered(leadership.Order{Kind: leadership.OrderEvict, Token: 1}))
	s = play(t, s, 0, ordered(leadership.Order{Kind: leadership.OrderLift, Override: s.Orders().List()[0].ID}))
	s = play(t, s, 0, ordered(ban(99)))
	assert.EqualValues(t, leadership.MaxOverrides, len(s.Orders().List()), "stand")
	if s = play(t, s, 2*time.Minute, by("bob")); len(s.Record.Standing.Overrides.List()) != 1 {
		t.Errorf("at the next grant %d are kept", len(s.Record.Standing.Overrides.List()))
	}
}

func TestTimeWithoutAnApprovalCountsOverTerms(t *testing.T) {
	const every = time.Minute
	policy := leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: every}}
	pass := func(s rule.Snapshot) rule.Snapshot { // from ann to bob, or back
		to := leadership.CandidateID("bob")
		if s.Record.LeaderID == to {
			to = "ann"
		}
		leader := rule.Renewal{CandidateID: s.Record.LeaderID, KeyHash: s.Record.KeyHash, Token: s.Record.Token}
		next := rule.Renewal{CandidateID: to, KeyHash: hash('x'), Token: s.Record.Token}
		s = play(t, s, 0, applies(leadership.HandOver{LeaseRequest: leader.Request(), To: to, Within: time.Minute}))
		s = play(t, s, 0, applies(leadership.SayReady{LeaseRequest: next.Request()}))
		s = play(t, s, 0, applies(leadership.Yield{LeaseRequest: leader.Request()}))
		return play(t, s, 0, func(s rule.Snapshot) (rule.Change, error) {
			return rule.Acquire(s, rule.AcquireCommand{CandidateID: to, KeyHash: hash('x')})
		})
	}
	for what, next := range map[string]func(rule.Snapshot) rule.Snapshot{
		"released, and acquired again": func(s rule.Snapshot) rule.Snapshot {
			return play(t, play(t, s, 0, released), 0, by("ann"))
		},
		"handed over": pass,
	} {
		s := limitedHeld(t, policy)
		for range 9 {
			s = next(at(s, s.Now.Add(6*time.Second)))
		}
		if r := s.Record; r.EndsBecause != leadership.EndsApproval || r.EndsBy.Before(noon.Add(every)) || r.EndsBy.After(noon.Add(every+time.Millisecond)) {
			t.Errorf("%s nine times: it ends at %v because %q, want without an approval for a minute in all", what, r.EndsBy, r.EndsBecause)
		}
		over := at(s, s.Record.EndsBy.Add(guard))
		assert.Equal(t, leadership.ReasonApproval, refusal(by("cy"), over), "%s: after that", what)
		over = play(t, play(t, over, 0, rule.Expire), 0, ordered(leadership.Order{Kind: leadership.OrderApprove, Token: s.Record.Token}))
		if over = play(t, over, 0, by("cy")); !over.Record.Standing.Ends.Approval.Equal(over.Now.Add(every)) {
			t.Errorf("%s, and approved: until %v", what, over.Record.Standing.Ends.Approval)
		}
	}
}
