package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

const threeMembers = `{"election":"e","clusterSize":3,"leader":"node-1","term":7,"status":"diverged","participation":0.5,"complete":false,"readOnly":true,` +
	`"quorum":{"size":5,"need":3,"present":2,"toleratedFailures":2},"nodes":[` +
	`{"id":"node-1","role":"leader","term":7,"lastHeartbeatAgoMs":900,"position":null},` +
	`{"id":"node-2","role":"candidate","lastHeartbeatAgoMs":0,"position":1},` +
	`{"id":"node-3","role":"follower","term":6,"lastHeartbeatAgoMs":12000,"position":null,"note":"shard\u0007 3"}]}`

func TestMembersArePrintedAsACluster(t *testing.T) {
	t.Parallel()
	env := scripted(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", wire.ContentType)
		io.WriteString(w, threeMembers)
	})
	want := `ID      ROLE       TOKEN  HEARD      POSITION  NOTE
node-1  leader     7      900ms ago  -         
node-2  candidate  -      0s ago     1         
node-3  follower   6      12s ago    -         shard\u0007 3
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

func TestJoinIsAMemberUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	regent(t, env, "acquire e --candidate ann").want(t, exitDone)
	joined := start(t, env, "join e node-2 --role worker --ttl 10s --note shard-3")
	joined.wantLines(t, "Candidate ann leads with fencing token 1.")
	if r := regent(t, env, "members e").want(t, exitDone); !regexp.MustCompile(`node-2 +worker .*shard-3`).MatchString(r.out) {
		t.Errorf("the members are\n%s", r.out)
	}
	joined.end().want(t, exitDone)
	if r := regent(t, env, "members e").want(t, exitDone); strings.Contains(r.out, "node-2") {
		t.Errorf("after it has left, the members are\n%s", r.out)
	}
}

func TestHowALeaderHasWonIsOneCell(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"nonsense":              "",
		`{"because":"preempt"}`: "",
		`{"bids":3,"others":[],"place":1,"strategy":"priority","winner":{"candidateId":"a","priority":-7}}`:                   "priority -7, best of 3",
		`{"bids":3,"place":2,"strategy":"leastLoaded","winner":{"candidateId":"a","load":0}}`:                                 "leastLoaded 0, place 2 of 3",
		`{"bids":1,"place":1,"strategy":"roundRobin","last":"b","winner":{"candidateId":"a"}}`:                                "roundRobin",
		`{"bids":2,"place":1,"strategy":"random","secret":"00","winner":{"candidateId":"a","draw":"00ff"}}`:                   "random 00ff, best of 2",
		`{"bids":2,"place":1,"strategy":"capability","winner":{"candidateId":"a","preferred":2,"priority":1}}`:                "capability (2 preferred), best of 2",
		`{"bids":2,"place":1,"strategy":"firstCome","present":2,"winner":{"candidateId":"a","since":"2026-01-01T12:00:00Z"}}`: "firstCome, best of 2",
		`{"bids":2,"place":1,"strategy":"of a later version","winner":{"candidateId":"a"}}`:                                   "of a later version, best of 2",
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
