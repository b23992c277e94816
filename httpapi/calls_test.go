package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/wire"
)

func TestAGrantShowsTheLease(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	l := w.do("POST", "/v1/elections/planner:acquire",
		`{"candidateId":"agent-7","key":"`+key+`","leaseDuration":"1m30s","metadata":{"b": 1.0, "a": "<&>"}}`).lease(t)
	if l.Election != "planner" || l.State != leadership.Held || l.LeaderID != "agent-7" || l.FencingToken != 1 || l.Revision != 1 {
		t.Errorf("the lease is %+v", l)
	}
	if l.LeaseDuration.String() != "90s" || *l.ExpiresInMs != 90_000 || string(l.Metadata) != `{"a":"<&>","b":1}` {
		t.Errorf("the lease has duration %s, %d ms left, metadata %s", l.LeaseDuration, *l.ExpiresInMs, l.Metadata)
	}
	if l.Configuration.LeaseDuration.String() != "30s" || l.Configuration.LockDelay.String() != "0s" {
		t.Errorf("the configuration is %+v", l.Configuration)
	}
}

func TestALeaderIsToldToRenewALittleEarlyAndNeverLate(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	seen := map[int64]bool{}
	for range 20 {
		renewIn := *w.acquire().RenewInMs
		if renewIn > 10_000 || renewIn < 9_000 {
			t.Errorf("renewInMs is %d, want 9000 to 10000", renewIn)
		}
		seen[renewIn] = true
	}
	if len(seen) < 2 {
		t.Error("renewInMs is always the same")
	}
}

func TestAReplyHasTheKeyIfAndOnlyIfTheServerChoseIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var chosen, given wire.Grant
	w.do("POST", "/v1/elections/a:acquire", `{"candidateId":"agent-7"}`).into(t, &chosen)
	if _, err := leadership.ParseKey(chosen.Key); err != nil {
		t.Errorf("the server chose the key %q: %v", chosen.Key, err)
	}
	a := w.do("POST", "/v1/elections/b:acquire", `{"candidateId":"agent-7","key":"`+key+`"}`)
	a.into(t, &given)
	if given.Key != "" || strings.Contains(string(a.body), `"key"`) {
		t.Errorf("the caller's key comes back: %s", a.body)
	}
	renewal := `{"candidateId":"agent-7","key":"` + chosen.Key + `","fencingToken":1}`
	w.do("POST", "/v1/elections/a:renew", renewal).lease(t)
}

func TestALosingCandidateIsToldTheLeaderAndItsRemainingTime(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	w.clock.Advance(12_750*time.Millisecond + time.Microsecond)
	a := w.do("POST", "/v1/elections/planner:acquire", `{"candidateId":"agent-8"}`)
	p := a.problem(t)
	if a.status != http.StatusConflict || p.Code != leadership.LeaseHeld || p.Reason != leadership.ReasonHeld {
		t.Fatalf("the answer is %s", a.body)
	}
	if p.Lease == nil || p.LeaderID != "agent-7" || p.FencingToken != 1 || p.Revision != 1 || p.State != leadership.Held {
		t.Errorf("the problem does not tell of the leader: %s", a.body)
	}
	if *p.ExpiresInMs != 17_249 || p.RetryAfterMs != 17_250 || a.header.Get("Retry-After") != "18" {
		t.Errorf("expiresInMs %d, retryAfterMs %d, Retry-After %s; want 17249, 17250 and 18", *p.ExpiresInMs, p.RetryAfterMs, a.header.Get("Retry-After"))
	}
	incarnation := w.do("POST", "/v1/elections/planner:acquire", `{"candidateId":"agent-7","key":"`+otherKey+`"}`).problem(t)
	if incarnation.Reason != leadership.ReasonIncarnation {
		t.Errorf("the same candidate with another key has reason %q", incarnation.Reason)
	}
}

func TestABatchHasOneResultForEachEntry(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	results := func(verb, entries string) []wire.Result {
		var all wire.Results
		w.do("POST", "/v1/elections:"+verb, entries).into(t, &all)
		return all.Results
	}
	r := results("batchRenew", `{"renewals":[
		{"election":"planner","candidateId":"agent-7","key":"`+key+`","fencingToken":1},
		{"election":"scribe","candidateId":"agent-7","key":"`+key+`","fencingToken":1},
		{"election":"clerk","candidateId":"agent-7","key":"short","fencingToken":1},
		{"election":"NOT A NAME","candidateId":"agent-7","key":"`+key+`","fencingToken":1},
		"planner"]}`)
	if len(r) != 5 || r[0].Lease == nil || *r[0].Lease.ExpiresInMs != 30_000 || r[0].Election != "planner" {
		t.Fatalf("the results are %+v", r)
	}
	if p := r[1].Error; p == nil || p.Code != leadership.LeaseLost {
		t.Errorf("of another's election: %+v", p)
	}
	for i, at := range map[int]string{2: "/renewals/2/key", 3: "/renewals/3/election", 4: "/renewals/4"} {
		if p := r[i].Error; p == nil || p.Code != leadership.InvalidArgument || where(*p) != at {
			t.Errorf("result %d is %+v, want a mistake at %s", i, p, at)
		}
	}
	if r := results("batchRenew", `{"renewals":[{}]}`); len(r) != 1 || r[0].Error == nil {
		t.Errorf("of malformed entries alone: %+v", r)
	}
	r = results("batchCheckTokens", `{"checks":[{"election":"planner","fencingToken":1},{"election":"scribe","fencingToken":1},{"election":"clerk"}]}`)
	if len(r) != 3 || r[0].Lease == nil || r[1].Error == nil || r[1].Error.Code != leadership.NotFound || r[2].Error == nil || r[2].Error.Code != leadership.InvalidArgument {
		t.Errorf("of checks: %+v", r)
	}
}

func TestTheLargestBatchFits(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var entries []string
	for i := range leadership.MaxBatch {
		name := strings.Repeat("x", leadership.MaxElectionLength-3) + string([]byte{'0' + byte(i/100), '0' + byte(i/10%10), '0' + byte(i%10)})
		entries = append(entries, `{"election":"`+name+`","candidateId":"`+strings.Repeat("y", leadership.MaxCandidateLength)+`","key":"`+key+`","fencingToken":9007199254740991,"ticket":"`+strings.Repeat("t", leadership.MaxTicketBytes)+
			`","report":{"custom":{"c":"`+strings.Repeat("r", leadership.MaxReportBytes-len(`{"custom":{"c":""}}`))+`"}}}`)
	}
	a := w.do("POST", "/v1/elections:batchRenew", `{"renewals":[`+strings.Join(entries, ",\n      ")+`]}`)
	var results wire.Results
	a.into(t, &results)
	if a.status != http.StatusOK || len(results.Results) != leadership.MaxBatch {
		t.Errorf("%d results with status %d", len(results.Results), a.status)
	}
}

func TestAReadHasTheRevisionAsItsTag(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	a := w.do("GET", "/v1/elections/planner?consistency=strong", "")
	if tag := a.header.Get("ETag"); tag != `"1"` || a.lease(t).Revision != 1 {
		t.Errorf("ETag %s of %s", tag, a.body)
	}
	same := w.do("GET", "/v1/elections/planner", "", "If-None-Match", `"9", W/"1"`)
	if same.status != http.StatusNotModified || len(same.body) > 0 || same.header.Get("ETag") != `"1"` {
		t.Errorf("with the same tag: %d %s", same.status, same.body)
	}
	if a := w.do("GET", "/v1/elections/planner", "", "If-None-Match", `"2"`); a.status != http.StatusOK {
		t.Errorf("with another tag: %d", a.status)
	}
	w.clock.Advance(30 * time.Second)
	if l := w.do("GET", "/v1/elections/planner", "", "If-None-Match", `"1"`).lease(t); l.State != leadership.Vacant {
		t.Errorf("a reader who knows the held lease must hear that it has run out: %+v", l)
	}
}

func TestAListIsReadPageByPage(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, name := range []string{"a", "b-1", "b-2", "b-3", "c"} {
		w.do("POST", "/v1/elections/"+name+":acquire", `{"candidateId":"agent-7"}`).lease(t)
	}
	var names []string
	token := ""
	for range 10 {
		var page wire.Page
		w.do("GET", "/v1/elections?prefix=b-&pageSize=2"+token, "").into(t, &page)
		for _, l := range page.Elections {
			names = append(names, string(l.Election))
		}
		if page.NextPageToken == "" {
			break
		}
		token = "&pageToken=" + page.NextPageToken
	}
	if got := strings.Join(names, " "); got != "b-1 b-2 b-3" {
		t.Errorf("the pages have %s", got)
	}
	var none wire.Page
	if a := w.do("GET", "/v1/elections?prefix=z", ""); !strings.Contains(string(a.body), `"elections":[]`) {
		t.Errorf("an empty page is %s (%+v)", a.body, none)
	}
}

func TestAHistoryIsReadOnFromARevision(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("POST", "/v1/elections/planner:acquire", `{"candidateId":"agent-7","key":"`+key+`"}`, wire.RequestIDHeader, "first").lease(t)
	w.do("POST", "/v1/elections/planner:release", asLeader, wire.RequestIDHeader, "second").lease(t)
	var all, rest, none wire.History
	w.do("GET", "/v1/elections/planner/events", "").into(t, &all)
	if len(all.Events) != 2 || all.NextAfter != 2 || all.Events[0].RequestID != "first" || all.Events[1].Type != leadership.EventReleased {
		t.Errorf("the history is %+v", all)
	}
	w.do("GET", "/v1/elections/planner/events?after=1&limit=1", "").into(t, &rest)
	if len(rest.Events) != 1 || rest.Events[0].RequestID != "second" || rest.Events[0].PreviousLeaderID != "agent-7" {
		t.Errorf("after 1 the history is %+v", rest)
	}
	w.do("GET", "/v1/elections/planner/events?after=7", "").into(t, &none)
	if len(none.Events) != 0 || none.NextAfter != 7 {
		t.Errorf("after 7 the history is %+v", none)
	}
}

func TestAnOperatorConfiguresDeletesAndRestores(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.do("PUT", "/v1/elections/planner", `{"leaseDuration":"1m","lockDelay":"1500ms"}`)
	if l := a.lease(t); l.Configuration.LeaseDuration.String() != "60s" || l.Configuration.LockDelay.String() != "1.5s" || a.header.Get("ETag") != `"1"` {
		t.Errorf("configured: %v %s", a.header, a.body)
	}
	if p := w.do("PUT", "/v1/elections/planner", `{}`, "If-Match", `"7"`).problem(t); p.Code != leadership.RevisionMismatch || p.Revision != 1 {
		t.Errorf("with a stale condition: %+v", p)
	}
	w.do("PUT", "/v1/elections/planner", `{}`, "If-Match", `"1"`).lease(t)
	if p := w.do("PUT", "/v1/elections/other", `{}`, "If-Match", `"1"`).problem(t); p.Code != leadership.RevisionMismatch {
		t.Errorf("a condition on what does not exist: %+v", p)
	}
	for _, header := range []string{"", "*"} {
		for _, call := range [][3]string{{"PUT", "planner", `{}`}, {"DELETE", "planner", ""}, {"POST", "planner:resume", `{"reason":"x","actor":"ann"}`}} {
			if p := w.do(call[0], "/v1/elections/"+call[1], call[2], "If-Match", header).problem(t); p.Code != leadership.InvalidArgument || len(p.Errors) != 1 || p.Errors[0].Parameter != "If-Match" {
				t.Errorf("%s with the condition %q: %+v", call, header, p)
			}
		}
	}
	if l := w.do("PUT", "/v1/elections/another", `{}`, "If-None-Match", `*`).lease(t); l.Revision != 1 {
		t.Errorf("a new one: %+v", l)
	}
	w.acquire()
	if p := w.do("DELETE", "/v1/elections/planner", "").problem(t); p.Code != leadership.LeaseHeld {
		t.Errorf("deleted while it is held: %+v", p)
	}
	if l := w.do("DELETE", "/v1/elections/planner?force=true", "", "If-Match", `"3"`).lease(t); !l.Deleted || l.LockedForMs != 30_000 {
		t.Errorf("deleted by force: %+v", l)
	}
	w.do("DELETE", "/v1/elections/planner", "").lease(t)
	for _, target := range []string{"POST /v1/elections/planner:acquire", "GET /v1/elections/planner"} {
		method, path, _ := strings.Cut(target, " ")
		body := map[string]string{"POST": `{"candidateId":"agent-7"}`}[method]
		want := map[string]leadership.Code{"POST": leadership.ElectionDeleted, "GET": leadership.NotFound}[method]
		if p := w.do(method, path, body).problem(t); p.Code != want || p.Lease == nil || !p.Deleted {
			t.Errorf("%s after the delete: %+v", target, p)
		}
	}
	if l := w.do("PUT", "/v1/elections/planner", `{}`).lease(t); l.Deleted || l.FencingToken != 1 || l.Revision != 5 {
		t.Errorf("brought back: %+v", l)
	}
	if p := w.do("DELETE", "/v1/elections/never-seen", "").problem(t); p.Code != leadership.NotFound {
		t.Errorf("deleted what was never seen: %+v", p)
	}
}

func TestUnlockTellsWhatToAcknowledgeAndThenFreesTheElection(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	p := w.do("POST", "/v1/elections/planner:unlock", `{"actor":"olga","reason":"the host is gone"}`).problem(t)
	_, sentence, _ := strings.Cut(p.Detail, "acknowledge: ")
	if p.Code != leadership.LeaseHeld || p.Status != 409 || p.Lease == nil || sentence != "two leaders may believe until "+p.LeaseExpiration.Format(time.RFC3339Nano) {
		t.Fatalf("without an acknowledgement: %+v", p)
	}
	a := w.do("POST", "/v1/elections/planner:unlock", `{"actor":"olga","reason":"the host is gone","acknowledge":"`+sentence+`"}`)
	if l := a.lease(t); l.State != leadership.Vacant || l.LockedForMs != 0 || l.FencingToken != 1 || a.header.Get("ETag") != `"2"` {
		t.Errorf("unlocked: %v %s", a.header, a.body)
	}
	a = w.do("GET", "/v1/elections/planner/events?after=1", "")
	if !strings.Contains(string(a.body), `"type":"unlocked"`) || !strings.Contains(string(a.body), `"reason":"the host is gone"`) || !strings.Contains(string(a.body), `"twoMayBelieveUntil":"`) || !strings.Contains(string(a.body), `"actor":"olga"`) {
		t.Errorf("the event: %s", a.body)
	}
}

func TestTheSpecificationIsServed(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.do("GET", "/openapi.yaml", "", "Accept", "application/yaml")
	if string(a.body) != string(httpapi.Spec()) || a.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%d bytes of %s, want %d", len(a.body), a.header.Get("Content-Type"), len(httpapi.Spec()))
	}
	tag := a.header.Get("ETag")
	if a := w.do("GET", "/openapi.yaml", "", "If-None-Match", `"old", W/`+tag); a.status != http.StatusNotModified || len(a.body) > 0 || a.header.Get("ETag") != tag {
		t.Errorf("the same document again: status %d, %d bytes, %v", a.status, len(a.body), a.header)
	}
	for name, value := range map[string]string{"If-None-Match": `"old"`, "Range": "bytes=0-9"} {
		if a := w.do("GET", "/openapi.yaml", "", name, value); a.status != http.StatusOK || len(a.body) != len(httpapi.Spec()) {
			t.Errorf("%s: %s: status %d, %d bytes", name, value, a.status, len(a.body))
		}
	}
}

// A default value counts as left out, and a configuration may be sent back as it was read.
func TestAConfigurationIsShownAsItWasSet(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const all = `"policy":{"maxTerm":"28800s","approval":{"every":"3600s","need":2},"stuckAfter":"300s","budget":{"tokensUsed":200000},"errorRate":{"max":0.5,"min":20},"onTrip":"notify","cooldown":"600s","cooldownOf":"principal","verdicts":2}`
	for body, want := range map[string]string{
		`{` + all + `}`: all,
		`{"policy":{"require":[],"prefer":[],"preempt":false,"minTerm":"0s"}}`:                                            `{"leaseDuration":"30s","lockDelay":"0s"}`,
		`{"policy":{"strategy":"priority","window":"0s"}}`:                                                                `"policy":{"strategy":"priority","window":"0s"}`,
		`{"policy":{"quorum":{"electorate":["b","a","c"],"need":"majority"}}}`:                                            `"policy":{"window":"0.3s","quorum":{"electorate":["a","b","c"],"need":"majority","grace":"10s"}}`,
		`{"policy":{"quorum":{"electorate":["a","b","c"],"need":3,"grace":"1ms"},"window":"30s","strategy":"firstCome"}}`: `"policy":{"window":"30s","quorum":{"electorate":["a","b","c"],"need":3,"grace":"0.001s"}}`,
	} {
		a := w.do("PUT", toPlanner, body)
		if a.lease(t); !strings.Contains(string(a.body), want) {
			t.Errorf("%s is answered %s, want %s", body, a.body, want)
		}
		l := w.do("GET", toPlanner, "").lease(t)
		again, err := wire.Marshal(l.Configuration)
		require.NoError(t, err)
		if b := w.do("PUT", toPlanner, string(again)); b.lease(t).Revision != l.Revision {
			t.Errorf("%s, sent back as it was read, changes the election: %s", again, b.body)
		}
	}
}

func TestABallotIsToldByItsRefusals(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("PUT", toPlanner, `{"policy":{"strategy":"priority","require":["gpu"],"window":"2s"}}`).lease(t)
	if p := w.do("POST", toPlanner+":acquire", `{"candidateId":"bare"}`).problem(t); p.Code != leadership.NotEligible || !strings.Contains(p.Detail, "gpu") || p.RetryAfterMs != 0 {
		t.Errorf("without the capability: %+v", p)
	}
	for _, c := range []struct {
		id, more     string
		reason       leadership.Reason
		retry        int64
		position, of int
	}{
		{"ann", `,"priority":5`, leadership.ReasonBallot, 2000, 1, 1},
		{"bob", `,"priority":7`, leadership.ReasonBallot, 2000, 1, 2},
		{"cy", `,"priority":-7`, leadership.ReasonOutranked, 2400, 3, 3},
		{"dan", `,"role":"witness"`, leadership.ReasonWitness, 0, 0, 0},
	} {
		a := w.do("POST", toPlanner+":acquire", `{"candidateId":"`+c.id+`","key":"`+key+`","capabilities":["gpu"]`+c.more+`}`)
		p := a.problem(t)
		if a.status != 409 || p.Code != leadership.LeaseHeld || p.Reason != c.reason || p.Cause == nil || p.Cause.UntilMs != p.RetryAfterMs || p.Lease == nil {
			t.Errorf("%s%s: %d %s; want the reason %s and its cause", c.id, c.more, a.status, a.body, c.reason)
		} else if c.retry > 0 && (p.RetryAfterMs != c.retry || p.Cause.Position != c.position || p.Cause.Of != c.of) {
			t.Errorf("%s%s: %s; want place %d of %d, and to come again after %d ms", c.id, c.more, a.body, c.position, c.of, c.retry)
		}
	}
}
