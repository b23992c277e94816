package rule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
)

// Each of these is refused before the store is asked, and its sentence says what to do.
func TestBadOrdersReportsAndPoliciesAreRefusedWithTheirSentence(t *testing.T) {
	service := service.New(&slowStore{})
	order := func(c leadership.Order) error {
		if c.Reason == "" {
			c.Reason = "because"
		}
		if c.Actor == "" {
			c.Actor = "op"
		}
		_, err := service.Do(t.Context(), c.In("jobs"))
		return err
	}
	lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: leadership.NewKey(), Token: 1}
	report := func(text string) error {
		r := lease
		r.Report = []byte(text)
		_, err := service.Renew(t.Context(), r)
		return err
	}
	config := func(c leadership.Config) error { return configures(service, t, c) }
	policy := func(p leadership.TermPolicy) error { return config(leadership.Config{Term: p}) }
	acquire := func(change func(*leadership.AcquireRequest)) error {
		r := leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"}
		change(&r)
		return errOf(service.Acquire(t.Context(), r))
	}
	lasting := func(d time.Duration) error {
		return acquire(func(r *leadership.AcquireRequest) { r.LeaseDuration = d })
	}
	withToken := func(token leadership.Token) error {
		r := lease
		r.Token = token
		return errOf(service.Renew(t.Context(), r))
	}
	unlock := leadership.Unlock{Election: "jobs", Actor: "olga"}
	judge := func(c leadership.Judge) error {
		c.Election = "jobs"
		_, err := service.Do(t.Context(), c)
		return err
	}
	stepDown := func(r leadership.StepDown) error {
		r.LeaseRequest = lease
		_, err := service.Do(t.Context(), r)
		return err
	}
	ban := leadership.Order{Kind: leadership.OrderBan, CandidateID: "ann", For: time.Minute}
	with := func(c leadership.Order, change func(*leadership.Order)) leadership.Order {
		change(&c)
		return c
	}
	verified := leadership.WithActor(t.Context(), "ann@example.com")
	for _, c := range []struct {
		field, says string
		err         error
	}{
		{"order", `there is no order "fire"`, order(leadership.Order{Kind: "fire"})},
		{"for", "for is from 1s to 720h, not 720h0m1s", order(with(ban, func(c *leadership.Order) { c.For = leadership.MaxOrder + time.Second }))},
		{"for", "for is from 1s to 720h, not 999ms", order(with(ban, func(c *leadership.Order) { c.For = 999 * time.Millisecond }))},
		{"for", "for is in whole milliseconds, not 1.0005s", order(with(ban, func(c *leadership.Order) { c.For = time.Second + 500*time.Microsecond }))},
		{"for", "for is missing: ban needs it", order(with(ban, func(c *leadership.Order) { c.For = 0 }))},
		{"candidateId", "candidateId is missing: ban needs it", order(with(ban, func(c *leadership.Order) { c.CandidateID = "" }))},
		{"candidateId", "is made of", order(with(ban, func(c *leadership.Order) { c.CandidateID = "a b" }))},
		{"mode", "ban takes no mode", order(with(ban, func(c *leadership.Order) { c.Mode = leadership.PauseDrain }))},
		{"mode", `mode is "freeze" or "drain", not "stop"`, order(leadership.Order{Kind: leadership.OrderPause, For: time.Minute, Mode: "stop"})},
		{"fencingToken", "fencingToken is missing: approve needs it", order(leadership.Order{Kind: leadership.OrderApprove})},
		{"fencingToken", "a fencing token is an integer from 1 to", order(leadership.Order{Kind: leadership.OrderEvict, Token: -1})},
		{"reason", "reason is one line of text", order(leadership.Order{Kind: leadership.OrderEvict, Token: 1, Ban: time.Minute, Reason: "a\nb"})},
		{"override", "override is missing: lift needs it", order(leadership.Order{Kind: leadership.OrderLift})},
		{"override", `"ban" is no id of an override; they are as "ban-17"`, order(leadership.Order{Kind: leadership.OrderLift, Override: "ban"})},
		{"override", "is no id of an override", order(leadership.Order{Kind: leadership.OrderLift, Override: "evict-3"})},
		{"reason", "reason is one line of text", order(with(ban, func(c *leadership.Order) { c.Reason = "a\nb" }))},
		{"reason", "reason is a text of at most 256 bytes, not 257", order(with(ban, func(c *leadership.Order) { c.Reason = strings.Repeat("x", 257) }))},
		{"reason", "reason is missing: say why in a line", errOf(service.Do(t.Context(), ban.In("jobs")))},
		{"actor", "actor is missing: say who gives the order", errOf(service.Do(t.Context(), with(ban, func(c *leadership.Order) { c.Reason = "r" }).In("jobs")))},
		{"actor", "leave actor out", errOf(service.Do(verified, with(ban, func(c *leadership.Order) { c.Reason, c.Actor = "r", "bob" }).In("jobs")))},
		{"If-Match", "the condition is a revision", order(with(ban, func(c *leadership.Order) { c.IfRevision = -2 }))},

		{"key", "a key of zeroes only", errOf(service.Do(t.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1}}))},
		{"report", "a report is a JSON object", report(`[]`)},
		{"report", `a report has no "Progress"; it has progress, tasks,`, report(`{"Progress":1}`)},
		{"report", `a report has no "note"`, report(`{"note":"x"}`)},
		{"report", `member "tasks" stands in it twice`, report(`{"tasks":1,"tasks":2}`)},
		{"report", "tasks is a whole number below 2^53, not this number 1.5", report(`{"tasks":1.5}`)},
		{"report", "health is a text, not this number", report(`{"health":1}`)},
		{"report", "custom is an object, not this array", report(`{"custom":[]}`)},
		{"report", "tasks is from 0 to 9007199254740991, not -1", report(`{"tasks":-1}`)},
		{"report", "3 errors are more than 2 calls", report(`{"calls":2,"errors":3}`)},
		{"report", `eta is a duration such as "20m", not "soon"`, report(`{"eta":"soon"}`)},
		{"report", "a report has at most 2048 bytes, this one has 2060", report(`{"custom":{"x":"` + strings.Repeat("x", 2041) + `"}}`)},
		{"report", "a report has at most 2048 bytes", report(`{"custom":{"x":"` + strings.Repeat("x", 9000) + `"}}`)},

		{"policy.maxTerm", "policy.maxTerm is from 1s to 720h, not 1ms", policy(leadership.TermPolicy{MaxTerm: time.Millisecond})},
		{"policy.cooldown", "policy.cooldown is from 1s to 24h, not 25h", policy(leadership.TermPolicy{Cooldown: 25 * time.Hour})},
		{"policy.stuckAfter", "policy.stuckAfter is at least two leases (1m), not 59s: reports come with renewals", policy(leadership.TermPolicy{StuckAfter: 59 * time.Second})},
		{"policy.approval.every", "policy.approval.every is missing: say how often", policy(leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Need: 2}})},
		{"policy.approval.need", "policy.approval.need is from 1 to 8, not 9", policy(leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Hour, Need: 9}})},
		{"policy.verdicts", "policy.verdicts is from 0 to 16, not 17", policy(leadership.TermPolicy{Verdicts: 17})},
		{"policy.budget", "policy.budget: calls is from 0 to", policy(leadership.TermPolicy{Budget: leadership.Counters{Calls: -1}})},
		{"policy.errorRate", "policy.errorRate.max is above 0 and at most 1, not 1.5", policy(leadership.TermPolicy{ErrorRate: leadership.ErrorRate{Max: 1.5, Min: 1}})},
		{"policy.errorRate", "policy.errorRate.max is above 0 and at most 1, not 0", policy(leadership.TermPolicy{ErrorRate: leadership.ErrorRate{Min: 1}})},
		{"policy.errorRate", "policy.errorRate.min is from 1 to", policy(leadership.TermPolicy{ErrorRate: leadership.ErrorRate{Max: 0.5}})},
		{"policy.cooldownOf", `policy.cooldownOf is "candidate" or "principal", not "pod"`, policy(leadership.TermPolicy{Cooldown: time.Hour, CooldownOf: "pod"})},
		{"policy.cooldown", "policy.cooldown is missing: policy.cooldownOf says what it bars", policy(leadership.TermPolicy{CooldownOf: leadership.CooldownPrincipal})},
		{"policy.onTrip", `policy.onTrip is "stepDown" or "notify", not "explode"`, policy(leadership.TermPolicy{OnTrip: "explode"})},

		{"description", "", config(leadership.Config{Description: strings.Repeat("ä", 128) + "a"})},
		{"description", "", config(leadership.Config{Description: "two\nlines"})},
		{"maxLeaseDuration", "at least leaseDuration (1m)", config(leadership.Config{LeaseDuration: time.Minute, MaxLeaseDuration: 59 * time.Second})},
		{"maxLeaseDuration", "at least leaseDuration (30s)", config(leadership.Config{MaxLeaseDuration: 29 * time.Second})},
		{"maxLeaseDuration", "from 1s to 24h", config(leadership.Config{LeaseDuration: time.Second, MaxLeaseDuration: 999 * time.Millisecond})},
		{"maxLeaseDuration", "from 1s to 24h", config(leadership.Config{LeaseDuration: time.Second, MaxLeaseDuration: 25 * time.Hour})},
		{"maxLeaseDuration", "whole milliseconds", config(leadership.Config{LeaseDuration: time.Second, MaxLeaseDuration: time.Second + 1})},
		{"retireAfter", "", config(leadership.Config{RetireAfter: leadership.MinRetireAfter - time.Millisecond})},
		{"retireAfter", "", config(leadership.Config{RetireAfter: leadership.MaxRetireAfter + time.Millisecond})},
		{"retireAfter", "", config(leadership.Config{RetireAfter: 2*time.Hour + 1})},

		{"election", "", acquire(func(r *leadership.AcquireRequest) { r.Election = "" })},
		{"candidateId", "", acquire(func(r *leadership.AcquireRequest) { r.CandidateID = "" })},
		{"metadata", "", acquire(func(r *leadership.AcquireRequest) { r.Metadata = []byte("[]") })},
		{"leaseDuration", "", lasting(time.Second - 1)},
		{"leaseDuration", "", lasting(24*time.Hour + time.Millisecond)},
		{"leaseDuration", "", lasting(time.Second + time.Microsecond)},
		{"fencingToken", "", withToken(0)},
		{"fencingToken", "", withToken(leadership.MaxToken + 1)},
		{"reason", "", errOf(service.Do(t.Context(), unlock))},

		{"verdict", `verdict is "bad" or "good", not "meh"`, judge(leadership.Judge{Token: 1, Verdict: "meh", Evidence: "e", Actor: "v"})},
		{"evidence", "evidence is missing", judge(leadership.Judge{Token: 1, Verdict: leadership.VerdictBad, Actor: "v"})},
		{"fencingToken", "a fencing token is", judge(leadership.Judge{Verdict: leadership.VerdictBad, Evidence: "e", Actor: "v"})},
		{"reason", "reason is missing", stepDown(leadership.StepDown{})},
		{"for", "for is from 1s to 720h, not 1ms", stepDown(leadership.StepDown{Reason: "r", For: time.Millisecond})},
		{"note", "note is missing", errOf(service.Do(t.Context(), leadership.RequestApproval{LeaseRequest: lease}))},
		{"candidateId", "a candidate needs an id", errOf(service.Explain(t.Context(), leadership.ExplainRequest{Election: "jobs"}))},
	} {
		var e *leadership.Error
		if !errors.As(c.err, &e) || e.Code != leadership.InvalidArgument || e.Field != c.field || !strings.Contains(e.Detail, c.says) {
			t.Errorf("%s: got %v; want %q", c.field, c.err, c.says)
		}
	}
	if err := errOf(service.Do(verified, new(leadership.Order{Kind: leadership.OrderBan, Election: "jobs", CandidateID: "ann", For: time.Hour, Reason: "r", Actor: "eve"}))); err == nil || !strings.Contains(err.Error(), "a *leadership.Order is no command") {
		t.Errorf("a pointer to an order, whose actor is not the caller: %v", err)
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestNoMorePrincipalsJudgeThanAreCountedAndEachCountsOnce(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{Verdicts: 2})
	judge := func(actor string, v leadership.Verdict) decision {
		return applies(leadership.Judge{Token: 1, Verdict: v, Evidence: "seen", Actor: actor})
	}
	s = play(t, s, 0, judge("v", leadership.VerdictBad))
	requireNothing(t, "the same verdict again", s, judge("v", leadership.VerdictBad))
	s = play(t, s, 0, judge("v", leadership.VerdictGood)) // takes it back
	if s = play(t, s, 0, judge("w", leadership.VerdictBad)); !s.Live() {
		t.Error("one principal counts twice")
	}
	for i := range leadership.MaxVerdicts - 1 {
		s = play(t, s, 0, judge(strings.Repeat("g", i+1), leadership.VerdictGood))
	}
	_, err := judge("one more", leadership.VerdictGood)(s)
	assert.ErrorIs(t, err, leadership.LimitExceeded, "one more")
	if s, events := playEvents(t, s, 0, judge("v", leadership.VerdictBad)); s.Live() || len(events) != 2 || events[0].Actor != "v" || events[0].Detail != `{"bad":2,"good":15,"verdict":"bad"}` {
		t.Errorf("two bad ones: %+v", events)
	}
	_, err = judge("v", leadership.VerdictBad)(play(t, s, time.Minute, by("bob")))
	assert.ErrorIs(t, err, leadership.TokenStale, "a term that is over")
}

func TestPrincipalWithALongNameGivesOrders(t *testing.T) {
	store, service, _ := slow(t)
	names := []string{"spiffe://example.com/" + strings.Repeat("é", 200) + "/a", "spiffe://example.com/" + strings.Repeat("é", 200) + "/b"}
	pause := leadership.Order{Election: "jobs", Kind: leadership.OrderPause, For: time.Minute, Reason: "r"}
	var actors []string
	for _, name := range names {
		l, err := service.Do(leadership.WithActor(t.Context(), name), pause)
		require.NoError(t, err)
		actors = append(actors, l.Overrides.List()[0].Actor)
	}
	if last := store.events[len(store.events)-1]; last.Actor != names[1] || actors[0] == actors[1] || len(actors[0]) > leadership.MaxActorBytes {
		t.Errorf("got %q, and the event %+v", actors, last)
	}
}
