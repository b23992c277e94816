package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

// cluster is a server that answers only the calls about members.
type cluster struct {
	members string // the answer of :members

	mu     sync.Mutex
	joins  []wire.JoinRequest // guarded by mu
	leaves int                // guarded by mu
	token  int                // guarded by mu
}

func (s *cluster) start(t *testing.T) []string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return []string{"REGENT_SERVER=" + server.URL}
}

// ServeHTTP implements http.Handler.
func (s *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, call, _ := strings.Cut(r.URL.Path, "/v1/elections/e")
	switch call {
	case "/members":
		io.WriteString(w, s.members)
	case ":join":
		var body wire.JoinRequest
		json.NewDecoder(r.Body).Decode(&body)
		s.joins = append(s.joins, body)
		fmt.Fprintf(w, `{"election":"e","state":"held","leaderId":"ann","fencingToken":%d,"revision":%d,"leaseDuration":"30s","expiresInMs":30000,"configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`, s.token, s.token)
	case ":leave":
		s.leaves++
		io.WriteString(w, `{"election":"e"}`)
	default:
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"status":403,"code":"PERMISSION_DENIED","detail":"no"}`)
	}
}

func (s *cluster) joined() []wire.JoinRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]wire.JoinRequest{}, s.joins...)
}

const threeMembers = `{"election":"e","clusterSize":3,"leader":"node-1","term":7,"status":"diverged","participation":0.5,"complete":false,"readOnly":true,` +
	`"quorum":{"size":5,"need":3,"present":2,"toleratedFailures":2},"nodes":[` +
	`{"id":"node-1","role":"leader","term":7,"lastHeartbeatAgoMs":900,"position":null},` +
	`{"id":"node-2","role":"candidate","lastHeartbeatAgoMs":0,"position":1},` +
	`{"id":"node-3","role":"follower","term":6,"lastHeartbeatAgoMs":12000,"position":null,"note":"shard\u0007 3"}]}`

func TestMembersArePrintedAsACluster(t *testing.T) {
	t.Parallel()
	s := &cluster{members: threeMembers}
	env := s.start(t)
	want := `ID      ROLE       TERM  HEARD      POSITION  NOTE
node-1  leader     7     900ms ago  -         
node-2  candidate  -     0s ago     1         
node-3  follower   6     12s ago    -         shard\u0007 3
diverged: 3 members, node-1 leads with fencing token 7, participation 50 %; incomplete
quorum: 2 of 5 present, 3 needed, 2 may fail; read-only: do not write
`
	if r := regent(t, env, "members e").want(t, exitDone); r.out != want {
		t.Errorf("it prints\n%s\nwant\n%s", r.out, want)
	}
	if r := regent(t, env, "members e --output json").want(t, exitDone); !strings.Contains(r.out, `"status":"diverged"`) || !strings.Contains(r.out, `"nodes":[{"id":"node-1"`) {
		t.Errorf("as a document it prints %s", r.out)
	}
}

// textFile collects what a command prints.
type textFile struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
	more chan struct{}   // capacity 1
}

func (f *textFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
	return f.text.Write(p)
}

func (f *textFile) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

func TestJoinIsAMemberUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	s := &cluster{token: 7}
	env := s.start(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out, code := &textFile{more: make(chan struct{}, 1)}, make(chan int)
	go func() {
		code <- run(ctx, []string{"join", "e", "node-2", "--role", "worker", "--ttl", "10s", "--note", "shard 3"}, system{strings.NewReader(""), out, io.Discard, env})
	}()
	<-out.more
	interrupt()
	if got := <-code; got != exitDone {
		t.Errorf("it ends with %d", got)
	}
	if out.String() != "Candidate ann leads with fencing token 7.\n" {
		t.Errorf("it prints %q", out.String())
	}
	joins := s.joined()
	if j := joins[0]; j.CandidateID != "node-2" || j.Role != "worker" || time.Duration(j.TTL) != 10*time.Second || j.Note != "shard 3" {
		t.Errorf("it joins with %+v", j)
	}
	if s.leaves != 1 {
		t.Errorf("it leaves %d times", s.leaves)
	}
}

func TestJoinGivesUpIfTheServerDoesNotAnswerAtTheStart(t *testing.T) {
	t.Parallel()
	env := []string{"REGENT_SERVER=http://127.0.0.1:1"}
	r := regent(t, env, "join e node-2 --timeout 300ms").want(t, exitUnreachable)
	if !strings.Contains(r.err, "does not answer") && !strings.Contains(r.err, "did not answer") {
		t.Errorf("it says %q", r.err)
	}
}

func TestJoinSaysWhyItHasNotJoinedInTime(t *testing.T) {
	t.Parallel()
	r := regent(t, realServer(t), "join nosuch node-2 --timeout 300ms").want(t, exitOther)
	if !strings.Contains(r.err, `regent: election "nosuch" was never seen`) || strings.Contains(r.err, "did not answer") {
		t.Errorf("it says %q", r.err)
	}
}

// realServer serves an empty store on this machine's clock.
func realServer(t *testing.T) []string {
	t.Helper()
	start := time.Now()
	inst := newTestInstance(t, instance.Config{Store: memory.New(memory.Config{}), Now: func() time.Duration { return time.Since(start) }})
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: inst}))
	t.Cleanup(server.Close)
	return []string{"REGENT_SERVER=" + server.URL}
}

func TestMembersAreThoseThatTakePart(t *testing.T) {
	t.Parallel()
	env := realServer(t)
	regent(t, env, "configure e --policy", `{"quorum":{"electorate":["ann","bob","w"],"need":2,"grace":"1ms"}}`).want(t, exitDone)
	if r := regent(t, env, "acquire e --candidate ann --timeout 1s").want(t, exitHeld); !strings.Contains(r.err, "needs 2 members") {
		t.Errorf("without a quorum: %s", r.err)
	}
	server, err := client.New(client.Config{Server: strings.TrimPrefix(env[0], "REGENT_SERVER=")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Join(t.Context(), leadership.JoinRequest{Election: "e", CandidateID: "w", Role: leadership.RoleWitness, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	regent(t, env, "acquire e --candidate ann --lease 1h --wait 1m").want(t, exitDone)
	r := regent(t, env, "members e").want(t, exitDone)
	for _, want := range []string{"ann  leader   1", "w    witness", "2 members, ann leads with fencing token 1", "quorum: 2 of 3 present, 2 needed, 1 may fail"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("there is no %q in\n%s", want, r.out)
		}
	}
	regent(t, env, "check e --token 1 --write").want(t, exitDone)
	if err := server.Leave(t.Context(), leadership.LeaveRequest{Election: "e", CandidateID: "w"}); err != nil {
		t.Fatal(err)
	}
	for range 500 { // until the grace time is over
		if r = regent(t, env, "check e --token 1 --write"); r.code == exitHeld {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r.code != exitHeld || !strings.Contains(r.err, "read-only") {
		t.Errorf("after the quorum is lost a check to write says %d, %s", r.code, r.err)
	}
	regent(t, env, "check e --token 1").want(t, exitDone)
}

// asked is what a command asked the server for.
func asked(t *testing.T, env []string, args string) (body wire.AcquireRequest) {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(r.URL.Path, ":acquire") {
			json.NewDecoder(r.Body).Decode(&body)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"status":409,"code":"NOT_ELIGIBLE","detail":"it lacks [gpu]"}`)
	}))
	defer server.Close()
	r := regent(t, append(env, "REGENT_SERVER="+server.URL), args).want(t, exitOther)
	if !strings.Contains(r.err, "[gpu]") {
		t.Errorf("%s: %q does not name the missing part", args, r.err)
	}
	return body
}

func TestACandidateSaysWhatItIsWorth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args     string
		priority int64
		names    string
		load     int64
	}{
		{"acquire e --candidate agent-1", 0, "", 0},
		{"acquire e --candidate agent-1 --priority -7 --capabilities gpu,eu --load 3", -7, "eu gpu", 3},
		{"acquire e --candidate agent-1 --priority cksum", 3074249056 - 1<<31, "", 0},
	} {
		body := asked(t, nil, c.args)
		if body.Priority != c.priority || strings.Join(body.Capabilities, " ") != c.names || body.Load != c.load {
			t.Errorf("regent %s asks with %+v", c.args, body)
		}
	}
	if body, _ := json.Marshal(asked(t, nil, "acquire e --candidate w --role witness")); !strings.Contains(string(body), `"role":"witness"`) {
		t.Errorf("a witness asks with %s", body)
	}
}

func TestTheBetterCandidateWinsAndTheHistorySaysHow(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	r := regent(t, env, "configure e --policy", `{"strategy":"priority","window":"10ms","maxTerm":"8h"}`).want(t, exitDone)
	if !strings.Contains(r.out, `{"strategy":"priority","window":"0.01s","maxTerm":"28800s"}`) {
		t.Errorf("the policy is not printed:\n%s", r.out)
	}
	if r := regent(t, env, "configure e --lock-delay 1s").want(t, exitDone); !strings.Contains(r.out, `"strategy":"priority"`) {
		t.Errorf("the policy is lost:\n%s", r.out)
	}
	// the store's clock stands still: the ballot stays open
	r = regent(t, env, "acquire e --candidate a --timeout 20s").want(t, exitHeld)
	if !strings.Contains(r.err, "collects bids") {
		t.Errorf("the refusal is %q", r.err)
	}
}

func TestHowALeaderHasWonIsOneCell(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"":                      "",
		"nonsense":              "",
		`{"because":"preempt"}`: "",
		`{"bids":3,"others":[],"place":1,"strategy":"priority","winner":{"candidateId":"a","priority":-7}}`:    "priority -7, best of 3",
		`{"bids":3,"place":2,"strategy":"leastLoaded","winner":{"candidateId":"a","load":0}}`:                  "leastLoaded 0, place 2 of 3",
		`{"bids":1,"place":1,"strategy":"roundRobin","last":"b","winner":{"candidateId":"a"}}`:                 "roundRobin",
		`{"bids":2,"place":1,"strategy":"random","secret":"00","winner":{"candidateId":"a","draw":"00ff"}}`:    "random 00ff, best of 2",
		`{"bids":2,"place":1,"strategy":"capability","winner":{"candidateId":"a","preferred":2,"priority":1}}`: "capability (2 preferred), best of 2",
		`{"bids":2,"place":1,"strategy":"firstCome","present":2,"winner":{"candidateId":"a","waitedMs":1500}}`: "firstCome 1.5s, best of 2",
		`{"bids":2,"place":1,"strategy":"of a later version","winner":{"candidateId":"a"}}`:                    "of a later version, best of 2",
	} {
		e := leadership.Event{Type: leadership.EventAcquired, Detail: detail}
		if got := howWon(e); got != want {
			t.Errorf("%s becomes %q, want %q", detail, got, want)
		}
	}
}

func TestWhySaysWhatABallotIsWaitingFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause leadership.Cause
		want  string
	}{
		{leadership.Cause{Code: leadership.ReasonBallot, Position: 1, Of: 3, Left: 300 * time.Millisecond}, "It has the best of 3 bids, and bids are still collected, for another 300ms."},
		{leadership.Cause{Code: leadership.ReasonOutranked, Position: 2, Of: 3, Left: 200 * time.Millisecond}, "It has bid, and is at place 2 of 3; if those before it have gone, its turn comes in 200ms."},
		{leadership.Cause{Code: leadership.ReasonQuorum, Have: 1, Need: 2, Left: 2 * time.Second}, "The election needs 2 members of its electorate present, and has 1."},
		{leadership.Cause{Code: leadership.ReasonWitness, Left: 2 * time.Second}, "It is a witness, which never leads."},
	} {
		if got := sentence(c.cause, "a"); got != c.want {
			t.Errorf("%s is %q, want %q", c.cause.Code, got, c.want)
		}
	}
}
