package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/leadership"
	"regent/leadership/wire"
)

// bad is a request that is wrong, and how it is answered.
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

// refuse sends each request to a fixture in which agent-7 leads planner, and sees to it that
// nothing is changed.
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

func TestUnknownPathsAndMethodsAreRefused(t *testing.T) {
	t.Parallel()
	const none = "there is no such path"
	refuse(t, []bad{
		{name: "the root", request: "GET /", status: 404, code: leadership.NotFound, detail: none},
		{name: "a slash too many", request: "GET /v1/elections/planner/", status: 404, code: leadership.NotFound, detail: none},
		{name: "an empty name", request: "POST /v1/elections/:acquire", body: candidate, status: 404, code: leadership.NotFound, detail: none},
		{name: "an empty segment", request: "GET /v1/elections//events", status: 400, code: leadership.InvalidArgument, detail: "an election needs a name", where: "election"},
		{name: "an unknown verb", request: "GET /v1/elections/planner:watch", status: 404, code: leadership.NotFound, detail: none},
		{name: "two verbs", request: "POST /v1/elections/planner:renew:acquire", body: candidate, status: 404, code: leadership.NotFound, detail: none},
		{name: "a verb with GET", request: "GET /v1/elections/planner:acquire", status: 405, code: wire.MethodNotAllowed, detail: "this path allows POST"},
		{name: "POST without a verb", request: "POST /v1/elections/planner", body: candidate, status: 405, code: wire.MethodNotAllowed, detail: "this path allows GET, PUT, DELETE"},
		{name: "OPTIONS", request: "OPTIONS /v1/elections", status: 405, code: wire.MethodNotAllowed, detail: "this path allows GET"},
		{name: "an unknown method", request: "STEAL /v1/elections/planner:acquire", body: candidate, status: 405, code: wire.MethodNotAllowed, detail: "this path allows POST"},
		{name: "an unknown method on an unknown path", request: "STEAL /nothing", status: 404, code: leadership.NotFound, detail: none},
		{name: "a path that is too long", request: "GET /v1/elections/" + strings.Repeat("a", wire.MaxURI), status: 414, code: wire.URITooLong, detail: "must not exceed 8192 bytes"},
		{name: "a query that is too long", request: "GET /v1/elections?prefix=" + strings.Repeat("a", wire.MaxURI), status: 414, code: wire.URITooLong, detail: "must not exceed 8192 bytes"},
	})
}

func TestInvalidNamesAreRefused(t *testing.T) {
	t.Parallel()
	var requests []bad
	for name, detail := range map[string]string{
		".":                      "begins and ends with a letter or digit",
		"..":                     "begins and ends with a letter or digit",
		"planner.":               `has "." at position 8`,
		"Planner":                `has "P" at position 1`,
		"a%2Fb":                  `has "%" at position 2`,
		"a%00b":                  `has "\x00" at position 2`,
		"%70lanner":              `has "%" at position 1`,
		"a%0Ab":                  `has "\n" at position 2`,
		"pl%C3%A4ner":            `at position 3`,
		"%E2%80%AErenner":        `at position 1`,
		strings.Repeat("a", 129): "at most 128 characters, this one has 129",
	} {
		for _, suffix := range []string{":acquire", ""} {
			b := bad{
				name: name + suffix, request: "GET /v1/elections/" + name,
				status: 400, code: leadership.InvalidArgument, detail: detail, where: "election",
			}
			if suffix != "" {
				b.request, b.body = "POST /v1/elections/"+name+suffix, candidate
			}
			requests = append(requests, b)
		}
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
		{name: "JSON refused by name", request: toAcquire, body: candidate, headers: []string{"Accept", "*/*, application/json;q=0"}, status: 406, code: wire.NotAcceptable, detail: "replies are application/json"},
		{name: "a body of a GET", request: "GET /v1/elections/planner", body: `{}`, status: 400, code: wrong, detail: "a GET of this API has no body"},
		{name: "a body of a DELETE", request: toDelete, body: `{"force":true}`, status: 400, code: wrong, detail: "a DELETE of this API has no body"},
		{name: "too large", request: toAcquire, body: `{"candidateId":"agent-8"` + strings.Repeat(" ", wire.MaxBody) + `}`, status: 413, code: wire.PayloadTooLarge, detail: "must not exceed 16384 bytes"},
		{name: "a batch that is too large", request: toBatch, body: `{"renewals":[` + strings.Repeat(" ", wire.MaxBatchBody) + `]}`, status: 413, code: wire.PayloadTooLarge, detail: "must not exceed 2097152 bytes"},
		{name: "a zip bomb by another name", request: toAcquire, body: "\x1f\x8b\x08\x00", status: 400, code: wrong, detail: "not one JSON object in UTF-8"},
		{name: "deep", request: toAcquire, body: `{"candidateId":"agent-8","metadata":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`, status: 400, code: wrong, detail: "nested at most 16 deep", where: "/metadata"},
	})
}

func TestWrongFieldsAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	leader := func(candidate, key, token string) string {
		return `{"candidateId":"` + candidate + `","key":"` + key + `","fencingToken":` + token + `}`
	}
	refuse(t, []bad{
		{name: "an election of Regent's own", request: "POST /v1/elections/regent.relay:acquire", body: `{"candidateId":"agent-8"}`, status: 400, code: wrong, detail: `begin with "regent." are reserved for Regent itself; choose another name`, where: "election"},
		{name: "a configuration of Regent's own", request: "PUT /v1/elections/regent.relay", body: `{}`, status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "a deletion of Regent's own", request: "DELETE /v1/elections/regent.relay?force=true", status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "a wait that is too long", request: toAcquire, body: `{"candidateId":"agent-8","wait":"60001ms"}`, status: 400, code: wrong, detail: "wait is from 0s to 60s in whole milliseconds, not 60.001s; to wait for longer, ask again", where: "/wait"},
		{name: "a misspelt candidate", request: toAcquire, body: `{"candidate":"agent-8"}`, status: 400, code: wrong, detail: `unknown field "candidate"; the fields here are candidateId, key`, where: "/candidate"},
		{name: "a bad key", request: toAcquire, body: `{"candidateId":"agent-8","key":"secret"}`, status: 400, code: wrong, detail: "a key is 32 random bytes", where: "/key"},
		{name: "a short lease", request: toAcquire, body: `{"candidateId":"agent-8","leaseDuration":"999ms"}`, status: 400, code: wrong, detail: "from 1s to 24h, not 999ms", where: "/leaseDuration"},
		{name: "too much metadata", request: toAcquire, body: `{"candidateId":"agent-8","metadata":{"a":"` + strings.Repeat("a", 4096) + `"}}`, status: 400, code: wrong, detail: "at most 4096 bytes", where: "/metadata"},
		{name: "deep metadata", request: toAcquire, body: `{"candidateId":"agent-8","metadata":` + strings.Repeat(`{"a":`, 17) + `1` + strings.Repeat(`}`, 17) + `}`, status: 400, code: wrong, detail: "nested at most 16 deep", where: "/metadata"},
		{name: "metadata out of range", request: toAcquire, body: `{"candidateId":"agent-8","metadata":{"a":1e400}}`, status: 400, code: wrong, detail: "out of range", where: "/metadata"},
		{name: "a renewal without a key", request: toRenew, body: `{"candidateId":"agent-7","fencingToken":1}`, status: 400, code: wrong, detail: "key is missing", where: "/key"},
		{name: "no token", request: toRelease, body: leader("agent-7", key, "0"), status: 400, code: wrong, detail: "from 1 to 9007199254740991, not 0", where: "/fencingToken"},
		{name: "a check of nothing", request: toCheck, body: `{}`, status: 400, code: wrong, detail: "fencingToken is missing", where: "/fencingToken"},
		{name: "a long lock", request: toConfigure, body: `{"lockDelay":"25h"}`, status: 400, code: wrong, detail: "lockDelay is from 0s to 24h", where: "/lockDelay"},
		{name: "a negative lock", request: toConfigure, body: `{"lockDelay":"-1s"}`, status: 400, code: wrong, detail: "lockDelay is from 0s", where: "/lockDelay"},
		{name: "an empty batch", request: toBatch, body: `{"renewals":[]}`, status: 400, code: wrong, detail: "from 1 to 500 elections, this one has 0", where: "/renewals"},
		{name: "a large batch", request: toChecks, body: `{"checks":[0` + strings.Repeat(",0", 500) + `]}`, status: 400, code: wrong, detail: "from 1 to 500 elections, this one has 501", where: "/checks"},
		{name: "an election twice", request: toBatch, body: `{"renewals":[{"election":"planner",` + asLeader[1:] + `,{"election":"planner",` + asLeader[1:] + `]}`, status: 400, code: wrong, detail: `election "planner" stands in the batch twice`, where: "/renewals"},
	})
}

func TestWrongParametersAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	list, history := "GET /v1/elections?", "GET /v1/elections/planner/events?"
	refuse(t, []bad{
		{name: "an unknown parameter", request: list + "filter=x", status: 400, code: wrong, detail: `query parameter "filter" is unknown; the known ones are: prefix, pageSize, pageToken`},
		{name: "a repeated parameter", request: list + "prefix=a&prefix=b", status: 400, code: wrong, detail: "prefix occurs 2 times in the query", where: "prefix"},
		{name: "a bad prefix", request: list + "prefix=A", status: 400, code: wrong, detail: `no election's name begins with "A"`, where: "prefix"},
		{name: "a huge page", request: list + "pageSize=1000000000", status: 400, code: wrong, detail: "pageSize is from 1 to 1000", where: "pageSize"},
		{name: "a page size that is no number", request: list + "pageSize=ten", status: 400, code: wrong, detail: `an integer in decimal digits, not "ten"`, where: "pageSize"},
		{name: "a forged page token", request: list + "pageToken=..%2F..", status: 400, code: wrong, detail: "begins and ends with", where: "pageToken"},
		{name: "half an escape", request: list + "prefix=%2", status: 400, code: wrong, detail: "the query cannot be read"},
		{name: "another consistency", request: "GET /v1/elections/planner?consistency=eventual", status: 400, code: wrong, detail: `consistency must be "strong", not "eventual"`, where: "consistency"},
		{name: "a long poll without a revision", request: "GET /v1/elections/planner?wait=30s", status: 400, code: wrong, detail: "send If-None-Match with the ETag of your last read", where: "wait"},
		{name: "a long poll for any revision", request: "GET /v1/elections/planner?wait=30s", headers: []string{"If-None-Match", "*"}, status: 400, code: wrong, detail: "send If-None-Match", where: "wait"},
		{name: "a long poll that is too long", request: "GET /v1/elections/planner?wait=61s", headers: []string{"If-None-Match", `"1"`}, status: 400, code: wrong, detail: `wait must be a duration from 0s to 60s in whole milliseconds, such as "30s", not "61s"`, where: "wait"},
		{name: "a revision that was never seen", request: "GET /v1/elections/planner?minRevision=7", status: 412, code: leadership.RevisionMismatch, detail: "the newest is 1"},
		{name: "a revision below none", request: "GET /v1/elections/planner?minRevision=-1", status: 400, code: wrong, detail: "minRevision must be a revision, 0 or more", where: "minRevision"},
		{name: "a stream from a word", request: "GET /v1/elections/planner/events", headers: []string{"Accept", "text/event-stream", "Last-Event-ID", "seven"}, status: 400, code: wrong, detail: `a revision, not "seven"`, where: "Last-Event-ID"},
		{name: "a stream from two places", request: "GET /v1/elections/planner/events", headers: []string{"Accept", "text/event-stream", "Last-Event-ID", "1\n2"}, status: 400, code: wrong, detail: "2 times", where: "Last-Event-ID"},
		{name: "a stream from a revision that was never seen", request: "GET /v1/elections/planner/events?after=7", headers: []string{"Accept", "text/event-stream"}, status: 412, code: leadership.RevisionMismatch, detail: "the newest is 1"},
		{name: "a stream with a limit", request: "GET /v1/elections/planner/events?limit=7", headers: []string{"Accept", "text/event-stream"}, status: 400, code: wrong, detail: `"limit" is unknown; the known ones are: after`},
		{name: "a stream of all from a revision", request: "GET /v1/events?after=7", status: 400, code: wrong, detail: "a cursor is what a stream of all elections gave", where: "after"},
		{name: "a stream of all from the future", request: "GET /v1/events?after=2999-01-01T00:00:00Z", status: 400, code: wrong, detail: "it is another store's; leave it out", where: "after"},
		{name: "a stream of names that are none", request: "GET /v1/events?prefix=A&after=2027-03-01T11:00:00Z", status: 400, code: wrong, detail: "no election's name begins with", where: "prefix"},
		{name: "a stream of all as JSON", request: "GET /v1/events", headers: []string{"Accept", "application/json"}, status: 406, code: wire.NotAcceptable, detail: "replies are text/event-stream"},
		{name: "a tick with a query", request: "POST /v1/maintenance:tick?now=1", status: 400, code: wrong, detail: "is unknown"},
		{name: "a revision that is none", request: history + "after=-1", status: 400, code: wrong, detail: "0 or more, not -1", where: "after"},
		{name: "a revision that is no number", request: history + "after=1.5", status: 400, code: wrong, detail: "an integer in decimal digits", where: "after"},
		{name: "a limit of nothing", request: history + "limit=0", status: 400, code: wrong, detail: "limit is from 1 to 1000, not 0", where: "limit"},
		{name: "a query of an acquire", request: toAcquire + "?candidateId=agent-8", body: candidate, status: 400, code: wrong, detail: `"candidateId" is unknown; the known ones are: none`},
		{name: "a way out of the elections", request: "PUT /v1/elections/../planner", body: `{}`, status: 404, code: leadership.NotFound, detail: "there is no such path"},
		{name: "a query of a health check", request: "GET /health/live?x=1", status: 400, code: wrong, detail: `"x" is unknown`},
		{name: "force that is neither", request: toDelete + "?force=yes", status: 400, code: wrong, detail: `force must be true or false, not "yes"`, where: "force"},
		{name: "force in contradiction", request: toDelete + "?force=true&force=false", status: 400, code: wrong, detail: "force occurs 2 times in the query", where: "force"},
		{name: "a weak condition", request: toDelete + "?force=true", headers: []string{"If-Match", `W/"1"`}, status: 400, code: wrong, detail: "weak tags and lists are not accepted", where: "If-Match"},
		{name: "two conditions", request: toConfigure, body: `{}`, headers: []string{"If-Match", "\"1\"\n\"2\""}, status: 400, code: wrong, detail: "weak tags and lists are not accepted", where: "If-Match"},
		{name: "a condition on nothing", request: toConfigure, body: `{}`, headers: []string{"If-Match", `"0"`}, status: 400, code: wrong, detail: "If-Match must be one entity tag", where: "If-Match"},
		{name: "a revision that a configuration must not meet", request: toConfigure, body: `{}`, headers: []string{"If-None-Match", `"1"`}, status: 400, code: wrong, detail: `must be *, for an election that was never seen, and not "\"1\""; to expect a revision, send it in If-Match`, where: "If-None-Match"},
		{name: "both conditions", request: toConfigure, body: `{}`, headers: []string{"If-None-Match", "*", "If-Match", `"1"`}, status: 400, code: wrong, detail: "send If-Match, for an election that exists, or If-None-Match", where: "If-None-Match"},
		{name: "a new election that is none", request: toConfigure, body: `{"lockDelay":"9s"}`, headers: []string{"If-None-Match", "*"}, status: 412, code: leadership.RevisionMismatch, detail: "exists already, at revision 1"},
		{name: "If-None-Match of a delete", request: toDelete + "?force=true", headers: []string{"If-None-Match", `"1"`}, status: 400, code: wrong, detail: "that you expect in If-Match", where: "If-None-Match"},
		{name: "If-None-Match of a renewal", request: toRenew, body: asLeader, headers: []string{"If-None-Match", `"1"`}, status: 400, code: wrong, detail: "and this is a POST", where: "If-None-Match"},
		{name: "If-Match of an acquire", request: toAcquire, body: candidate, headers: []string{"If-Match", `"1"`}, status: 400, code: wrong, detail: "If-Match is for operators, who configure or delete an election or give an order; leave it out", where: "If-Match"},
		{name: "If-Match of a read", request: "GET /v1/elections/planner", headers: []string{"If-Match", `"1"`}, status: 400, code: wrong, detail: "If-Match is for operators", where: "If-Match"},
		{name: "a stale condition", request: toDelete + "?force=true", headers: []string{"If-Match", `"7"`}, status: 412, code: leadership.RevisionMismatch, detail: "at revision 1, not 7"},
	})
}

func TestCallsThatTheRulesRefuseChangeNothing(t *testing.T) {
	t.Parallel()
	refuse(t, []bad{
		{name: "another candidate", request: toAcquire, body: candidate, status: 409, code: leadership.LeaseHeld, detail: `"agent-7" leads election "planner"`},
		{name: "another incarnation", request: toAcquire, body: `{"candidateId":"agent-7"}`, status: 409, code: leadership.LeaseHeld, detail: "with another key"},
		{name: "a renewal with another key", request: toRenew, body: strings.Replace(asLeader, key, otherKey, 1), status: 409, code: leadership.LeaseLost, detail: "granted with another key"},
		{name: "a renewal of a future token", request: toRenew, body: strings.Replace(asLeader, ":1}", ":2}", 1), status: 409, code: leadership.LeaseLost, detail: "stop acting as its leader"},
		{name: "a release with another key", request: toRelease, body: strings.Replace(asLeader, key, otherKey, 1), status: 409, code: leadership.LeaseLost, detail: "granted with another key"},
		{name: "a future token", request: toCheck, body: `{"fencingToken":2}`, status: 409, code: leadership.TokenStale, detail: "was never granted"},
		{name: "a delete while it is held", request: toDelete, status: 409, code: leadership.LeaseHeld, detail: "delete it by force"},
		{name: "a read of an election that does not exist", request: "GET /v1/elections/other", status: 404, code: leadership.NotFound, detail: "never seen"},
	})
}

func TestARefusalOfAMethodListsTheAllowedOnes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	if got := w.do("POST", "/v1/elections/planner", `{}`).header.Get("Allow"); got != "GET, PUT, DELETE" {
		t.Errorf("Allow: %s", got)
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
