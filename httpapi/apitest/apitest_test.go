package apitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	key    = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	vacant = `{"election":"planner","state":"vacant","fencingToken":4,"revision":11,"leaseDuration":"90s","readAt":"2027-03-01T12:05:00Z","configuration":{"leaseDuration":"90s","lockDelay":"15s"}}`
	held   = `{"election":"planner","state":"held","leaderId":"agent-7","fencingToken":4,"revision":9,"leaseDuration":"30s","expiresInMs":30000,"renewInMs":9731,"acquiredAt":"2027-03-01T12:00:00Z","lastHeartbeat":"2027-03-01T12:00:00Z","leaseExpiration":"2027-03-01T12:00:30Z","readAt":"2027-03-01T12:00:00Z","configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`
	lost   = `{"type":"urn:regent:problem:LEASE_LOST","title":"Lease lost","status":409,"detail":"stop","code":"LEASE_LOST"}`
)

func exchange(request, body string, status int, contentType, reply string) Exchange {
	method, target, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, target, nil)
	header := http.Header{"X-Request-Id": {"call-1"}, "Content-Type": {contentType}}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return Exchange{Request: r, RequestBody: []byte(body), Status: status, Header: header, Body: []byte(reply)}
}

const (
	toRenew   = "POST /v1/elections/planner:renew"
	renewal   = `{"candidateId":"agent-7","key":"` + key + `","fencingToken":4}`
	isJSON    = "application/json"
	isProblem = "application/problem+json"
)

func TestAnExchangeOfTheContractPasses(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]Exchange{
		"a renewal":        exchange(toRenew, renewal, 200, isJSON, held),
		"a lost lease":     exchange(toRenew, renewal, 409, isProblem, lost),
		"a refused body":   exchange(toRenew, `{"x":1}`, 400, isProblem, strings.NewReplacer("LEASE_LOST", "INVALID_ARGUMENT", "409", "400").Replace(lost)),
		"an entry":         exchange("GET /v1/elections/planner/journal", "", 200, "text/event-stream", "retry: 1000\n\nevent: entry\nid: 1\ndata: {\"index\":1,\"fencingToken\":1,\"at\":\"2027-03-01T12:00:00Z\",\"data\":[1]}\n\n"),
		"a page":           exchange("GET /v1/elections?pageSize=7", "", 200, isJSON, `{"elections":[]}`),
		"an unknown path":  exchange("GET /nothing", "", 404, isProblem, strings.NewReplacer("LEASE_LOST", "NOT_FOUND", "409", "404").Replace(lost)),
		"a granted chosen": exchange("POST /v1/elections/planner:acquire", `{"candidateId":"agent-7"}`, 200, isJSON, strings.TrimSuffix(held, "}")+`,"key":"`+key+`"}`),
	} {
		if err := New(t).check(x); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnExchangeOutsideOfTheContractFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want string
		x    Exchange
	}{
		"a member too many":                 {"'/secret': false schema", exchange(toRenew, renewal, 200, isJSON, strings.TrimSuffix(held, "}")+`,"secret":1}`)},
		"a duration as a number":            {"'/leaseDuration': got number, want string", exchange(toRenew, renewal, 200, isJSON, strings.ReplaceAll(held, `"30s"`, `30`))},
		"no instant":                        {"'soon' is not valid date-time", exchange(toRenew, renewal, 200, isJSON, strings.Replace(held, "2027-03-01T12:00:30Z", "soon", 1))},
		"another code":                      {"value must be 'LEASE_LOST'", exchange(toRenew, renewal, 409, isProblem, strings.ReplaceAll(lost, "LEASE_LOST", "LEASE_HELD"))},
		"an unknown status":                 {"no such status", exchange(toRenew, renewal, 418, isProblem, lost)},
		"a request that is not in it":       {"'x' not allowed", exchange(toRenew, strings.TrimSuffix(renewal, "}")+`,"x":1}`, 200, isJSON, held)},
		"a call that is not in it":          {"no such call", exchange("POST /v1/elections/planner:steal", renewal, 200, isJSON, held)},
		"a method that is not in it":        {"no such call", exchange("PATCH /v1/elections/planner", renewal, 200, isJSON, held)},
		"a reply of another type":           {`Content-Type is "text/plain"`, exchange(toRenew, renewal, 200, "text/plain", held)},
		"no body":                           {`Content-Type is ""`, exchange(toRenew, "", 200, isJSON, held)},
		"a parameter out of range":          {"parameter pageSize", exchange("GET /v1/elections?pageSize=0", "", 200, isJSON, `{"elections":[]}`)},
		"no condition":                      {"parameter If-Match: it is missing", exchange("DELETE /v1/elections/planner", "", 200, isJSON, vacant)},
		"no entity tag":                     {"header ETag: it is missing", exchange("PUT /v1/elections/planner", `{}`, 200, isJSON, vacant)},
		"a candidate with another name":     {"parameter candidate", exchange("GET /v1/elections/planner/candidates/%20:explain", "", 200, isJSON, `{}`)},
		"an entry of a stream without data": {"missing property 'data'", exchange("GET /v1/elections/planner/journal", "", 200, "text/event-stream", "event: entry\nid: 1\ndata: {\"index\":1,\"fencingToken\":1,\"at\":\"2027-03-01T12:00:00Z\"}\n\n")},
		"a repeated key":                    {"repeats a key", exchange(toRenew, renewal, 409, isProblem, strings.Replace(lost, "stop", key, 1))},
	} {
		if err := New(t).check(c.x); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("an exchange with %s: %v, want an error with %q", name, err, c.want)
		}
	}
	noID := exchange(toRenew, renewal, 200, isJSON, held)
	noID.Header.Del("X-Request-Id")
	if err := New(t).check(noID); err == nil {
		t.Error("an exchange without a request id passes")
	}
}

func TestAKeyThatTheServerChoseIsNotRepeatedLater(t *testing.T) {
	t.Parallel()
	c := New(t)
	grant := strings.TrimSuffix(held, "}") + `,"key":"` + key + `"}`
	require.NoError(t, c.check(exchange("POST /v1/elections/planner:acquire", `{"candidateId":"agent-7"}`, 200, isJSON, grant)))
	if err := c.check(exchange("GET /v1/elections/planner", "", 200, isJSON, strings.Replace(held, `"state"`, `"metadata":{"a":"`+key+`"},"state"`, 1))); err == nil {
		t.Error("a read with the key passes")
	}
}
