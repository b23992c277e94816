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
		{name: "an empty reason", request: to("resume"), body: `{"reason":"","actor":"ann"}`, status: 400, code: wrong, detail: "reason is missing: say why in a line", where: "/reason"},
		{name: "a long reason", request: to("resume"), body: `{"reason":"` + strings.Repeat("x", 257) + `","actor":"ann"}`, status: 400, code: wrong, detail: "at most 256 bytes, not 257", where: "/reason"},
		{name: "a reason of two lines", request: to("resume"), body: `{"reason":"a\nb","actor":"ann"}`, status: 400, code: wrong, detail: "reason is one line of text", where: "/reason"},
		{name: "a reason that is a number", request: to("resume"), body: `{"reason":7,"actor":"ann"}`, status: 400, code: wrong, detail: "reason must be a string, not a number", where: "/reason"},
		{name: "no actor", request: to("resume"), body: `{"reason":"x"}`, status: 400, code: wrong, detail: "actor is missing: say who gives the order", where: "/actor"},
		{name: "an actor of two lines", request: to("resume"), body: `{"reason":"x","actor":"a\u0000b"}`, status: 400, code: wrong, detail: "actor is one line of text", where: "/actor"},
		{name: "a long actor", request: to("resume"), body: `{"reason":"x","actor":"` + strings.Repeat("a", 257) + `"}`, status: 400, code: wrong, detail: "actor is", where: "/actor"},
		{name: "an unknown field", request: to("pause"), body: body(`"for":"1h","until":"tomorrow"`), status: 400, code: wrong, detail: `unknown field "until"; the fields here are candidateId, principal, for, mode`, where: "/until"},
		{name: "null", request: to("pause"), body: body(`"for":null`), status: 400, code: wrong, detail: "leave it out if you have nothing to say", where: "/for"},
		{name: "an assignment of nothing", request: to("assign"), body: body(`"for":"1h"`), status: 400, code: wrong, detail: "candidateId is missing: assign needs it", where: "/candidateId"},
		{name: "an assignment for ever", request: to("assign"), body: body(`"candidateId":"agent-8"`), status: 400, code: wrong, detail: "for is missing: assign needs it", where: "/for"},
		{name: "an assignment to no candidate", request: to("assign"), body: body(`"candidateId":"","for":"1h"`), status: 400, code: wrong, detail: "candidateId is empty; give it a value", where: "/candidateId"},
		{name: "an assignment to a bad name", request: to("assign"), body: body(`"candidateId":"agent 8","for":"1h"`), status: 400, code: wrong, detail: `has " " at position 6`, where: "/candidateId"},
		{name: "an assignment with a mode", request: to("assign"), body: body(`"candidateId":"agent-8","for":"1h","mode":"drain"`), status: 400, code: wrong, detail: "assign takes no mode; leave it out", where: "/mode"},
		{name: "an eviction for a time", request: to("evict"), body: body(`"for":"1h"`), status: 400, code: wrong, detail: "evict takes no for; leave it out", where: "/for"},
		{name: "an eviction of a candidate", request: to("evict"), body: body(`"candidateId":"agent-7"`), status: 400, code: wrong, detail: "evict takes no candidateId", where: "/candidateId"},
		{name: "an eviction with a ban of nothing", request: to("evict"), body: body(`"ban":"0s"`), status: 400, code: wrong, detail: "ban is empty; give it a value, or leave it out", where: "/ban"},
		{name: "an eviction with a ban for too long", request: to("evict"), body: body(`"ban":"721h"`), status: 400, code: wrong, detail: "ban is from 1s to 720h, not 721h", where: "/ban"},
		{name: "an eviction of token 0", request: to("evict"), body: body(`"fencingToken":0`), status: 400, code: wrong, detail: "fencingToken is empty", where: "/fencingToken"},
		{name: "an eviction below all tokens", request: to("evict"), body: body(`"fencingToken":-1`), status: 400, code: wrong, detail: "a fencing token is an integer from 1", where: "/fencingToken"},
		{name: "an eviction of a future token", request: to("evict"), body: body(`"fencingToken":2`), status: 409, code: leadership.TokenStale, detail: "was never granted; the newest is 1"},
		{name: "a pause for ever", request: to("pause"), body: "{" + word, status: 400, code: wrong, detail: "for is missing: pause needs it", where: "/for"},
		{name: "a pause of half a second", request: to("pause"), body: body(`"for":"500ms"`), status: 400, code: wrong, detail: "for is from 1s to 720h, not 500ms", where: "/for"},
		{name: "a pause into the past", request: to("pause"), body: body(`"for":"-1h"`), status: 400, code: wrong, detail: "for is from 1s to 720h, not -1h", where: "/for"},
		{name: "a fine pause", request: to("pause"), body: body(`"for":"1.0005s"`), status: 400, code: wrong, detail: "for is in whole milliseconds", where: "/for"},
		{name: "a pause in numbers", request: to("pause"), body: body(`"for":3600`), status: 400, code: wrong, detail: `must be a string such as "30s", not a number`, where: "/for"},
		{name: "a pause without a unit", request: to("pause"), body: body(`"for":"3600"`), status: 400, code: wrong, detail: `not "3600"`, where: "/for"},
		{name: "a pause of an unknown mode", request: to("pause"), body: body(`"for":"1h","mode":"stop"`), status: 400, code: wrong, detail: `mode is "freeze" or "drain"`, where: "/mode"},
		{name: "a pause of an empty mode", request: to("pause"), body: body(`"for":"1h","mode":""`), status: 400, code: wrong, detail: "mode is empty", where: "/mode"},
		{name: "a pause that is no new epoch", request: to("pause"), body: body(`"for":"1h","newEpoch":false`), status: 400, code: wrong, detail: "pause takes no newEpoch; leave it out", where: "/newEpoch"},
		{name: "a resumption for no time", request: to("resume"), body: body(`"for":"0s"`), status: 400, code: wrong, detail: "resume takes no for; leave it out", where: "/for"},
		{name: "a ban of nothing", request: to("ban"), body: body(`"for":"1h"`), status: 400, code: wrong, detail: "candidateId is missing: ban needs it", where: "/candidateId"},
		{name: "a ban of a principal, of callers that are not verified", request: to("ban"), body: body(`"principal":"eve","for":"1h"`), status: 400, code: wrong, detail: "this server does not verify its callers", where: "/principal"},
		{name: "an assignment to a principal", request: to("assign"), body: body(`"candidateId":"eve","principal":"eve","for":"1h"`), status: 400, code: wrong, detail: "assign takes no principal", where: "/principal"},
		{name: "a ban for ever", request: to("ban"), body: body(`"candidateId":"agent-8","for":"720h0.001s"`), status: 400, code: wrong, detail: "for is from 1s to 720h", where: "/for"},
		{name: "an approval of nothing", request: to("approve"), body: "{" + word, status: 400, code: wrong, detail: "fencingToken is missing: approve needs it", where: "/fencingToken"},
		{name: "an approval that is not needed", request: to("approve"), body: body(`"fencingToken":1`), status: 400, code: wrong, detail: "needs no approval; its policy has no approval.every", where: "/fencingToken"},
		{name: "an approval of a future token", request: to("approve"), body: body(`"fencingToken":2,"newEpoch":true`), status: 409, code: leadership.TokenStale, detail: "is not that of the present leader"},
		{name: "an approval of a text", request: to("approve"), body: body(`"fencingToken":"1"`), status: 400, code: wrong, detail: "fencingToken must be a number, not a string", where: "/fencingToken"},
		{name: "a new epoch that is neither", request: to("approve"), body: body(`"fencingToken":1,"newEpoch":"yes"`), status: 400, code: wrong, detail: "newEpoch must be true or false, not a string", where: "/newEpoch"},
		{name: "a lift of nothing", request: to("lift"), body: "{" + word, status: 400, code: wrong, detail: "override is missing: lift needs it", where: "/override"},
		{name: "a lift of an empty id", request: to("lift"), body: body(`"override":""`), status: 400, code: wrong, detail: "override is empty", where: "/override"},
		{name: "an order about an election of Regent's own", request: "POST /v1/elections/regent.relay:pause", body: body(`"for":"1h"`), status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "an order about an election that does not exist", request: "POST /v1/elections/other:pause", body: body(`"for":"1h"`), status: 404, code: leadership.NotFound, detail: "never seen"},
		{name: "an order with a query", request: to("pause") + "?force=true", body: body(`"for":"1h"`), status: 400, code: wrong, detail: `"force" is unknown`},
		{name: "an order with a stale condition", request: to("pause"), body: body(`"for":"1h"`), headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
		{name: "an order with a weak condition", request: to("ban"), body: body(`"candidateId":"agent-8","for":"1h"`), headers: []string{"If-Match", `W/"1"`}, status: 400, code: wrong, detail: "weak tags and lists are not accepted", where: "If-Match"},
		{name: "an order with GET", request: "GET /v1/elections/planner:pause", status: 405, code: wire.MethodNotAllowed, detail: "this path allows POST"},
		{name: "overrides with POST", request: "POST /v1/elections/planner/overrides", body: `{}`, status: 405, code: wire.MethodNotAllowed, detail: "this path allows GET"},
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
		{name: "a report that is null", request: toRenew, body: leads(`"report":null`), status: 400, code: wrong, detail: "leave it out", where: "/report"},
		{name: "an unknown member of a report", request: toRenew, body: leads(`"report":{"tokens":1}`), status: 400, code: wrong, detail: "progress, tasks, tokensUsed, calls, errors, eta", where: "/report"},
		{name: "a report of half a task", request: toRenew, body: leads(`"report":{"tasks":0.5}`), status: 400, code: wrong, detail: "0.5", where: "/report"},
		{name: "a report of less than nothing", request: toRenew, body: leads(`"report":{"calls":-1}`), status: 400, code: wrong, detail: "calls is from 0 to 9007199254740991, not -1", where: "/report"},
		{name: "a report of more errors than calls", request: toRenew, body: leads(`"report":{"calls":1,"errors":2}`), status: 400, code: wrong, detail: "2 errors are more than 1 calls", where: "/report"},
		{name: "a report of a vague time", request: toRenew, body: leads(`"report":{"eta":"soon"}`), status: 400, code: wrong, detail: `eta is a duration such as "20m"`, where: "/report"},
		{name: "a report of two lines", request: toRenew, body: leads(`"report":{"health":"a\nb"}`), status: 400, code: wrong, detail: "health is one line of text", where: "/report"},
		{name: "a large report", request: toRenew, body: leads(`"report":{"custom":{"a":"` + strings.Repeat("x", 2048) + `"}}`), status: 400, code: wrong, detail: "a report has at most 2048 bytes", where: "/report"},
		{name: "a report with a member twice", request: toRenew, body: leads(`"report":{"calls":1,"calls":2}`), status: 400, code: wrong, detail: `the field "calls" is there twice`, where: "/report/calls"},
		{name: "a verdict that is neither", request: to("judge"), body: `{"fencingToken":1,"verdict":"so-so","evidence":"x","actor":"eve"}`, status: 400, code: wrong, detail: `verdict is "bad" or "good"`, where: "/verdict"},
		{name: "a verdict without evidence", request: to("judge"), body: `{"fencingToken":1,"verdict":"bad","actor":"eve"}`, status: 400, code: wrong, detail: "evidence is missing", where: "/evidence"},
		{name: "a verdict with empty evidence", request: to("judge"), body: `{"fencingToken":1,"verdict":"bad","evidence":"","actor":"eve"}`, status: 400, code: wrong, detail: "evidence is missing", where: "/evidence"},
		{name: "a verdict of nobody", request: to("judge"), body: `{"fencingToken":1,"verdict":"bad","evidence":"x"}`, status: 400, code: wrong, detail: "actor is missing", where: "/actor"},
		{name: "a verdict on a future token", request: to("judge"), body: `{"fencingToken":2,"verdict":"bad","evidence":"x","actor":"eve"}`, status: 409, code: leadership.TokenStale, detail: "was never granted"},
		{name: "a verdict with a stale condition", request: to("judge"), body: `{"fencingToken":1,"verdict":"bad","evidence":"x","actor":"eve"}`, headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
		{name: "stepping down without a reason", request: to("stepDown"), body: asLeader, status: 400, code: wrong, detail: "reason is missing", where: "/reason"},
		{name: "stepping down for too long", request: to("stepDown"), body: leads(`"reason":"x","for":"1000h"`), status: 400, code: wrong, detail: "for is from 1s to 720h", where: "/for"},
		{name: "stepping down with another key", request: to("stepDown"), body: strings.Replace(leads(`"reason":"x"`), key, otherKey, 1), status: 409, code: leadership.LeaseLost, detail: "granted with another key"},
		{name: "asking without a note", request: to("requestApproval"), body: leads(`"note":""`), status: 400, code: wrong, detail: "note is missing", where: "/note"},
		{name: "asking where no approval is needed", request: to("requestApproval"), body: leads(`"note":"x"`), status: 400, code: wrong, detail: "needs no approval", where: "election"},
		{name: "an explanation of no candidate", request: "GET /v1/elections/planner/candidates/a%20b:explain", status: 400, code: wrong, detail: `has " " at position 2`, where: "/candidateId"},
		{name: "an explanation with a query", request: "GET /v1/elections/planner/candidates/agent-8:explain?why=1", status: 400, code: wrong, detail: `"why" is unknown`},
		{name: "a candidate without a verb", request: "GET /v1/elections/planner/candidates/agent-8", status: 404, code: leadership.NotFound, detail: "there is no such path"},

		{name: "a term of a day and a month", request: toConfigure, body: `{"policy":{"maxTerm":"721h"}}`, status: 400, code: wrong, detail: "policy.maxTerm is from 1s to 720h, not 721h", where: "/policy/maxTerm"},
		{name: "approvals without a time", request: toConfigure, body: `{"policy":{"approval":{"need":2}}}`, status: 400, code: wrong, detail: "every is missing", where: "/policy/approval/every"},
		{name: "too many approvals", request: toConfigure, body: `{"policy":{"approval":{"every":"1h","need":9}}}`, status: 400, code: wrong, detail: "policy.approval.need is from 1 to 8, not 9", where: "/policy/approval/need"},
		{name: "stuck within a lease", request: toConfigure, body: `{"policy":{"stuckAfter":"59s"}}`, status: 400, code: wrong, detail: "at least two leases (1m), not 59s", where: "/policy/stuckAfter"},
		{name: "a budget below nothing", request: toConfigure, body: `{"policy":{"budget":{"calls":-1}}}`, status: 400, code: wrong, detail: "policy.budget: calls is from 0", where: "/policy/budget"},
		{name: "a budget of something else", request: toConfigure, body: `{"policy":{"budget":{"tokens":1}}}`, status: 400, code: wrong, detail: `unknown field "tokens"; the fields here are progress, tasks, tokensUsed`, where: "/policy/budget/tokens"},
		{name: "an error rate of percents", request: toConfigure, body: `{"policy":{"errorRate":{"max":50,"min":20}}}`, status: 400, code: wrong, detail: "policy.errorRate.max is above 0 and at most 1, not 50", where: "/policy/errorRate"},
		{name: "an error rate of no calls", request: toConfigure, body: `{"policy":{"errorRate":{"max":0.5}}}`, status: 400, code: wrong, detail: "min is missing", where: "/policy/errorRate/min"},
		{name: "another trip", request: toConfigure, body: `{"policy":{"onTrip":"shout"}}`, status: 400, code: wrong, detail: `policy.onTrip is "stepDown" or "notify"`, where: "/policy/onTrip"},
		{name: "a cooldown of a week", request: toConfigure, body: `{"policy":{"cooldown":"168h"}}`, status: 400, code: wrong, detail: "policy.cooldown is from 1s to 24h", where: "/policy/cooldown"},
		{name: "too many verdicts", request: toConfigure, body: `{"policy":{"verdicts":17}}`, status: 400, code: wrong, detail: "policy.verdicts is from 0 to 16, not 17", where: "/policy/verdicts"},
	})
}
