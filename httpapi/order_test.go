package httpapi_test

import (
	"fmt"
	"net/http"
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

// asOther is agent-8, with a key of its own.
const asOther = `{"candidateId":"agent-8","key":"` + otherKey + `"`

// order gives an order about planner; fields are the body without its reason and its actor.
func (w *fixture) order(verb, fields string, headers ...string) answer {
	w.t.Helper()
	if fields != "" {
		fields += ","
	}
	return w.do("POST", "/v1/elections/planner:"+verb, "{"+fields+word, headers...)
}

// ordersTwice are all orders and verdicts about planner, which agent-7 leads with fencing token 1.
var ordersTwice = []struct{ verb, fields string }{
	{"pause", `"for":"1h"`},
	{"pause", `"for":"1h","mode":"drain"`},
	{"resume", ""},
	{"assign", `"candidateId":"agent-8","for":"1h"`},
	{"assign", `"candidateId":"agent-7","for":"2h"`},
	{"ban", `"candidateId":"agent-8","for":"1h"`},
	{"lift", `"override":"ban-7"`},
	{"evict", `"fencingToken":1,"ban":"10m"`},
	{"evict", ""},
	{"approve", `"fencingToken":1,"newEpoch":true`},
}

// A copy of an operator's call that comes after its effect was undone changes nothing. Before each
// the calls of before are made, as the operator that has just read the election makes them.
func TestALateCopyOfAnOperatorsCallChangesNothing(t *testing.T) {
	t.Parallel()
	pause := [3]string{"POST", ":pause", `"for":"1m"`}
	evict := [3]string{"POST", ":evict", `"fencingToken":1`}
	approve := [3]string{"POST", ":approve", `"fencingToken":1`}
	for _, c := range []struct {
		before []([3]string)
		call   [3]string
		undone []([3]string)
	}{
		{nil, pause, [][3]string{{"POST", ":resume", ""}}},
		{[][3]string{pause}, [3]string{"POST", ":resume", ""}, [][3]string{{"POST", ":pause", `"for":"2m"`}}},
		{nil, [3]string{"POST", ":assign", `"candidateId":"agent-8","for":"1m"`}, [][3]string{{"POST", ":lift", `"override":"assign-%d"`}}},
		{nil, [3]string{"POST", ":ban", `"candidateId":"agent-8","for":"1m"`}, [][3]string{{"POST", ":lift", `"override":"ban-%d"`}}},
		{nil, evict, [][3]string{{"POST", ":release", `"candidateId":"agent-7","key":"` + key + `","fencingToken":1`}, {"POST", ":acquire", asOther[1:]}}},
		{nil, approve, [][3]string{{"POST", ":pause", `"for":"1m"`}}},
		{nil, [3]string{"PUT", "", `"lockDelay":"1s"`}, [][3]string{{"PUT", "", `"lockDelay":"2s"`}}},
		{nil, [3]string{"DELETE", "?force=true", ""}, [][3]string{{"PUT", "", `"lockDelay":"2s"`}}},
	} {
		w := newFixture(t)
		w.do("PUT", "/v1/elections/planner", `{"policy":{"approval":{"every":"1m"}}}`).lease(t)
		revision := w.acquire().Revision
		send := func(call [3]string, headers ...string) answer {
			body := ""
			switch {
			case call[1] == ":release" || call[1] == ":acquire" || call[0] == "PUT":
				body = "{" + call[2] + "}"
			case call[0] == "POST" && call[2] == "":
				body = "{" + word
			case call[0] == "POST":
				body = "{" + call[2] + "," + word
			}
			if strings.Contains(body, "%d") {
				body = fmt.Sprintf(body, revision)
			}
			return w.do(call[0], "/v1/elections/planner"+call[1], body, headers...)
		}
		for _, b := range c.before {
			revision = send(b).lease(t).Revision
		}
		on := []string{"If-Match", wire.ETag(revision)}
		revision = send(c.call, on...).lease(t).Revision
		for range 2 {
			send(c.call, on...).lease(t) // at once: the reply was lost
		}
		for _, u := range c.undone {
			revision = send(u).lease(t).Revision
		}
		before := w.state()
		if a := send(c.call, on...); a.status != http.StatusOK && a.status != http.StatusPreconditionFailed && a.status != http.StatusConflict {
			t.Errorf("%s, late: %d %s", c.call, a.status, a.body)
		}
		if after := w.state(); after != before {
			t.Errorf("%s, late, has changed\n%s\ninto\n%s", c.call, before, after)
		}
	}
}

func TestAnOrderLeavesAnEventWithItsActorAndItsReason(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	for _, o := range ordersTwice {
		if o.verb == "lift" {
			o.fields = fmt.Sprintf(`"override":"ban-%d"`, w.do("GET", "/v1/elections/planner", "").lease(t).Revision)
		}
		w.order(o.verb, o.fields).lease(t)
	}
	var history wire.History
	w.do("GET", "/v1/elections/planner/events?after=1", "").into(t, &history)
	var types []leadership.EventType
	for _, e := range history.Events {
		types = append(types, e.Type)
		if e.Actor != "ann@example.com" || e.Reason != "the night shift" || e.RequestID == "" {
			t.Errorf("the event %+v", e)
		}
	}
	want := []leadership.EventType{"paused", "paused", "resumed", "assigned", "assigned", "banned", "lifted", "evicted", "approved", "epoch"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
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
	for _, path := range []string{"/overrides", "/candidates/agent-7:explain"} {
		if p := w.do("GET", "/v1/elections/never-seen"+path, "").problem(t); p.Code != leadership.NotFound {
			t.Errorf("%s of an election that was never seen: %+v", path, p)
		}
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
	judge := func(verdict, actor string) answer {
		return w.do("POST", "/v1/elections/planner:judge", `{"fencingToken":1,"verdict":"`+verdict+`","evidence":"page 7","actor":"`+actor+`"}`)
	}
	leads := func(verb, more string) answer {
		return w.do("POST", "/v1/elections/planner:"+verb, strings.TrimSuffix(asLeader, "}")+more+`}`)
	}
	for i := range 2 {
		if l := leads("requestApproval", `,"note":"12 steps"`).lease(t); l.Revision != leadership.Revision(3+i) {
			t.Errorf("asked for an approval: %+v", l)
		}
		if a := judge("bad", "eve"); a.lease(t).Revision > 4 || a.header.Get("ETag") == "" {
			t.Errorf("judged twice by one: %s", a.body)
		}
	}
	for i, actor := range []string{"ann", "ann", "bob"} {
		a := w.do("POST", "/v1/elections/planner:approve", `{"fencingToken":1,"for":"2h","reason":"sound","actor":"`+actor+`"}`)
		if l := a.lease(t); (l.EndsInMs == 7_200_000) != (i == 2) {
			t.Errorf("approved %d times: %+v", i+1, l)
		}
	}
	if l := judge("bad", "bob").lease(t); l.State != leadership.Vacant {
		t.Errorf("judged bad by two: %+v", l)
	}
	if p := leads("renew", "").problem(t); p.Reason != leadership.ReasonDeposed {
		t.Errorf("the leader that was judged bad: %+v", p)
	}
	w.clock.Advance(31 * time.Second)
	grant := w.do("POST", "/v1/elections/planner:acquire", asOther+"}").lease(t)
	if p := judge("bad", "cy").problem(t); p.Code != leadership.TokenStale {
		t.Errorf("a verdict on a term that is over: %+v", p)
	}
	stepDown := fmt.Sprintf(`%s,"fencingToken":%d,"reason":"no memory","for":"1m"}`, asOther, grant.FencingToken)
	for range 2 {
		if l := w.do("POST", "/v1/elections/planner:stepDown", stepDown).lease(t); l.State != leadership.Vacant || l.LockedForMs != 0 {
			t.Errorf("stepped down: %+v", l)
		}
	}
	if p := w.do("POST", "/v1/elections/planner:acquire", asOther+"}").problem(t); p.Reason != leadership.ReasonBanned || p.Cause.By != "agent-8" || p.Cause.Reason != "no memory" {
		t.Errorf("after stepping down for a minute: %+v", p)
	}
}

func TestAPolicyIsShownAsItWasSet(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const policy = `"policy":{"maxTerm":"28800s","approval":{"every":"3600s","need":2},"stuckAfter":"300s","budget":{"tokensUsed":200000},"errorRate":{"max":0.5,"min":20},"onTrip":"notify","cooldown":"600s","verdicts":2}`
	for _, body := range []string{"{" + policy + "}", `{"leaseDuration":"20s",` + policy + "}"} {
		a := w.do("PUT", "/v1/elections/planner", body)
		if a.lease(t); !strings.Contains(string(a.body), policy) {
			t.Errorf("configured: %s", a.body)
		}
		if a := w.do("GET", "/v1/elections/planner", ""); !strings.Contains(string(a.body), policy) {
			t.Errorf("read: %s", a.body)
		}
	}
	if a := w.do("PUT", "/v1/elections/planner", `{"policy":{}}`); strings.Contains(string(a.body), "policy") {
		t.Errorf("reset: %s", a.body)
	}
}
