package test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
)

// raw sends text over a connection of its own, and returns the whole answer.
func (a *authServer) raw(text string) string {
	a.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(connection, text); err != nil {
		a.t.Fatal(err)
	}
	answers, err := io.ReadAll(connection)
	if err != nil {
		a.t.Errorf("%q: %v", text, err)
	}
	return string(answers)
}

// head is a request without a body; the server closes the connection after it.
func head(method, target string, headers ...string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: regent.test\r\n" + strings.Join(append(headers, "Connection: close", "", ""), "\r\n")
}

// doors are targets that a caller without a token may try.
var doors = []string{
	"/v1/elections", "/v1/elections/", "/v1/elections/jewels", "/v1/elections/jewels/events", "/v1/events", "/v1", "/v1/",
	"//v1/elections", "///v1/elections", "/v1//elections", "//v1/elections/jewels", "//v1/events",
	"/./v1/elections", "/v1/./elections", "/../v1/elections", "/%2e/v1/elections", "/%2e%2e/v1/elections",
	"/V1/elections", "/v1/Elections", "/v1%2Felections", "/v1%2felections/jewels", "%2Fv1/elections",
	"/%76%31/elections", "/%76%31/elections/jewels", "/v1/elections%2Fjewels", "/v1/elections%00", "/%00/v1/elections",
	`/v1\elections`, `\v1\elections`, "/v1;/elections", "/v1/elections;x=1", "/v1/elections?/health/live", "/v1/elections#/health/live",
	"/health/../v1/elections", "/health/live/../../v1/elections", "/health/live/%2e%2e/%2e%2e/v1/elections",
	"/health/live%2F..%2F..%2Fv1%2Felections", "/health/live/v1/elections", "/health/live;/v1/elections", "/openapi.yaml/../v1/elections",
	"http://x/v1/elections", "http://x//v1/elections", "HTTP://x/v1/elections/jewels", "http:///v1/elections", "http:/v1/elections",
	"http:v1/elections", "http:/health/../v1/elections", "http://x/health/live/../../v1/elections", "https://x/v1/events",
	"//x/v1/elections", "x/v1/elections", "*",
}

// leader leads an election that no caller without a token may see.
const leader leadership.CandidateID = "ann-of-the-jewels"

// guarded adds an election that only its own candidate may see.
func (a *authServer) guarded() *authServer {
	a.t.Helper()
	r := a.ask(a.token("candidate@test"), "POST", "/v1/elections/jewels:acquire", fmt.Sprintf(`{"candidateId":%q,"leaseDuration":"1h"}`, leader))
	if r.status != http.StatusOK {
		a.t.Fatalf("acquire: %d %s", r.status, r.body)
	}
	return a
}

const jewels = `grants: [{principals: [candidate@test], roles: [candidate, observer], elections: ["*"], candidates: ["*"]}]`

// Whatever the path and the headers, a caller without a token does not see the leader, and changes
// nothing.
func TestEveryPathIsAuthenticated(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, jewels).guarded()
	authorization := "Authorization: Bearer " + a.token("candidate@test")
	for _, target := range []string{"/v1/elections", "/v1/elections/jewels", "http://x/v1/elections"} {
		if got := a.raw(head("GET", target, authorization)); !strings.Contains(got, string(leader)) {
			t.Errorf("GET %s with a token shows nothing, so that this test shows nothing: %s", target, got)
		}
	}
	for _, target := range doors {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE", "CONNECT", "get", "PROPFIND"} {
			if method+target != "OPTIONS*" { // which Go answers by itself, with nothing
				a.closed(head(method, target))
			}
		}
	}
	if l, err := a.as("candidate@test", client.Candidate{}).Get(t.Context(), "jewels"); err != nil || l.LeaderID != leader || l.Revision != 1 {
		t.Errorf("afterwards the election is %+v, %v", l, err)
	}
}

// closed checks that a request without a token is refused, if it is answered at all, and that the
// answer does not name the leader.
func (a *authServer) closed(request string) {
	a.t.Helper()
	got := a.raw(request)
	if strings.Contains(got, string(leader)) || strings.HasPrefix(got, "HTTP/1.1 2") || strings.HasPrefix(got, "HTTP/1.0 2") {
		a.t.Errorf("%q is answered with\n%s", request, got)
	}
}

func TestNoHeaderAvoidsAuthentication(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, jewels).guarded()
	good := a.token("candidate@test")
	for _, header := range []string{
		"Authorization:", "Authorization: Bearer", "Authorization: Bearer ", "Authorization: Basic Y2FuZGlkYXRlQHRlc3Q6", "Authorization: candidate@test",
		"Proxy-Authorization: Bearer " + good, "Cookie: Authorization=" + good, "X-Serverless-Authorization: Bearer " + good,
		"X-Goog-Authenticated-User-Email: accounts.google.com:candidate@test", "X-Forwarded-User: candidate@test", "From: candidate@test",
		"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Prefix: /health", "X-HTTP-Method-Override: OPTIONS",
		"X-Original-URL: /health/live", "X-Rewrite-URL: /health/live", "Upgrade: h2c",
	} {
		a.closed(head("GET", "/v1/elections", header))
	}
	for _, header := range []string{
		"X-Original-URL: /v1/elections", "X-Rewrite-URL: /v1/elections", "X-HTTP-Method-Override: DELETE",
		"X-Forwarded-Path: /v1/elections", "X-Accel-Redirect: /v1/elections", "Host: /v1/elections",
	} {
		if got := a.raw(head("GET", "/health/live", header)); strings.Contains(got, string(leader)) {
			t.Errorf("%s: GET /health/live is answered with\n%s", header, got)
		}
	}
}

// A connection has no principal: each request on it brings its own token.
func TestATokenCountsForItsOwnRequestAlone(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, jewels).guarded()
	authorization := "Authorization: Bearer " + a.token("candidate@test")
	stay := func(target string, headers ...string) string {
		return strings.Replace(head("GET", target, headers...), "Connection: close", "Connection: keep-alive", 1)
	}
	bare := head("GET", "/v1/elections")
	for name, text := range map[string]string{
		"after a good one":         stay("/v1/elections/nothing", authorization) + bare,
		"after a public one":       stay("/health/live") + bare,
		"after one with a body":    "POST /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody" + bare,
		"in the body of another":   head("GET", "/health/live", fmt.Sprint("Content-Length: ", len(bare))) + bare,
		"two lengths":              "POST /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 4\r\n\r\nbody" + bare,
		"a length and chunks":      "POST /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + bare,
		"before one with a token":  stay("/v1/elections") + head("GET", "/v1/elections/nothing", authorization),
		"a header in two lines":    head("GET", "/v1/elections", "Authorization:\r\n Bearer"),
		"HTTP/1.0":                 "GET /v1/elections HTTP/1.0\r\n\r\n",
		"HTTP/0.9":                 "GET /v1/elections\r\n\r\n",
		"HTTP/2 without agreement": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		if got := a.raw(text); strings.Contains(got, string(leader)) {
			t.Errorf("%s: a request without a token is answered with\n%s", name, got)
		}
	}
	if got := a.raw(stay("/health/live") + head("GET", "/v1/elections", authorization)); !strings.Contains(got, string(leader)) {
		t.Errorf("the second of two requests is not answered, so that this test shows nothing:\n%s", got)
	}
}
