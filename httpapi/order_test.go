package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/leadership/wire"
)

// word ends the body of an order.
const word = `"reason":"the night shift","actor":"ann@example.com"}`

// asOther begins a body of agent-8, with its own key.
const asOther = `{"candidateId":"agent-8","key":"` + otherKey + `"`

// order gives an order about planner; fields are the body without its reason and its actor.
func (w *fixture) order(verb, fields string, headers ...string) answer {
	w.t.Helper()
	if fields != "" {
		fields += ","
	}
	return w.do("POST", "/v1/elections/planner:"+verb, "{"+fields+word, headers...)
}

func TestAHaltIsOfAPatternAndStandsInAnElectionOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	halt := func(pattern string) answer {
		return w.do("POST", "/v1/elections/"+pattern+":halt", `{"for":"1h",`+word, "If-Match", `"1"`)
	}
	for _, pattern := range []string{"planner", "regent.*", "*planner", "-*"} {
		if p := halt(pattern).problem(t); p.Code != leadership.InvalidArgument {
			t.Errorf("%s: %+v", pattern, p)
		}
	}
	l := halt("plan*").lease(t)
	if len(l.Overrides) != 1 || l.Election != leadership.HaltsElection || l.Overrides[0].Elections != "plan*" || l.Overrides[0].Kind != leadership.OverrideHalt {
		t.Errorf("the answer is %+v", l)
	}
	p := w.do("POST", "/v1/elections/planner:acquire", asOther+"}").problem(t)
	if p.Reason != leadership.ReasonHalted || p.RetryAfterMs != 3_600_000 || p.Cause == nil || p.Cause.Elections != "plan*" || p.Cause.By != "ann@example.com" {
		t.Errorf("refused with %+v", p)
	}
	var standing wire.Overrides
	if w.do("GET", "/v1/elections/regent.halts/overrides", "").into(t, &standing); !cmp.Equal(standing.Overrides, l.Overrides) {
		t.Errorf("the halts are %+v", standing)
	}
	w.do("POST", "/v1/elections/plan*:unhalt", "{"+word, "If-Match", `"1"`).lease(t)
	w.do("POST", "/v1/elections/planner:acquire", asOther+"}").lease(t)
}

func TestOverridesAreReadAsTheyStand(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	read := func() (all []string) {
		var got wire.Overrides
		w.do("GET", "/v1/elections/planner/overrides", "").into(t, &got)
		for _, o := range got.Overrides {
			all = append(all, fmt.Sprint(o.ID, " ", o.CandidateID, o.Mode, " ", o.UntilMs, " ", o.Actor, ": ", o.Reason))
		}
		return all
	}
	if a := w.do("GET", "/v1/elections/planner/overrides", ""); string(a.body) != `{"overrides":[]}`+"\n" {
		t.Errorf("without an order: %s", a.body)
	}
	w.order("ban", `"candidateId":"agent-8","for":"90s"`).lease(t)
	l := w.order("pause", `"for":"1h"`).lease(t)
	w.clock.Advance(30 * time.Second)
	want := []string{"ban-2 agent-8 60000 ann@example.com: the night shift", "pause-3 freeze 3570000 ann@example.com: the night shift"}
	if got := read(); !slices.Equal(got, want) || len(l.Overrides) != 2 || l.Overrides[1].UntilMs != 3_600_000 {
		t.Errorf("the overrides are %q, want %q; the order was answered with %+v", got, want, l.Overrides)
	}
	w.clock.Advance(time.Minute)
	if got := read(); !slices.Equal(got, []string{"pause-3 freeze 3510000 ann@example.com: the night shift"}) {
		t.Errorf("once the ban is over: %q", got)
	}
}

func TestARefusalAndAnExplanationSayTheSame(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	w.order("pause", `"for":"1h"`).lease(t)
	w.order("ban", `"candidateId":"agent-8","for":"2h"`).lease(t)
	a := w.do("POST", "/v1/elections/planner:acquire", asOther+"}")
	p := a.problem(t)
	at := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	ban := wire.Cause{Code: "BANNED", Override: "ban-3", By: "ann@example.com", Reason: "the night shift", Until: at.Add(2 * time.Hour), UntilMs: 7_200_000}
	if p.Code != leadership.LeaseHeld || p.Reason != leadership.ReasonBanned || p.RetryAfterMs != 7_200_000 || a.header.Get("Retry-After") != "7200" {
		t.Errorf("refused with %s", a.body)
	}
	if diff := cmp.Diff(&ban, p.Cause); diff != "" {
		t.Errorf("the cause (-want +got):\n%s", diff)
	}
	explain := func(id string) (x wire.Explanation) {
		w.do("GET", "/v1/elections/planner/candidates/"+id+":explain", "").into(t, &x)
		return x
	}
	want := []wire.Cause{
		ban,
		{Code: "PAUSED", Override: "pause-2", By: "ann@example.com", Reason: "the night shift", Until: at.Add(time.Hour), UntilMs: 3_600_000},
		{Code: "HELD", LeaderID: "agent-7", Until: at.Add(30 * time.Second), UntilMs: 30_000},
	}
	x := explain("agent-8")
	if diff := cmp.Diff(want, x.Reasons[:min(3, len(x.Reasons))]); diff != "" || x.Leads || x.CandidateID != "agent-8" || x.Election != "planner" {
		t.Errorf("explained as %+v (-want +got):\n%s", x, diff)
	}
	if x := explain("agent-7"); !x.Leads {
		t.Errorf("the leader is explained as %+v", x)
	}
	for _, id := range []leadership.CandidateID{"ann@example.com:2", "a:explain", ":"} {
		if x := explain(string(id)); x.CandidateID != id || x.Leads {
			t.Errorf("%s is explained as %+v", id, x)
		}
	}
}

func TestVerdictsAndSteppingDownAndApprovals(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("PUT", "/v1/elections/planner", `{"policy":{"verdicts":2,"cooldown":"10m","approval":{"every":"1h","need":2}}}`).lease(t)
	w.acquire()
	judge := func(actor string) answer {
		return w.do("POST", "/v1/elections/planner:judge", `{"fencingToken":1,"verdict":"bad","evidence":"page 7","actor":"`+actor+`"}`)
	}
	if l := w.onPlanner(":requestApproval", leads(`"note":"12 steps","newEpoch":true`)).lease(t); l.Revision != 3 {
		t.Errorf("asked for an approval: %+v", l)
	}
	if a := w.do("GET", "/v1/elections/planner/events?after=2", ""); !strings.Contains(string(a.body), `"reason":"12 steps"`) || !strings.Contains(string(a.body), `"newEpoch":true`) {
		t.Errorf("the event of it: %s", a.body)
	}
	for i, actor := range []string{"ann", "bob"} {
		a := w.do("POST", "/v1/elections/planner:approve", `{"fencingToken":1,"for":"2h","reason":"sound","actor":"`+actor+`"}`)
		if l := a.lease(t); (l.EndsInMs == 7_200_000) != (i == 1) {
			t.Errorf("approved %d times: %+v", i+1, l)
		}
	}
	if a := judge("eve"); a.lease(t).State != leadership.Held || a.header.Get("ETag") == "" {
		t.Errorf("judged by one: %s", a.body)
	}
	if l := judge("bob").lease(t); l.State != leadership.Vacant {
		t.Errorf("judged bad by two: %+v", l)
	}
	if p := w.onPlanner(":renew", asLeader).problem(t); p.Reason != leadership.ReasonDeposed {
		t.Errorf("the leader that was judged bad: %+v", p)
	}
	w.clock.Advance(31 * time.Second)
	w.onPlanner(":acquire", asOther+"}").lease(t)
	for range 2 {
		if l := w.onPlanner(":stepDown", asOther+`,"fencingToken":2,"reason":"no memory","for":"1m"}`).lease(t); l.State != leadership.Vacant || l.LockedForMs != 0 {
			t.Errorf("stepped down: %+v", l)
		}
	}
	if p := w.onPlanner(":acquire", asOther+"}").problem(t); p.Reason != leadership.ReasonBanned || p.Cause.By != "agent-8" || p.Cause.Reason != "no memory" {
		t.Errorf("after stepping down for a minute: %+v", p)
	}
}
