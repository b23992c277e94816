package test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/machine"
)

// raw sends text over a connection of its own, and returns the whole answer.
func (a *authServer) raw(text string) string {
	a.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	require.NoError(a.t, err)
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(machine.Patience))
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
	"/v1/elections", "/v1/elections/", "/v1/elections/jewels", "/v1/elections/jewels/events", "/v1/events",
	"//v1/elections", "/v1//elections", "//v1/elections/jewels", "/./v1/elections", "/../v1/elections", "/%2e%2e/v1/elections",
	"/V1/elections", "/v1%2Felections", "/%76%31/elections/jewels", "/v1/elections%2Fjewels", "/v1/elections%00",
	`/v1\elections`, "/v1;/elections", "/v1/elections;x=1", "/v1/elections?/health/live", "/v1/elections#/health/live",
	"/health/../v1/elections", "/health/live/%2e%2e/%2e%2e/v1/elections", "/health/live%2F..%2F..%2Fv1%2Felections", "/health/live;/v1/elections",
	"http://x/v1/elections", "http://x//v1/elections", "http:///v1/elections", "http:/v1/elections", "http://x/health/live/../../v1/elections",
	"//x/v1/elections", "x/v1/elections",
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

// Whatever the path, the headers and what else is on the connection, a caller without a token does
// not see the leader, and changes nothing.
func TestEveryPathIsAuthenticated(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, jewels).guarded()
	good := a.token("candidate@test")
	authorization := "Authorization: Bearer " + good
	stay := func(target string, headers ...string) string {
		return strings.Replace(head("GET", target, headers...), "Connection: close", "Connection: keep-alive", 1)
	}
	for _, shown := range []string{head("GET", "/v1/elections", authorization), stay("/health/live") + head("GET", "/v1/elections/jewels", authorization)} {
		if got := a.raw(shown); !strings.Contains(got, string(leader)) {
			t.Errorf("%q with a token shows nothing, so that this test shows nothing: %s", shown, got)
		}
	}
	for _, target := range doors {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "DELETE", "TRACE", "CONNECT", "get"} {
			a.closed(head(method, target))
		}
	}
	for _, header := range []string{
		"Authorization:", "Authorization: Bearer", "Authorization: Basic Y2FuZGlkYXRlQHRlc3Q6", "Proxy-Authorization: Bearer " + good,
		"X-Serverless-Authorization: Bearer " + good, "X-Goog-Authenticated-User-Email: accounts.google.com:candidate@test",
		"X-Forwarded-For: 127.0.0.1", "X-HTTP-Method-Override: OPTIONS", "X-Original-URL: /health/live", "Upgrade: h2c",
	} {
		a.closed(head("GET", "/v1/elections", header))
	}
	for _, header := range []string{"X-Original-URL: /v1/elections", "X-Rewrite-URL: /v1/elections", "X-Forwarded-Path: /v1/elections", "Host: /v1/elections"} {
		a.closed(head("GET", "/health/live", header))
	}
	bare := head("GET", "/v1/elections")
	for _, text := range []string{
		stay("/v1/elections/nothing", authorization) + bare,
		"POST /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody" + bare,
		head("GET", "/health/live", fmt.Sprint("Content-Length: ", len(bare))) + bare,
		"POST /health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + bare,
		stay("/v1/elections") + head("GET", "/v1/elections/nothing", authorization),
		"GET /v1/elections HTTP/1.0\r\n\r\n", "GET /v1/elections\r\n\r\n",
	} {
		a.closed(text)
	}
	if l, err := a.as("candidate@test", client.Candidate{}).Get(t.Context(), "jewels"); err != nil || l.LeaderID != leader || l.Revision != 1 {
		t.Errorf("afterwards the election is %+v, %v", l, err)
	}
}

// closed checks that the answer, if there is one, does not name the leader.
func (a *authServer) closed(request string) {
	a.t.Helper()
	if got := a.raw(request); strings.Contains(got, string(leader)) {
		a.t.Errorf("%q is answered with\n%s", request, got)
	}
}
