package httpapi_test

import (
	"strings"
	"testing"

	"regent/leadership"
	"regent/leadership/wire"
)

func TestWrongOrdersAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	to := func(verb string) string { return "POST /v1/elections/planner:" + verb }
	body := func(fields string) string { return "{" + fields + "," + word }
	refuse(t, []bad{
		{name: "no reason", request: to("resume"), body: `{"actor":"ann"}`, status: 400, code: wrong, detail: "reason is missing", where: "/reason"},
		{name: "no actor", request: to("resume"), body: `{"reason":"x"}`, status: 400, code: wrong, detail: "actor is missing: say who gives the order", where: "/actor"},
		{name: "an unknown field", request: to("pause"), body: body(`"for":"1h","until":"tomorrow"`), status: 400, code: wrong, detail: `unknown field "until"; the fields here are candidateId, principal, for, mode`, where: "/until"},
		{name: "an assignment of nothing", request: to("assign"), body: body(`"for":"1h"`), status: 400, code: wrong, detail: "candidateId is missing: assign needs it", where: "/candidateId"},
		{name: "an assignment with a mode", request: to("assign"), body: body(`"candidateId":"agent-8","for":"1h","mode":"drain"`), status: 400, code: wrong, detail: "assign takes no mode; leave it out", where: "/mode"},
		{name: "an eviction of a future token", request: to("evict"), body: body(`"fencingToken":2`), status: 409, code: leadership.TokenStale, detail: "was never granted; the newest is 1"},
		{name: "a pause without a unit", request: to("pause"), body: body(`"for":"3600"`), status: 400, code: wrong, detail: `not "3600"`, where: "/for"},
		{name: "a ban of a principal, of callers that are not verified", request: to("ban"), body: body(`"principal":"eve","for":"1h"`), status: 400, code: wrong, detail: "this server does not verify its callers", where: "/principal"},
		{name: "an approval that is not needed", request: to("approve"), body: body(`"fencingToken":1`), status: 400, code: wrong, detail: "needs no approval; its policy has no approval.every", where: "/fencingToken"},
		{name: "an approval of a future token", request: to("approve"), body: body(`"fencingToken":2,"newEpoch":true`), status: 409, code: leadership.TokenStale, detail: "is not that of the present leader"},
		{name: "a lift of nothing", request: to("lift"), body: "{" + word, status: 400, code: wrong, detail: "override is missing: lift needs it", where: "/override"},
		{name: "an order about an election of Regent's own", request: "POST /v1/elections/regent.relay:pause", body: body(`"for":"1h"`), status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "an order about an election that does not exist", request: "POST /v1/elections/other:pause", body: body(`"for":"1h"`), status: 404, code: leadership.NotFound, detail: "never seen"},
		{name: "an order with a query", request: to("pause") + "?force=true", body: body(`"for":"1h"`), status: 400, code: wrong, detail: `"force" is unknown`},
		{name: "an order with a stale condition", request: to("pause"), body: body(`"for":"1h"`), headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
		{name: "an order with GET", request: "GET /v1/elections/planner:pause", status: 405, code: wire.MethodNotAllowed, detail: "this path allows POST"},
	})
}

func TestWrongReportsVerdictsAndPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	to := func(verb string) string { return "POST /v1/elections/planner:" + verb }
	leads := func(more string) string { return strings.TrimSuffix(asLeader, "}") + "," + more + "}" }
	refuse(t, []bad{
		{name: "a report of a release", request: toRelease, body: leads(`"report":{"progress":1}`), status: 400, code: wrong, detail: "a release takes no report; send it with a renewal before, or leave it out", where: "/report"},
		{name: "a report that is a text", request: toRenew, body: leads(`"report":"fine"`), status: 400, code: wrong, detail: "a report is a JSON object", where: "/report"},
		{name: "a large report", request: toRenew, body: leads(`"report":{"custom":{"a":"` + strings.Repeat("x", 2048) + `"}}`), status: 400, code: wrong, detail: "a report has at most 2048 bytes", where: "/report"},
		{name: "a verdict that is neither", request: to("judge"), body: `{"fencingToken":1,"verdict":"so-so","evidence":"x","actor":"eve"}`, status: 400, code: wrong, detail: `verdict is "bad" or "good"`, where: "/verdict"},
		{name: "a verdict without evidence", request: to("judge"), body: `{"fencingToken":1,"verdict":"bad","actor":"eve"}`, status: 400, code: wrong, detail: "evidence is missing", where: "/evidence"},
		{name: "a verdict on a future token", request: to("judge"), body: `{"fencingToken":2,"verdict":"bad","evidence":"x","actor":"eve"}`, status: 409, code: leadership.TokenStale, detail: "was never granted"},
		{name: "a verdict with a stale condition", request: to("judge"), body: `{"fencingToken":1,"verdict":"bad","evidence":"x","actor":"eve"}`, headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
		{name: "stepping down without a reason", request: to("stepDown"), body: asLeader, status: 400, code: wrong, detail: "reason is missing", where: "/reason"},
		{name: "stepping down with another key", request: to("stepDown"), body: strings.Replace(leads(`"reason":"x"`), key, otherKey, 1), status: 409, code: leadership.LeaseLost, detail: "granted with another key"},
		{name: "asking without a note", request: to("requestApproval"), body: leads(`"note":""`), status: 400, code: wrong, detail: "note is missing", where: "/note"},
		{name: "asking where no approval is needed", request: to("requestApproval"), body: leads(`"note":"x"`), status: 400, code: wrong, detail: "needs no approval", where: "election"},
		{name: "an explanation of no candidate", request: "GET /v1/elections/planner/candidates/a%20b:explain", status: 400, code: wrong, detail: `has " " at position 2`, where: "/candidateId"},
		{name: "an explanation with a query", request: "GET /v1/elections/planner/candidates/agent-8:explain?why=1", status: 400, code: wrong, detail: `"why" is unknown`},
		{name: "a candidate without a verb", request: "GET /v1/elections/planner/candidates/agent-8", status: 404, code: leadership.NotFound, detail: "there is no such path"},

		{name: "a term of a day and a month", request: toConfigure, body: `{"policy":{"maxTerm":"721h"}}`, status: 400, code: wrong, detail: "policy.maxTerm is from 1s to 720h, not 721h", where: "/policy/maxTerm"},
		{name: "stuck within a lease", request: toConfigure, body: `{"policy":{"stuckAfter":"59s"}}`, status: 400, code: wrong, detail: "at least two leases (1m), not 59s", where: "/policy/stuckAfter"},
		{name: "a budget of something else", request: toConfigure, body: `{"policy":{"budget":{"tokens":1}}}`, status: 400, code: wrong, detail: `unknown field "tokens"; the fields here are progress, tasks, tokensUsed`, where: "/policy/budget/tokens"},
	})
}
