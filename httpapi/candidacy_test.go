package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// quoted are n names in a JSON array.
func quoted(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"n%d"`, i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestWrongCandidaciesAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	with := func(field string) string { return `{"candidateId":"agent-8",` + field + `}` }
	var requests []bad
	for field, c := range map[string][2]string{ // the place and a part of the detail
		`"priority":2147483648`:             {"/priority", "priority is from -2147483648 to 2147483647, not 2147483648"},
		`"priority":1.5`:                    {"/priority", `priority must be an integer of at most 64 bits, not "1.5"`},
		`"load":-1`:                         {"/load", "load is from 0 to 2147483647, not -1"},
		`"role":"king"`:                     {"/role", `role is "candidate" or "witness", not "king"`},
		`"role":""`:                         {"/role", "role is empty"},
		`"capabilities":` + quoted(33):      {"/capabilities", "capabilities has at most 32 names, not 33"},
		`"capabilities":["gpu","a b"]`:      {"/capabilities/1", `"a b" is no name: use up to 64 of A-Z, a-z, 0-9`},
		`"capabilities":["gpu",""]`:         {"/capabilities/1", "a name is empty"},
		`"capabilities":["gpu","eu","gpu"]`: {"/capabilities/2", `"gpu" is there twice in capabilities; name it once`},
		`"strategy":"priority"`:             {"/strategy", `unknown field "strategy"; the fields here are candidateId, key, leaseDuration, metadata, note, wait, role, priority, capabilities, load`},
	} {
		requests = append(requests, bad{name: field, request: toAcquire, body: with(field), status: 400, code: wrong, where: c[0], detail: c[1]})
	}
	refuse(t, requests)
}

func TestWrongBallotPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	quorum := func(fields string) string { return `"quorum":{"electorate":["a","b","c"],` + fields + `}` }
	var requests []bad
	for fields, c := range map[string][2]string{
		`"strategy":"best"`:                    {"strategy", `policy.strategy is firstCome, priority, capability, leastLoaded, random or roundRobin, not "best"`},
		`"strategy":""`:                        {"strategy", "policy.strategy is empty"},
		`"window":"31s"`:                       {"window", "policy.window is from 0s to 30s, not 31s"},
		`"preempt":true`:                       {"preempt", `policy.preempt goes with the strategies "priority"`},
		`"strategy":"priority","minTerm":"5m"`: {"minTerm", "set preempt, or leave minTerm out"},
		`"strategy":"priority","preempt":true,"minTerm":"721h"`: {"minTerm", "policy.minTerm is from 1s to 720h, not 721h"},
		`"strategy":"priority","prefer":["gpu"]`:                {"prefer", `policy.prefer counts with the strategy "capability" only`},
		`"require":` + quoted(33):                               {"require", "policy.require has at most 32 names, not 33"},
		`"quorum":{}`:                                           {"quorum/electorate", "electorate is missing"},
		`"quorum":{"electorate":` + quoted(32) + `}`:            {"quorum/electorate", "has at most 31 members, not 32"},
		`"quorum":{"electorate":["a","a"]}`:                     {"quorum/electorate/1", `"a" is there twice`},
		`"quorum":{"electorate":["a","b c"]}`:                   {"quorum/electorate/1", `"b c" is no name: use up to 128`},
		`"quorum":{"electorate":["a"],"size":1}`:                {"quorum/size", `unknown field "size"; the fields here are electorate, need, grace`},
		quorum(`"need":4`):                                      {"quorum/need", `policy.quorum.need is "majority", or from 1 to the 3 members of the electorate, not 4`},
		quorum(`"grace":"0s"`):                                  {"quorum/grace", "policy.quorum.grace is from 1ms to 600s, not 0s; leave it out for 10s"},
		quorum(`"grace":"11m"`):                                 {"quorum/grace", "policy.quorum.grace is from 0s to 10m, not 11m"},
		`"window":"0s",` + quorum(`"need":2`):                   {"window", "policy.window is more than 0s with a quorum"},
	} {
		requests = append(requests, bad{name: fields, request: toConfigure, body: `{"policy":{` + fields + `}}`, status: 400, code: wrong, where: "/policy/" + c[0], detail: c[1]})
	}
	refuse(t, requests)
}

func TestWrongCallsAboutMembersAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	const toJoin, toLeave, toAwait = "POST " + toPlanner + ":join", "POST " + toPlanner + ":leave", "POST " + toPlanner + ":awaitAcknowledgement"
	const stream = "GET " + toPlanner + "/events"
	accept := []string{"Accept", wire.StreamType}
	join := func(role, ttl, more string) string {
		return `{"candidateId":"node-2","role":` + role + `,"ttl":` + ttl + more + `}`
	}
	refuse(t, []bad{
		{name: "no role", request: toJoin, body: `{"candidateId":"node-2","ttl":"30s"}`, status: 400, code: wrong, where: "/role", detail: "role is missing"},
		{name: "a king", request: toJoin, body: join(`"king"`, `"30s"`, ""), status: 400, code: wrong, where: "/role", detail: `role is "follower", "worker" or "witness", not "king"`},
		{name: "a fine ttl", request: toJoin, body: join(`"worker"`, `"10.0005s"`, ""), status: 400, code: wrong, where: "/ttl", detail: "ttl is in whole milliseconds"},
		{name: "a token of 0", request: toJoin, body: join(`"worker"`, `"30s"`, `,"seenToken":0`), status: 400, code: wrong, where: "/seenToken", detail: "leave it out if the member follows none yet"},
		{name: "a member with a key", request: toJoin, body: join(`"worker"`, `"30s"`, `,"key":"`+key+`"`), status: 400, code: wrong, where: "/key", detail: `unknown field "key"; the fields here are candidateId, role, ttl, seenToken, note`},
		{name: "joining an election of Regent's own", request: "POST /v1/elections/regent.relay:join", body: join(`"worker"`, `"30s"`, ""), status: 400, code: wrong, where: "election", detail: "reserved for Regent itself"},
		{name: "joining with a condition", request: toJoin, body: join(`"worker"`, `"30s"`, ""), headers: []string{"If-None-Match", `"1"`}, status: 400, code: wrong, where: "If-None-Match", detail: "If-None-Match is for reads"},

		{name: "leaving with a bad name", request: toLeave, body: `{"candidateId":"node 2"}`, status: 400, code: wrong, where: "/candidateId", detail: `has " " at position 5`},
		{name: "leaving with a role", request: toLeave, body: `{"candidateId":"node-2","role":"worker"}`, status: 400, code: wrong, where: "/role", detail: `unknown field "role"; the fields here are candidateId`},

		{name: "some members", request: "GET " + toPlanner + "/members?role=worker", status: 400, code: wrong, detail: `query parameter "role" is unknown`},

		{name: "a need of 0", request: toAwait, body: `{"fencingToken":1,"need":0}`, status: 400, code: wrong, where: "/need", detail: "need is how many members must follow, from 1 to 10000, not 0"},
		{name: "acknowledgement of nothing", request: toAwait, body: `{"need":1}`, status: 400, code: wrong, where: "/fencingToken", detail: "fencingToken is missing"},
		{name: "acknowledgement in an hour", request: toAwait, body: `{"fencingToken":1,"need":1,"wait":"61s"}`, status: 400, code: wrong, where: "/wait", detail: "wait is from 0s to 60s in whole milliseconds, not 61s"},
		{name: "acknowledgement by", request: toAwait, body: `{"fencingToken":1,"need":1,"role":"worker"}`, status: 400, code: wrong, where: "/role", detail: `unknown field "role"; the fields here are fencingToken, journalIndex, need, wait`},

		{name: "a check to delete", request: toCheck, body: `{"fencingToken":1,"use":"delete"}`, status: 400, code: wrong, where: "/use", detail: `use is "read" or "write", or left out, not "delete"`},

		{name: "a stream of a bad member", request: stream + "?member=node%202", headers: accept, status: 400, code: wrong, where: "member", detail: `has " " at position 5`},
		{name: "a history of a member", request: stream + "?member=a", status: 400, code: wrong, detail: `query parameter "member" is unknown`},
		{name: "a stream of all for a member", request: "GET /v1/events?member=a", headers: accept, status: 400, code: wrong, detail: `query parameter "member" is unknown`},
	})
}

// What stands for "left out" is as good as left out.
func TestZeroesThatMeanTheDefaultAreAccepted(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for body, want := range map[string]string{
		`{"policy":{"require":[],"prefer":[],"preempt":false,"minTerm":"0s"}}`:                                            `{"leaseDuration":"30s","lockDelay":"0s"}`,
		`{"policy":{"strategy":"firstCome"}}`:                                                                             `{"leaseDuration":"30s","lockDelay":"0s"}`,
		`{"policy":{"strategy":"priority","window":"0s"}}`:                                                                `"policy":{"strategy":"priority","window":"0s"}`,
		`{"policy":{"quorum":{"electorate":["b","a","c"],"need":"majority"}}}`:                                            `"policy":{"window":"0.3s","quorum":{"electorate":["a","b","c"],"need":"majority","grace":"10s"}}`,
		`{"policy":{"quorum":{"electorate":["a","b","c"],"need":3,"grace":"1ms"},"window":"30s","strategy":"firstCome"}}`: `"policy":{"window":"30s","quorum":{"electorate":["a","b","c"],"need":3,"grace":"0.001s"}}`,
	} {
		a := w.do("PUT", toPlanner, body)
		if a.lease(t); !strings.Contains(string(a.body), want) {
			t.Errorf("%s is answered %s, want %s", body, a.body, want)
		}
		var l wire.Lease
		a.into(t, &l)
		again, err := wire.Marshal(l.Configuration)
		if err != nil {
			t.Fatal(err)
		}
		if b := w.do("PUT", toPlanner, string(again)); b.lease(t).Revision != l.Revision {
			t.Errorf("%s, sent back as it was read, changes the election: %s", again, b.body)
		}
	}
	w.do("PUT", toPlanner, `{}`)
	w.do("POST", "/v1/elections/planner:acquire", `{"candidateId":"a","priority":0,"load":0,"capabilities":[],"role":"candidate","wait":"0s"}`).lease(t)
}

func TestABallotIsToldByItsRefusals(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("PUT", toPlanner, `{"policy":{"strategy":"priority","require":["gpu"],"window":"2s","preempt":true}}`).lease(t)
	bid := func(id string, more string) answer {
		return w.do("POST", toPlanner+":acquire", `{"candidateId":"`+id+`","key":"`+key+`","capabilities":["gpu"]`+more+`}`)
	}
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
		{"ann", `,"priority":5`, leadership.ReasonOutranked, 2200, 2, 2},
	} {
		a := bid(c.id, c.more)
		p := a.problem(t)
		if a.status != 409 || p.Code != leadership.LeaseHeld || p.Reason != c.reason || p.Cause == nil || p.Cause.Code != c.reason || p.Cause.UntilMs != p.RetryAfterMs || p.Lease == nil {
			t.Errorf("%s%s: %d %s; want the reason %s and its cause", c.id, c.more, a.status, a.body, c.reason)
			continue
		}
		if c.retry > 0 && (p.RetryAfterMs != c.retry || p.Cause.Position != c.position || p.Cause.Of != c.of) {
			t.Errorf("%s%s: %s; want place %d of %d, and to come again after %d ms", c.id, c.more, a.body, c.position, c.of, c.retry)
		}
	}
	w.clock.Advance(2 * time.Second)
	if p := bid("ann", `,"priority":5`).problem(t); p.Reason != leadership.ReasonOutranked || p.RetryAfterMs != 200 {
		t.Errorf("before the turn of the second: %+v", p)
	}
	if l := bid("bob", `,"priority":7`).lease(t); l.LeaderID != "bob" || l.Succession != nil {
		t.Errorf("the best is answered %+v", l)
	}
	// A better one preempts.
	if p := bid("eve", `,"priority":8`).problem(t); p.Reason != leadership.ReasonHeld || p.Lease.Succession == nil || p.Lease.Succession.To != "eve" || p.Lease.EndsBecause != leadership.EndsHandOver {
		t.Errorf("the better one is answered %+v", p)
	}
	if l := w.do("GET", toPlanner+"?consistency=strong", "").lease(t); l.Succession == nil || l.Succession.To != "eve" {
		t.Errorf("the leader's term is read as %+v", l)
	}
	events := string(w.do("GET", toPlanner+"/events", "").body)
	for _, part := range []string{`"type":"handingOver"`, `"to":"eve"`, `"strategy":"priority"`, `"bids":`} {
		if !strings.Contains(events, part) {
			t.Errorf("the history has no %s: %s", part, events)
		}
	}
}

func TestAMissingQuorumIsToldInNumbers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("PUT", toPlanner, `{"policy":{"quorum":{"electorate":["a","b","w"]}}}`).lease(t)
	for id, have := range map[string]int{"a": 1, "stranger": 0} {
		a := w.do("POST", toPlanner+":acquire", `{"candidateId":"`+id+`"}`)
		if p := a.problem(t); p.Reason != leadership.ReasonQuorum || p.RetryAfterMs == 0 || !strings.Contains(string(a.body), fmt.Sprintf(`"have":%d,"need":2`, have)) {
			t.Errorf("%s is answered %s, want that %d of 2 are present", id, a.body, have)
		}
		w.clock.Advance(time.Minute) // its bid is void
	}
}
