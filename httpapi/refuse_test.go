package httpapi_test

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/wire"
)

// bad is an invalid request, and the expected answer.
type bad struct {
	name    string
	request string // method and target
	body    string
	headers []string
	status  int
	code    leadership.Code
	detail  string // a part of it
	where   string // the pointer or the parameter, if there is one
}

// refuse sends each request to a fixture in which agent-7 leads planner, and requires that nothing
// is changed.
func refuse(t *testing.T, requests []bad) {
	t.Helper()
	for _, b := range requests {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.acquire()
			before := w.state()
			method, target, _ := strings.Cut(b.request, " ")
			a := w.do(method, target, b.body, b.headers...)
			p := a.problem(t)
			if a.status != b.status || p.Code != b.code || p.Status != b.status {
				t.Errorf("status %d, code %s; want %d, %s: %s", a.status, p.Code, b.status, b.code, a.body)
			}
			if !strings.Contains(p.Detail, b.detail) {
				t.Errorf("detail %q does not contain %q", p.Detail, b.detail)
			}
			if got := where(p); got != b.where {
				t.Errorf("the wrong part is %q, want %q: %s", got, b.where, a.body)
			}
			if p.RequestID == "" || p.RequestID != a.header.Get(wire.RequestIDHeader) || a.header.Get("Content-Type") != wire.ProblemType {
				t.Errorf("request id %q, headers %v", p.RequestID, a.header)
			}
			if after := w.state(); after != before {
				t.Errorf("the refused request changed\n%s\ninto\n%s", before, after)
			}
		})
	}
}

func where(p wire.Problem) string {
	if len(p.Errors) == 0 {
		return ""
	}
	return p.Errors[0].Pointer + p.Errors[0].Parameter
}

const (
	toAcquire   = "POST /v1/elections/planner:acquire"
	toRenew     = "POST /v1/elections/planner:renew"
	toRelease   = "POST /v1/elections/planner:release"
	toCheck     = "POST /v1/elections/planner:checkToken"
	toConfigure = "PUT /v1/elections/planner"
	toDelete    = "DELETE /v1/elections/planner"
	toBatch     = "POST /v1/elections:batchRenew"
	toChecks    = "POST /v1/elections:batchCheckTokens"
	candidate   = `{"candidateId":"agent-8"}`
)

// Every call refuses a parameter, a field and a condition that it does not take, and a name that no
// election has.
func TestEveryCallRefusesWhatItDoesNotTake(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	before := w.state()
	doc := apitest.Load(t)
	for _, row := range wire.Verbs() {
		at := func(election string) string {
			return strings.NewReplacer("{election}", election, "{candidate}", "agent-7").Replace(row.Path)
		}
		refused := func(want, target, body string, headers ...string) {
			t.Helper()
			a := w.do(row.Method, target, body, append(headers, "Accept", cmp.Or(row.Type, "*/*"))...)
			p := a.problem(t)
			if a.status != 400 || p.Code != leadership.InvalidArgument || where(p) != want {
				t.Errorf("%s: %s with %s %q: %s; want that %q is wrong", row.Verb, target, body, headers, a.body, want)
			}
		}
		body, unknown := "", ""
		if operationOf(doc, row).At("requestBody").Value() != nil {
			body, unknown = "{}", `{"unheardOf":1}`
			refused("/unheardOf", at("planner"), unknown)
		}
		refused("", at("planner")+"?unheardOf=1", body)
		if !row.Conditional {
			refused("If-Match", at("planner"), body, "If-Match", `"1"`)
		}
		if row.Method != http.MethodGet && row.Verb != wire.VerbConfigure {
			refused("If-None-Match", at("planner"), body, "If-None-Match", `"1"`)
		}
		if at("planner") != at("Planner") && body == "" {
			refused("election", at("Planner"), "", "If-Match", map[bool]string{true: `"1"`}[row.Conditional])
		}
	}
	if after := w.state(); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

func TestUnknownPathsAndMethodsAreRefused(t *testing.T) {
	t.Parallel()
	const none = "there is no such path"
	refuse(t, []bad{
		{name: "the root", request: "GET /", status: 404, code: leadership.NotFound, detail: none},
		{name: "a slash too many", request: "GET /v1/elections/planner/", status: 404, code: leadership.NotFound, detail: none},
		{name: "a way out of the elections", request: "PUT /v1/elections/../planner", body: `{}`, status: 404, code: leadership.NotFound, detail: none},
		{name: "an empty name", request: "POST /v1/elections/:acquire", body: candidate, status: 404, code: leadership.NotFound, detail: none},
		{name: "an empty segment", request: "GET /v1/elections//events", status: 400, code: leadership.InvalidArgument, detail: "an election needs a name", where: "election"},
		{name: "two verbs", request: "POST /v1/elections/planner:renew:acquire", body: candidate, status: 404, code: leadership.NotFound, detail: none},
		{name: "a candidate without a verb", request: "GET /v1/elections/planner/candidates/agent-8", status: 404, code: leadership.NotFound, detail: none},
		{name: "POST without a verb", request: "POST /v1/elections/planner", body: candidate, status: 405, code: wire.MethodNotAllowed, detail: "this path allows GET, PUT, DELETE"},
		{name: "an unknown method", request: "STEAL /v1/elections/planner:acquire", body: candidate, status: 405, code: wire.MethodNotAllowed, detail: "this path allows POST"},
		{name: "an unknown method on an unknown path", request: "STEAL /nothing", status: 404, code: leadership.NotFound, detail: none},
		{name: "a path that is too long", request: "GET /v1/elections/" + strings.Repeat("a", wire.MaxURI), status: 414, code: wire.URITooLong, detail: "must not exceed 8192 bytes"},
	})
}

func TestInvalidNamesAreRefused(t *testing.T) {
	t.Parallel()
	var requests []bad
	for name, detail := range map[string]string{
		"..":        "begins and ends with a letter or digit",
		"a%2Fb":     `has "%" at position 2`,
		"a%00b":     `has "\x00" at position 2`,
		"%70lanner": `has "%" at position 1`,
	} {
		requests = append(requests, bad{
			name: name, request: "POST /v1/elections/" + name + ":acquire", body: candidate,
			status: 400, code: leadership.InvalidArgument, detail: detail, where: "election",
		})
	}
	refuse(t, requests)
}

func TestInvalidBodiesAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	refuse(t, []bad{
		{name: "nothing", request: toAcquire, headers: []string{"Content-Type", "application/json"}, status: 400, code: wrong, detail: "the body is empty"},
		{name: "no type", request: toAcquire, body: candidate, headers: []string{"Content-Type", ""}, status: 415, code: wire.UnsupportedMediaType, detail: "send the header Content-Type"},
		{name: "text", request: toRenew, body: asLeader, headers: []string{"Content-Type", "text/plain"}, status: 415, code: wire.UnsupportedMediaType, detail: `not "text/plain"`},
		{name: "another character set", request: toAcquire, body: candidate, headers: []string{"Content-Type", "application/json; charset=utf-16"}, status: 415, code: wire.UnsupportedMediaType, detail: "in UTF-8"},
		{name: "compressed", request: toAcquire, body: candidate, headers: []string{"Content-Encoding", "gzip"}, status: 415, code: wire.UnsupportedMediaType, detail: "without a Content-Encoding"},
		{name: "a reply that is no JSON", request: toAcquire, body: candidate, headers: []string{"Accept", "text/html"}, status: 406, code: wire.NotAcceptable, detail: "replies are application/json"},
		{name: "a journal in another format", request: "GET /v1/elections/planner/journal", headers: []string{"Accept", "text/csv"}, status: 406, code: wire.NotAcceptable, detail: "application/json or text/event-stream"},
		{name: "a body of a GET", request: "GET /v1/elections/planner", body: `{}`, status: 400, code: wrong, detail: "a GET of this API has no body"},
		{name: "too large", request: toAcquire, body: `{"candidateId":"agent-8"` + strings.Repeat(" ", wire.MaxBody) + `}`, status: 413, code: wire.PayloadTooLarge, detail: "must not exceed 16384 bytes"},
		{name: "a batch that is too large", request: toBatch, body: `{"renewals":[` + strings.Repeat(" ", wire.MaxBatchBody) + `]}`, status: 413, code: wire.PayloadTooLarge, detail: "must not exceed 2097152 bytes"},
		{name: "a zip bomb by another name", request: toAcquire, body: "\x1f\x8b\x08\x00", status: 400, code: wrong, detail: "not one JSON object in UTF-8"},
	})
}

// The packages leadership and wire define the valid values of fields, and test them. This test has
// one field of each kind of call.
func TestWrongFieldsAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	to := func(verb string) string { return "POST " + toPlanner + verb }
	refuse(t, []bad{
		{name: "an election of Regent's own", request: "POST /v1/elections/regent.relay:acquire", body: candidate, status: 400, code: wrong, detail: `begin with "regent." are reserved for Regent itself; choose another name`, where: "election"},
		{name: "a configuration of Regent's own", request: "PUT /v1/elections/regent.relay", body: `{}`, status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "a deletion of Regent's own", request: "DELETE /v1/elections/regent.relay?force=true", status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "an order about Regent's own", request: "POST /v1/elections/regent.relay:resume", body: "{" + word, status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "a child of Regent's own", request: "POST /v1/elections/regent:delegate", body: leads(`"child":"relay"`), status: 400, code: wrong, detail: "reserved for Regent itself", where: "/child"},
		{name: "a member of Regent's own", request: "GET /v1/elections/regent.relay/journal?member=node-2", status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "a hand-over of Regent's own", request: "POST /v1/elections/regent.relay:handOver", body: leads(`"to":"agent-8"`), status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "joining Regent's own", request: "POST /v1/elections/regent.relay:join", body: `{"candidateId":"node-2","role":"worker","ttl":"30s"}`, status: 400, code: wrong, where: "election", detail: "reserved for Regent itself"},
		{name: "a wait that is too long", request: toAcquire, body: `{"candidateId":"agent-8","wait":"60001ms"}`, status: 400, code: wrong, detail: "wait is from 0s to 60s in whole milliseconds, not 60.001s; to wait for longer, ask again", where: "/wait"},
		{name: "too much metadata", request: toAcquire, body: `{"candidateId":"agent-8","metadata":{"a":"` + strings.Repeat("a", 4096) + `"}}`, status: 400, code: wrong, detail: "at most 4096 bytes", where: "/metadata"},
		{name: "a renewal without a key", request: toRenew, body: `{"candidateId":"agent-7","fencingToken":1}`, status: 400, code: wrong, detail: "key is missing", where: "/key"},
		{name: "a report of a release", request: toRelease, body: leads(`"report":{"progress":1}`), status: 400, code: wrong, detail: "a release takes no report; send it with a renewal before, or leave it out", where: "/report"},
		{name: "a check of nothing", request: toCheck, body: `{}`, status: 400, code: wrong, detail: "fencingToken is missing", where: "/fencingToken"},
		{name: "a long lock", request: toConfigure, body: `{"lockDelay":"25h"}`, status: 400, code: wrong, detail: "lockDelay is from 0s to 24h", where: "/lockDelay"},
		{name: "a quorum of too many", request: toConfigure, body: `{"policy":{"window":"1s","quorum":{"electorate":["a"],"need":4}}}`, status: 400, code: wrong, detail: "policy.quorum.need is", where: "/policy/quorum/need"},
		{name: "a large batch", request: toChecks, body: `{"checks":[0` + strings.Repeat(",0", 500) + `]}`, status: 400, code: wrong, detail: "from 1 to 500 elections, this one has 501", where: "/checks"},
		{name: "an election twice", request: toBatch, body: `{"renewals":[{"election":"planner",` + asLeader[1:] + `,{"election":"planner",` + asLeader[1:] + `]}`, status: 400, code: wrong, detail: `election "planner" stands in the batch twice`, where: "/renewals"},
		{name: "an order without an actor", request: to(":resume"), body: `{"reason":"x"}`, status: 400, code: wrong, detail: "actor is missing: say who gives the order", where: "/actor"},
		{name: "a ban of a principal, of callers that are not verified", request: to(":ban"), body: `{"principal":"eve","for":"1h",` + word, status: 400, code: wrong, detail: "this server does not verify its callers", where: "/principal"},
		{name: "a verdict without evidence", request: to(":judge"), body: `{"fencingToken":1,"verdict":"bad","actor":"eve"}`, status: 400, code: wrong, detail: "evidence is missing", where: "/evidence"},
		{name: "stepping down without a reason", request: to(":stepDown"), body: asLeader, status: 400, code: wrong, detail: "reason is missing", where: "/reason"},
		{name: "asking where no approval is needed", request: to(":requestApproval"), body: leads(`"note":"x"`), status: 400, code: wrong, detail: "needs no approval", where: "election"},
		{name: "asking for a new epoch in words", request: to(":requestApproval"), body: leads(`"note":"x","newEpoch":"yes"`), status: 400, code: wrong, detail: "newEpoch", where: "/newEpoch"},
		{name: "an explanation of no candidate", request: "GET " + toPlanner + "/candidates/a%20b:explain", status: 400, code: wrong, detail: `has " " at position 2`, where: "/candidateId"},
		{name: "a member with a fine ttl", request: to(":join"), body: `{"candidateId":"node-2","role":"worker","ttl":"10.0005s"}`, status: 400, code: wrong, where: "/ttl", detail: "ttl is in whole milliseconds"},
		{name: "a check to delete", request: toCheck, body: `{"fencingToken":1,"use":"delete"}`, status: 400, code: wrong, where: "/use", detail: `use is "read" or "write", or left out, not "delete"`},
		{name: "leaving with a bad name", request: to(":leave"), body: `{"candidateId":"node 2"}`, status: 400, code: wrong, where: "/candidateId", detail: `has " " at position 5`},
		{name: "acknowledgement in an hour", request: to(":awaitAcknowledgement"), body: `{"fencingToken":1,"need":1,"wait":"61s"}`, status: 400, code: wrong, where: "/wait", detail: "wait is from 0s to 60s in whole milliseconds, not 61s"},
		{name: "a hand-over to the leader", request: to(":handOver"), body: leads(`"to":"agent-7"`), status: 400, code: wrong, detail: "to is another candidate than the leader", where: "/to"},
		{name: "a child that is too deep", request: to(":delegate"), body: leads(`"child":"a","limits":{"depth":33}`), status: 400, code: wrong, detail: "limits.depth is from 0 to 32, not 33", where: "/limits/depth"},
		{name: "a checkpoint nowhere", request: "PUT " + toPlanner + "/checkpoint", body: leads(`"sequence":1,"uri":"no scheme"`), status: 400, code: wrong, detail: "uri is a URI of at most 2048 bytes", where: "/uri"},
		{name: "an append of too many", request: to("/journal:append"), body: leads(`"after":0,"entries":[{"data":1}` + strings.Repeat(`,{"data":1}`, 500) + `]`), status: 400, code: wrong, detail: "from 1 to 500 entries, not 501", where: "/entries"},
		{name: "a snapshot of nothing", request: "PUT " + toPlanner + "/journal/snapshot", body: leads(`"upTo":0,"data":1`), status: 400, code: wrong, detail: "upTo is an index, 1 or more, not 0", where: "/upTo"},
	})
}

func TestWrongParametersAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	list, history, journal := "GET /v1/elections?", "GET /v1/elections/planner/events?", "GET /v1/elections/planner/journal"
	stream := []string{"Accept", wire.StreamType}
	refuse(t, []bad{
		{name: "an unknown parameter", request: list + "filter=x", status: 400, code: wrong, detail: `query parameter "filter" is unknown; the known ones are: prefix, pageSize, pageToken`},
		{name: "a repeated parameter", request: list + "prefix=a&prefix=b", status: 400, code: wrong, detail: "prefix occurs 2 times in the query", where: "prefix"},
		{name: "a bad prefix", request: list + "prefix=A", status: 400, code: wrong, detail: `no election's name begins with "A"`, where: "prefix"},
		{name: "a huge page", request: list + "pageSize=1000000000", status: 400, code: wrong, detail: "pageSize is from 1 to 1000", where: "pageSize"},
		{name: "a page size that is no number", request: list + "pageSize=ten", status: 400, code: wrong, detail: `an integer in decimal digits, not "ten"`, where: "pageSize"},
		{name: "a forged page token", request: list + "pageToken=..%2F..", status: 400, code: wrong, detail: "begins and ends with", where: "pageToken"},
		{name: "half an escape", request: list + "prefix=%2", status: 400, code: wrong, detail: "the query cannot be read"},
		{name: "another consistency", request: "GET /v1/elections/planner?consistency=eventual", status: 400, code: wrong, detail: `consistency must be "strong", not "eventual"`, where: "consistency"},
		{name: "a long poll for any revision", request: "GET /v1/elections/planner?wait=30s", headers: []string{"If-None-Match", "*"}, status: 400, code: wrong, detail: "send If-None-Match", where: "wait"},
		{name: "a long poll that is too long", request: "GET /v1/elections/planner?wait=61s", headers: []string{"If-None-Match", `"1"`}, status: 400, code: wrong, detail: `wait must be a duration from 0s to 60s in whole milliseconds, such as "30s", not "61s"`, where: "wait"},
		{name: "a revision that was never seen", request: "GET /v1/elections/planner?minRevision=7", status: 412, code: leadership.RevisionMismatch, detail: "the newest is 1"},
		{name: "a revision below none", request: "GET /v1/elections/planner?minRevision=-1", status: 400, code: wrong, detail: "minRevision must be a revision, 0 or more", where: "minRevision"},
		{name: "a stream from two places", request: "GET /v1/elections/planner/events", headers: append([]string{"Last-Event-ID", "1\n2"}, stream...), status: 400, code: wrong, detail: "2 times", where: "Last-Event-ID"},
		{name: "a stream from a word", request: "GET /v1/elections/planner/events", headers: append([]string{"Last-Event-ID", "seven"}, stream...), status: 400, code: wrong, detail: `a revision, not "seven"`, where: "Last-Event-ID"},
		{name: "a stream from a revision that was never seen", request: history + "after=7", headers: stream, status: 412, code: leadership.RevisionMismatch, detail: "the newest is 1"},
		{name: "a stream with a limit", request: history + "limit=7", headers: stream, status: 400, code: wrong, detail: `"limit" is unknown; the known ones are: after`},
		{name: "a stream of a bad member", request: history + "member=node%202", headers: stream, status: 400, code: wrong, where: "member", detail: `has " " at position 5`},
		{name: "a history of a member", request: history + "member=a", status: 400, code: wrong, detail: `query parameter "member" is unknown`},
		{name: "a revision that is no number", request: history + "after=1.5", status: 400, code: wrong, detail: "an integer in decimal digits", where: "after"},
		{name: "a revision that is none", request: history + "after=-1", status: 400, code: wrong, detail: "0 or more, not -1", where: "after"},
		{name: "a limit of nothing", request: history + "limit=0", status: 400, code: wrong, detail: "limit is from 1 to 1000, not 0", where: "limit"},
		{name: "a stream of all from a revision", request: "GET /v1/events?after=7", status: 400, code: wrong, detail: "a cursor is what a stream of all elections gave", where: "after"},
		{name: "a stream of all from the future", request: "GET /v1/events?after=2999-01-01T00:00:00Z", status: 400, code: wrong, detail: "it is another store's; leave it out", where: "after"},
		{name: "a stream of one and many", request: "GET /v1/events?prefix=a&of=b", status: 400, code: wrong, detail: "give one of them", where: "/of"},
		{name: "a stream of no election", request: "GET /v1/events?of=A", status: 400, code: wrong, where: "/of"},
		{name: "a stream of names that are none", request: "GET /v1/events?prefix=A&after=2027-03-01T11:00:00Z", status: 400, code: wrong, detail: "no election's name begins with", where: "prefix"},
		{name: "force that is neither", request: toDelete + "?force=yes", status: 400, code: wrong, detail: `force must be true or false, not "yes"`, where: "force"},
		{name: "a weak condition", request: toDelete + "?force=true", headers: []string{"If-Match", `W/"1"`}, status: 400, code: wrong, detail: "weak tags and lists are not accepted", where: "If-Match"},
		{name: "two conditions", request: toConfigure, body: `{}`, headers: []string{"If-Match", "\"1\"\n\"2\""}, status: 400, code: wrong, detail: "weak tags and lists are not accepted", where: "If-Match"},
		{name: "a revision that a configuration must not meet", request: toConfigure, body: `{}`, headers: []string{"If-None-Match", `"1"`}, status: 400, code: wrong, detail: `must be *, for an election that was never seen, and not "\"1\""; to expect a revision, send it in If-Match`, where: "If-None-Match"},
		{name: "both conditions", request: toConfigure, body: `{}`, headers: []string{"If-None-Match", "*", "If-Match", `"1"`}, status: 400, code: wrong, detail: "send If-Match, for an election that exists, or If-None-Match", where: "If-None-Match"},
		{name: "a new election that is none", request: toConfigure, body: `{"lockDelay":"9s"}`, headers: []string{"If-None-Match", "*"}, status: 412, code: leadership.RevisionMismatch, detail: "exists already, at revision 1"},
		{name: "a stale condition", request: toDelete + "?force=true", headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
		{name: "an order with a stale condition", request: "POST " + toPlanner + ":pause", body: `{"for":"1h",` + word, headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
		{name: "a verdict with a stale condition", request: "POST " + toPlanner + ":judge", body: `{"fencingToken":1,"verdict":"bad","evidence":"x","actor":"eve"}`, headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
		{name: "a journal of too many", request: journal + "?limit=1001", status: 400, code: wrong, detail: "limit is from 1 to 1000, not 1001", where: "limit"},
		{name: "a journal after less than nothing", request: journal + "?after=-1", status: 400, code: wrong, detail: "after is the index of an entry, or 0, and not -1", where: "after"},
		{name: "a journal that no member has applied", request: journal + "?applied=3", status: 400, code: wrong, detail: "name the member, too", where: "applied"},
		{name: "a journal that was applied in part", request: journal + "?member=node-2&applied=1.5", status: 400, code: wrong, detail: "applied must be an integer", where: "applied"},
		{name: "a journal of a bad member", request: journal + "?member=a%20b", status: 400, code: wrong, detail: "member is the candidate id", where: "member"},
		{name: "a stream of a journal after a bad id", request: journal, headers: append([]string{wire.LastEventIDHeader, "7.0"}, stream...), status: 400, code: wrong, detail: "must be the id of the last entry that was read", where: wire.LastEventIDHeader},
	})
}

func TestCallsThatTheRulesRefuseChangeNothing(t *testing.T) {
	t.Parallel()
	asStranger := strings.Replace(asLeader, key, otherKey, 1)
	refuse(t, []bad{
		{name: "another candidate", request: toAcquire, body: candidate, status: 409, code: leadership.LeaseHeld, detail: `"agent-7" leads election "planner"`},
		{name: "another incarnation", request: toAcquire, body: `{"candidateId":"agent-7"}`, status: 409, code: leadership.LeaseHeld, detail: "with another key"},
		{name: "a renewal with another key", request: toRenew, body: asStranger, status: 409, code: leadership.LeaseLost, detail: "granted with another key"},
		{name: "a renewal of a future token", request: toRenew, body: strings.Replace(asLeader, ":1}", ":2}", 1), status: 409, code: leadership.LeaseLost, detail: "stop acting as its leader"},
		{name: "a release with another key", request: toRelease, body: asStranger, status: 409, code: leadership.LeaseLost, detail: "granted with another key"},
		{name: "a future token", request: toCheck, body: `{"fencingToken":2}`, status: 409, code: leadership.TokenStale, detail: "was never granted"},
		{name: "a delete while it is held", request: toDelete, status: 409, code: leadership.LeaseHeld, detail: "delete it by force"},
		{name: "an eviction of a future token", request: "POST " + toPlanner + ":evict", body: `{"fencingToken":2,` + word, status: 409, code: leadership.TokenStale, detail: "was never granted; the newest is 1"},
		{name: "ready without a hand-over", request: "POST " + toPlanner + ":ready", body: asOther + `,"fencingToken":1}`, status: 409, code: leadership.NotEligible, detail: "is not the successor"},
		{name: "a yield without a successor", request: "POST " + toPlanner + ":yield", body: asLeader, status: 409, code: leadership.NotReady, detail: "yield again once it is, or release the lease"},
		{name: "a child by another key", request: "POST " + toPlanner + ":delegate", body: strings.TrimSuffix(asStranger, "}") + `,"child":"a"}`, status: 409, code: leadership.LeaseLost},
		{name: "a checkpoint by another key", request: "PUT " + toPlanner + "/checkpoint", body: strings.TrimSuffix(asStranger, "}") + `,"sequence":1,"data":1}`, status: 409, code: leadership.LeaseLost},
		{name: "a journal of another key", request: "POST " + toPlanner + "/journal:open", body: asStranger, status: 409, code: leadership.LeaseLost},
	})
	w := newFixture(t)
	for _, path := range []string{"", "/tree", "/checkpoint", "/journal/snapshot", "/overrides", "/candidates/agent-7:explain"} {
		if p := w.do("GET", "/v1/elections/other"+path, "").problem(t); p.Code != leadership.NotFound {
			t.Errorf("%s of an election that was never seen: %+v", path, p)
		}
	}
}

func TestAcceptChoosesTheReply(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for accept, want := range map[string]int{
		"": 200, "*/*": 200, "application/*": 200, "application/json": 200, "text/html, application/json;q=0.1": 200, "application/json;q=x": 200,
		"text/html, */*;q=0.8": 200, "application/problem+json": 406, "*/*;q=0": 406, "application/*;q=0, */*": 406, "rubbish/": 406,
	} {
		if got := w.do("GET", "/health/live", "", "Accept", accept).status; got != want {
			t.Errorf("Accept: %q has status %d, want %d", accept, got, want)
		}
	}
}

// A body of unknown length is read to its limit and no further.
func TestABodyOfUnknownLengthIsBoundedToo(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	counter := &countingReader{Reader: io.MultiReader(strings.NewReader(`{"candidateId":"`), endless{})}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/elections/planner:acquire", counter)
	request.Header.Set("Content-Type", wire.ContentType)
	if a := w.send(request, ""); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", a.status, a.body)
	}
	if counter.n > 2*wire.MaxBody {
		t.Errorf("%d bytes were read", counter.n)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("a"), len(p))), nil }

type countingReader struct {
	io.Reader
	n int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += n
	return n, err
}
