package rule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// decision is a rule with its command.
type decision = func(rule.Snapshot) (rule.Change, error)

// applies decides on a command.
func applies(c leadership.Command) decision {
	return func(s rule.Snapshot) (rule.Change, error) { return rule.Apply(s, c) }
}

// limitedHeld is ann's lease of 10 s, granted at noon, under the policy.
func limitedHeld(t *testing.T, p leadership.TermPolicy) rule.Snapshot {
	t.Helper()
	s := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}
	s = play(t, s, 0, applies(leadership.Configure{Config: leadership.Config{LeaseDuration: 10 * time.Second, Term: p}}))
	return play(t, s, 0, by("ann"))
}

// play runs the rule a while later, as a store does, and requires that it is done.
func play(t *testing.T, s rule.Snapshot, later time.Duration, rule decision) rule.Snapshot {
	t.Helper()
	s, _ = playEvents(t, s, later, rule)
	return s
}

func playEvents(t *testing.T, s rule.Snapshot, later time.Duration, decide decision) (rule.Snapshot, []leadership.Event) {
	t.Helper()
	s.Now = s.Now.Add(later)
	ch, carried, err := rule.Codec{}.Decide(s, rule.Carried{}, decide)
	require.NoError(t, err)
	if !ch.Empty() {
		s.Record = ch.Committed(s.Now)
		read := s.Record
		if err := (rule.Codec{}).Decode(&read, carried); err != nil || read != s.Record {
			t.Fatalf("%+v is read back as %+v, %v", s.Record, read, err)
		}
	}
	return s, ch.Events
}

func by(id leadership.CandidateID) decision {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Acquire(s, rule.AcquireCommand{CandidateID: id, KeyHash: hash(id[0])})
	}
}

func ordered(c leadership.Order) decision {
	if c.Reason == "" {
		c.Reason = "because"
	}
	if c.Actor == "" {
		c.Actor = "op"
	}
	return applies(c)
}

// reporting is ann's renewal with a report.
func reporting(t *testing.T, token leadership.Token, report string) decision {
	t.Helper()
	text, err := leadership.ParseReport([]byte(report))
	require.NoError(t, err)
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: token, Report: text})
	}
}

func refusal(rule decision, s rule.Snapshot) leadership.Reason {
	_, err := rule(s)
	var e *leadership.Error
	if !errors.As(err, &e) || e.Detail == "" {
		return leadership.Reason(fmt.Sprint(err))
	}
	return e.Reason
}

// Each rule in each standing order: what a candidate hears, and that the order outlives the rule.
func TestEachRuleObeysEachOrderAndForgetsNone(t *testing.T) {
	const minute = time.Minute
	orders := map[string]leadership.Order{
		"paused":          {Kind: leadership.OrderPause, For: minute},
		"drained":         {Kind: leadership.OrderPause, For: minute, Mode: leadership.PauseDrain},
		"ann banned":      {Kind: leadership.OrderBan, CandidateID: "ann", For: minute},
		"bob banned":      {Kind: leadership.OrderBan, CandidateID: "bob", For: minute},
		"assigned to ann": {Kind: leadership.OrderAssign, CandidateID: "ann", For: minute},
		"assigned to bob": {Kind: leadership.OrderAssign, CandidateID: "bob", For: minute},
		"ann evicted":     {Kind: leadership.OrderEvict, Ban: minute},
		"ann cooling":     {}, // she has tripped
		"approval":        {}, // is awaited
	}
	refused := map[string][2]leadership.Reason{ // of ann and bob, once the election is vacant
		"paused": {"PAUSED", "PAUSED"}, "drained": {"PAUSED", "PAUSED"},
		"ann banned": {"BANNED", ""}, "bob banned": {"", "BANNED"},
		"assigned to ann": {"", "ASSIGNED"}, "assigned to bob": {"ASSIGNED", ""},
		"ann evicted": {"BANNED", ""}, "ann cooling": {"BANNED", ""}, "approval": {"APPROVAL", "APPROVAL"},
	}
	annsLease := rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1}
	ends := map[string]func(*testing.T, rule.Snapshot) rule.Snapshot{
		"released": func(t *testing.T, s rule.Snapshot) rule.Snapshot { return play(t, s, 0, released) },
		"not recorded": func(_ *testing.T, s rule.Snapshot) rule.Snapshot {
			s.Now = s.Now.Add(11 * time.Second)
			return s
		},
		"deleted and recreated": func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			config := s.Record.Policy.Config
			s = play(t, s, 0, deleted)
			return play(t, s, 11*time.Second, applies(leadership.Configure{Config: config}))
		},
		"unlocked": func(t *testing.T, s rule.Snapshot) rule.Snapshot { return play(t, s, 0, unlocked) },
		"carried": func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			to := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: s.Now.Add(24 * time.Hour), Guard: guard}
			to = carried(t, to, s)
			to.Now = to.Now.Add(12 * time.Second)
			return to
		},
		"raised": func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			s = play(t, s, 0, func(s rule.Snapshot) (rule.Change, error) {
				return rule.Raise(s, rule.RaiseCommand{Above: 1000})
			})
			s.Now = s.Now.Add(11 * time.Second)
			return s
		},
	}
	for name, cmd := range orders {
		for end, run := range ends {
			t.Run(name+", "+end, func(t *testing.T) {
				s := limitedHeld(t, leadership.TermPolicy{Cooldown: minute, Budget: leadership.Counters{Tasks: 1}})
				switch name {
				case "ann cooling":
					s = play(t, s, 0, reporting(t, 1, `{"tasks":2}`))
					s.Now = s.Now.Add(11 * time.Second) // to the promised end
				case "approval":
					s = limitedHeld(t, leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Second}})
					s.Now = s.Now.Add(time.Second)
				default:
					s = play(t, s, time.Second, ordered(cmd))
					_, err := rule.Renew(s, annsLease)
					assert.NoError(t, err, "renew")
					_, err = by("ann")(s)
					assert.NoError(t, err, "acquire by the leader")
				}
				s = run(t, s)
				want := refused[name]
				for i, id := range []leadership.CandidateID{"ann", "bob"} {
					_, err := by(id)(s)
					if got := refusal(by(id), s); want[i] != "" && got != want[i] || want[i] == "" && err != nil {
						t.Errorf("acquire by %s: %v, want %q", id, err, want[i])
					}
				}
			})
		}
	}
}

func TestOrderedEndComesAtThePromisedEndAndIsTakenBackByTheOrdersOwnLift(t *testing.T) {
	renew := func(s rule.Snapshot) (rule.Change, error) {
		return rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1})
	}
	drain := ordered(leadership.Order{Kind: leadership.OrderPause, For: time.Minute, Mode: leadership.PauseDrain})
	assign := ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute})
	resume := ordered(leadership.Order{Kind: leadership.OrderResume})
	lift := ordered(leadership.Order{Kind: leadership.OrderLift, Override: "assign-3"})
	evict := ordered(leadership.Order{Kind: leadership.OrderEvict})
	for name, c := range map[string]struct {
		orders  []decision
		because leadership.EndReason
	}{
		"drain":                        {[]decision{drain}, leadership.EndsDrained},
		"drain, resume":                {[]decision{drain, resume}, ""},
		"assign":                       {[]decision{assign}, leadership.EndsHandOver},
		"assign, lift":                 {[]decision{assign, lift}, ""},
		"assign, drain, resume":        {[]decision{assign, drain, resume}, leadership.EndsHandOver},
		"assign, drain, lift":          {[]decision{assign, drain, lift}, leadership.EndsDrained},
		"assign, drain, lift, resume":  {[]decision{assign, drain, lift, resume}, ""},
		"evict":                        {[]decision{evict}, leadership.EndsEvicted},
		"drain, evict, resume":         {[]decision{drain, evict, resume}, leadership.EndsEvicted},
		"evict, drain, resume":         {[]decision{evict, drain, resume}, leadership.EndsEvicted},
		"assign to bob, assign to ann": {[]decision{assign, ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Minute})}, ""},
		"drain, freeze instead":        {[]decision{drain, ordered(leadership.Order{Kind: leadership.OrderPause, For: time.Minute})}, ""},
	} {
		s := limitedHeld(t, leadership.TermPolicy{})
		for _, o := range c.orders {
			var events []leadership.Event
			if s, events = playEvents(t, s, time.Second, o); len(events) != 1 || events[0].Detail == "" {
				t.Errorf("%s: the events are %+v", name, events)
			}
		}
		promised := noon.Add(10 * time.Second)
		if r := s.Record; r.EndsBecause != c.because || c.because != "" && !r.EndsBy.Equal(promised) {
			t.Errorf("%s: it ends by %v because %q, want %v because %q", name, r.EndsBy, r.EndsBecause, promised, c.because)
		}
		s = play(t, s, time.Second, renew)
		if end := s.Record.LeaseEnd(); end.After(promised) != (c.because == "") {
			t.Errorf("%s: renewed, it ends at %v", name, end)
		}
	}
}

func TestATripEndsTheTermAndBarsGrantsUntilThePromisedEndAndTheCandidateForTheCooldown(t *testing.T) {
	const cooldown = time.Minute
	policy := leadership.TermPolicy{
		Budget: leadership.Counters{TokensUsed: 100}, ErrorRate: leadership.ErrorRate{Max: 0.5, Min: 4}, Verdicts: 1, Cooldown: cooldown,
	}
	judge := leadership.Judge{Token: 1, Verdict: leadership.VerdictBad, Evidence: "nonsense", Actor: "v"}
	for name, c := range map[string]struct {
		rule        decision
		why, detail string
	}{
		"over budget": {reporting(t, 1, `{"tokensUsed":101}`), "tokensUsed is 101, and its budget is 100", `{"budget":100,"counter":"tokensUsed","until":"2026-01-01T12:01:03Z","value":101}`},
		"error rate":  {reporting(t, 1, `{"calls":5,"errors":3}`), "3 of 5 calls have failed, and at most 0.5 may", `{"calls":5,"errorRate":0.5,"errors":3,"until":"2026-01-01T12:01:03Z"}`},
		"verdicts": {
			applies(judge),
			"1 verifiers judged its work bad", `{"badVerdicts":1,"until":"2026-01-01T12:01:03Z","verdicts":1}`,
		},
	} {
		s, events := playEvents(t, limitedHeld(t, policy), 3*time.Second, c.rule)
		e := events[len(events)-1]
		if e.Type != leadership.EventDeposed || e.Reason != c.why || e.Detail != c.detail || e.PreviousLeaderID != "ann" || e.LeaderID != "" {
			t.Errorf("%s: got %+v", name, e)
		}
		promised := noon.Add(10 * time.Second)
		_, err := by("bob")(at(s, promised.Add(guard-1)))
		assert.ErrorIs(t, err, leadership.LeaseHeld, "%s: bob is granted before the promised end and the guard", name)
		_, err = by("bob")(at(s, promised.Add(guard)))
		assert.NoError(t, err, "%s: bob after the promised end", name)
		until := noon.Add(3*time.Second + cooldown)
		assert.Equal(t, leadership.ReasonBanned, refusal(by("ann"), at(s, until.Add(-1))), "%s: ann within the cooldown", name)
		_, err = by("ann")(at(s, until))
		assert.NoError(t, err, "%s: ann after the cooldown", name)
		again := reporting(t, 1, `{"tokensUsed":102,"calls":9,"errors":9}`)
		if _, err := again(s); !errors.Is(err, leadership.LeaseLost) || refusal(again, s) != leadership.ReasonDeposed || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: after a lost reply: %v", name, err)
		}
		if ch, err := rule.Apply(s, judge); err != nil || !ch.Empty() {
			t.Errorf("%s: judged again: %+v, %v", name, ch, err)
		}
	}
	for _, fine := range []string{`{"tokensUsed":100}`, `{"calls":3,"errors":3}`, `{"calls":4,"errors":2}`} {
		if s := play(t, limitedHeld(t, policy), time.Second, reporting(t, 1, fine)); s.Record.LeaderID != "ann" {
			t.Errorf("%s trips", fine)
		}
	}
}

func at(s rule.Snapshot, now time.Time) rule.Snapshot { s.Now = now; return s }

func TestAReportIsShownWithItsAge(t *testing.T) {
	s := play(t, limitedHeld(t, leadership.TermPolicy{}), time.Second, reporting(t, 1, `{"tasks":1}`))
	if l := new(at(s, s.Now.Add(3*time.Second))).Lease(); l.Report != `{"tasks":1}` || l.ReportAge != 3*time.Second {
		t.Errorf("%s, %v ago", l.Report, l.ReportAge)
	}
}

func TestATripThatOnlyNotifiesIsToldOnceInATerm(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{Budget: leadership.Counters{Tasks: 1}, OnTrip: leadership.TripNotify, Cooldown: time.Minute})
	for i, want := range []int{1, 0, 0} {
		var events []leadership.Event
		s, events = playEvents(t, s, time.Second, reporting(t, 1, fmt.Sprintf(`{"tasks":%d}`, 2+i)))
		if len(events) != want || want == 1 && events[0].Type != leadership.EventTripped || !s.Live() || !s.Record.HeartbeatAt.Equal(s.Now) {
			t.Errorf("report %d: %+v, %+v", i, events, s.Record)
		}
	}
}

func TestTrippedCandidateLeadsOnProbationAndEachTripDoublesItsCooldownUpToADay(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{Budget: leadership.Counters{Tasks: 1}, Cooldown: 3 * time.Hour})
	long := func(s rule.Snapshot) (rule.Change, error) {
		return rule.Acquire(s, rule.AcquireCommand{CandidateID: "ann", KeyHash: hash('a'), LeaseDuration: time.Hour})
	}
	for i, want := range []time.Duration{3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 24 * time.Hour} {
		s = play(t, s, time.Second, reporting(t, s.Record.Token, `{"tasks":2}`))
		all := s.Orders().List()
		if len(all) != 1 || all[0].Until.Sub(s.Now) != want || all[0].ID != leadership.OverrideID(fmt.Sprintf("cooldown-%d-ann", s.Record.Token)) || all[0].Actor != "policy" {
			t.Fatalf("trip %d: %+v", i+1, all)
		}
		s = play(t, play(t, s, want, long), 0, long) // and again
		require.Equal(t, leadership.ProbationLease, s.Record.LeaseDuration, "on probation the lease")
		if x := rule.Explain(s, "ann"); !x.Leads || len(x.Causes) != 1 || x.Causes[0].Code != leadership.ReasonProbation || x.Causes[0].Left != want {
			t.Errorf("explained as %+v", x)
		}
	}
	forgotten := play(t, play(t, s, 0, reporting(t, s.Record.Token, `{"tasks":2}`)), 2*24*time.Hour, long)
	assert.Equal(t, time.Hour, forgotten.Record.LeaseDuration, "a day after its ban its lease")
	var last []leadership.Event
	for left := 24 * time.Hour; left > 0; left -= 9 * time.Second { // it leads for one cooldown
		s, last = playEvents(t, s, min(9*time.Second, left), reporting(t, s.Record.Token, `{}`))
	}
	if s.Record.LeaseDuration != time.Hour || s.Orders() != "" || len(last) != 1 || last[0].Reason == "" {
		t.Errorf("after its probation: %v, %s, %+v", s.Record.LeaseDuration, s.Orders(), last)
	}
	s = play(t, s, time.Second, reporting(t, s.Record.Token, `{"tasks":2}`))
	if all := s.Orders().List(); len(all) != 1 || all[0].Until.Sub(s.Now) != 3*time.Hour {
		t.Errorf("after it has passed, it trips anew: %+v", all)
	}
}

// A leader that has led for one cooldown is forgiven, however its term ends before it says so.
func TestAProbationThatIsOverIsForgottenHoweverTheTermEnds(t *testing.T) {
	const cooldown = time.Hour
	for name, end := range map[string]func(rule.Snapshot) rule.Snapshot{
		"released": func(s rule.Snapshot) rule.Snapshot { return play(t, s, 0, released) },
		"expired":  func(s rule.Snapshot) rule.Snapshot { return play(t, s, time.Minute, rule.Expire) },
		"run out":  func(s rule.Snapshot) rule.Snapshot { return at(s, s.Now.Add(time.Minute)) },
		"handed over": func(s rule.Snapshot) rule.Snapshot {
			for _, rule := range []decision{handOver("bob", time.Minute), ready("bob", 'b'), yield, byBob} {
				s = play(t, s, 0, rule)
			}
			return s
		},
		"tripped anew": func(s rule.Snapshot) rule.Snapshot {
			s = play(t, s, 0, reporting(t, 2, `{"tasks":2}`))
			if all := s.Orders().List(); len(all) != 1 || all[0].Until.Sub(s.Now) != cooldown {
				t.Errorf("it is banned as if it had tripped in its probation: %+v", all)
			}
			return play(t, s, time.Second, ordered(leadership.Order{Kind: leadership.OrderLift, Override: "cooldown-2-ann"}))
		},
	} {
		s := limitedHeld(t, leadership.TermPolicy{Budget: leadership.Counters{Tasks: 1}, Cooldown: cooldown})
		s = play(t, s, 0, reporting(t, 1, `{"tasks":2}`))
		s = play(t, s, cooldown, by("ann"))
		s = at(s, s.Now.Add(cooldown))
		s.Record.HeartbeatAt = s.Now
		if x := rule.Explain(end(s), "ann"); slices.ContainsFunc(x.Causes, func(c leadership.Cause) bool { return c.Code == leadership.ReasonProbation }) {
			t.Errorf("%s: explained as %+v", name, x.Causes)
		}
	}
}

func TestBanThatStandsIsNeverForgottenForOthersThatTrip(t *testing.T) {
	const most = 8
	s := limitedHeld(t, leadership.TermPolicy{Budget: leadership.Counters{Tasks: 1}, Cooldown: time.Hour})
	s = play(t, s, time.Second, released)
	trips := func(n int) {
		t.Helper()
		id := leadership.CandidateID(fmt.Sprintf("agent-%d", n))
		s = play(t, s, 11*time.Second, by(id))
		s = play(t, s, time.Second, func(s rule.Snapshot) (rule.Change, error) {
			text, err := leadership.ParseReport([]byte(`{"tasks":2}`))
			if err != nil {
				return rule.Change{}, err
			}
			return rule.Renew(s, rule.Renewal{CandidateID: id, KeyHash: s.Record.KeyHash, Token: s.Record.Token, Report: text})
		})
	}
	for n := range most {
		trips(n)
	}
	s = at(s, s.Now.Add(11*time.Second))
	_, err := by("cy")(s)
	var e *leadership.Error
	if !errors.As(err, &e) || e.Reason != leadership.ReasonBanned || e.RetryAfter > time.Hour || len(rule.Explain(s, "cy").Causes) == 0 {
		t.Fatalf("the next candidate, whose ban would have no place: %v", err)
	}
	s = at(s, s.Now.Add(e.RetryAfter-11*time.Second))
	trips(most)
	for n := 1; n <= most; n++ { // the first ban is over
		assert.Equal(t, leadership.ReasonBanned, refusal(by(leadership.CandidateID(fmt.Sprintf("agent-%d", n))), s), "agent-%d", n)
	}
}

func TestLeaderWithoutProgressIsOutAtStuckAfterAndItsSuccessorLeadsAfterTheGuard(t *testing.T) {
	policy := leadership.TermPolicy{StuckAfter: 25 * time.Second, Cooldown: time.Minute}
	s := limitedHeld(t, policy)
	s = play(t, s, 5*time.Second, reporting(t, 1, `{"progress":1}`)) // out at 30 s now
	for range 3 {
		s = play(t, s, 8*time.Second, reporting(t, 1, `{"progress":1,"tasks":1}`))
	}
	out := noon.Add(30 * time.Second)
	if r := s.Record; !r.LeaseEnd().Equal(out) || r.EndsBecause != leadership.EndsStuck {
		t.Fatalf("at %v it ends at %v because %q", s.Now, r.LeaseEnd(), r.EndsBecause)
	}
	if ch := play(t, s, 0, reporting(t, 1, `{"progress":2,"tasks":1}`)); !ch.Record.LeaseEnd().After(out) || !ch.Record.EndsBy.Equal(s.Now.Add(25*time.Second)) {
		t.Errorf("progress moves the end to %v", ch.Record.EndsBy)
	}
	late := reporting(t, 1, `{"progress":2,"tasks":1}`)
	assert.Equal(t, leadership.ReasonDeposed, refusal(late, at(s, out)), "progress at the end")
	assert.Equal(t, leadership.ReasonBanned, refusal(by("ann"), at(s, out.Add(guard))), "the stuck leader itself is granted before its end is recorded")
	next, events := playEvents(t, at(s, out.Add(guard)), 0, by("bob"))
	if e := events[0]; e.Type != leadership.EventDeposed || e.Detail != `{"endsBecause":"stuck","progress":1,"stuckAfterMs":25000,"until":"2026-01-01T12:01:30Z"}` || e.Reason == "" || next.Record.LeaderID != "bob" {
		t.Errorf("got %+v", events)
	}
	assert.Equal(t, leadership.ReasonBanned, refusal(by("ann"), at(next, next.Now.Add(30*time.Second))), "deposed, ann hears")
}

func TestLeaderWithoutProgressThatReleasesAtItsDeadlineIsKeptOut(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{StuckAfter: 20 * time.Second, Cooldown: time.Minute})
	s = play(t, s, 8*time.Second, reporting(t, 1, ``))
	s = play(t, s, 8*time.Second, reporting(t, 1, ``))
	s, events := playEvents(t, s, 3*time.Second, released)
	if e := events[0]; e.Type != leadership.EventReleased || e.Reason == "" || e.Detail != `{"endsBecause":"stuck","progress":0,"stuckAfterMs":20000,"until":"2026-01-01T12:01:19Z"}` {
		t.Errorf("got %+v", e)
	}
	assert.Equal(t, leadership.ReasonBanned, refusal(by("ann"), s), "ann")
	assert.EqualValues(t, "<nil>", refusal(by("bob"), s), "bob, after a release")
}

// limits configures the limits of a term, and nothing else.
func limits(p leadership.TermPolicy) decision {
	return applies(leadership.Configure{Config: leadership.Config{Term: p}})
}

func TestLimitThatIsNoLongerConfiguredIsLiftedAtOnce(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{MaxTerm: 20 * time.Second, StuckAfter: 25 * time.Second, Approval: leadership.ApprovalPolicy{Every: 22 * time.Second}})
	if s = play(t, s, time.Second, limits(leadership.TermPolicy{StuckAfter: 60 * time.Second})); s.Record.EndsBecause != leadership.EndsStuck || !s.Record.EndsBy.Equal(noon.Add(25*time.Second)) {
		t.Errorf("without maxTerm it ends by %v because %q", s.Record.EndsBy, s.Record.EndsBecause)
	}
	if s = play(t, s, time.Second, limits(leadership.TermPolicy{MaxTerm: time.Second})); !s.Record.EndsBy.IsZero() {
		t.Errorf("a new limit counts from the next grant: it ends by %v because %q", s.Record.EndsBy, s.Record.EndsBecause)
	}
}
