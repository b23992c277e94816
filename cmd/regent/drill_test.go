package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership/wire"
)

// waits starts a candidate, and returns once it stands in line.
func waits(t *testing.T, env []string, election, candidate string) {
	t.Helper()
	start(t, env, "acquire "+election+" --candidate "+candidate+" --wait forever --lease 30s")
	for !strings.Contains(regent(t, env, "why "+election+" "+candidate).out, "in line") {
		if t.Context().Err() != nil {
			t.Fatalf("%s does not stand in line", candidate)
		}
	}
}

// drills begins a drill of jobs.*, and returns once it has ended the term after the revision.
func drills(t *testing.T, env []string, revision string) *running {
	t.Helper()
	d := start(t, env, "drill jobs.* --output json --reason exercise")
	w := start(t, env, "watch jobs.a --output json --count 1 --after "+revision)
	if line := w.line(t); !strings.Contains(line, `"type":"evicted"`) || !strings.Contains(line, `"reason":"exercise"`) {
		t.Fatalf("%s; want the eviction", line)
	}
	return d
}

func TestADrillShowsHowLongNobodyLedAndWhetherTheLeaderStopped(t *testing.T) {
	t.Parallel()
	c := newClock()
	env := startServer(t, c)
	ann := append(env, "REGENT_CANDIDATE=ann", "REGENT_KEY="+testKey(1))
	regent(t, ann, "acquire jobs.a --lease 30s").want(t, exitDone)
	regent(t, env, "acquire jobs.lonely --candidate ann --lease 30s").want(t, exitDone)
	waits(t, env, "jobs.a", "bob")
	regent(t, env, "pause jobs.a --for 1h --reason moving").want(t, exitDone)
	if r := regent(t, env, "drill jobs.a --dry-run").want(t, exitDone); !strings.Contains(r.out, "left alone: an order or the policy bars") {
		t.Errorf("of a paused election the plan says %s", r.out)
	}
	regent(t, env, "resume jobs.a --reason moved").want(t, exitDone)
	d := drills(t, env, "3")
	c.advance(10 * time.Second)
	regent(t, ann, "release jobs.a --token 1").want(t, exitDone)
	d.wantLines(t,
		`{"election":"jobs.a","leader":"ann","fencingToken":1,"ended":"released","inTime":true,"vacantMs":0,"successor":"bob","successorToken":2}`,
		`{"drills":1,"late":0,"longestMs":0}`)
	if r := <-d.done; r.code != exitDone {
		t.Errorf("%+v, though the leader stopped in time", r)
	}

	waits(t, env, "jobs.a", "cleo")
	d = drills(t, env, "6")
	c.advance(37 * time.Second) // and bob does not stop; its lease has run out 7 s ago
	ticked, err := http.Post(strings.TrimPrefix(env[0], "REGENT_SERVER=")+wire.PathTick, wire.ContentType, nil)
	require.NoError(t, err)
	ticked.Body.Close()
	d.wantLines(t,
		`{"election":"jobs.a","leader":"bob","fencingToken":2,"ended":"expired","inTime":false,"vacantMs":7000,"successor":"cleo","successorToken":3}`,
		`{"drills":1,"late":1,"longestMs":7000}`)
	if r := <-d.done; r.code != exitOther || !strings.Contains(r.err, "1 of 1 leaders did not stop in time") {
		t.Errorf("%+v, though the leader did not stop", r)
	}
}

func TestADrillOfASeatLooksAtTheLineOfAllSeats(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	regent(t, env, `configure gpu --policy {"seats":1}`).want(t, exitDone)
	ann := append(env, "REGENT_CANDIDATE=ann", "REGENT_KEY="+testKey(1))
	regent(t, ann, "acquire gpu --lease 30s").want(t, exitDone)
	if r := regent(t, env, "drill gpu* --dry-run").want(t, exitDone); !strings.Contains(r.out, "left alone: no candidate is in line") {
		t.Errorf("with no candidate in line the plan says %s", r.out)
	}
	waits(t, env, "gpu", "bob")
	regent(t, env, "pause gpu --for 1h --reason moving").want(t, exitDone)
	if r := regent(t, env, "drill gpu* --dry-run").want(t, exitDone); !strings.Contains(r.out, "left alone: an order or the policy bars") {
		t.Errorf("of a paused election the plan says %s", r.out)
	}
	regent(t, env, "resume gpu --reason moved").want(t, exitDone)
	d := start(t, env, "drill gpu* --output json")
	w := start(t, env, "watch gpu.1 --output json --count 1 --after 2")
	if line := w.line(t); !strings.Contains(line, `"type":"evicted"`) {
		t.Fatalf("%s; want the eviction", line)
	}
	regent(t, ann, "release gpu.1 --token 1").want(t, exitDone)
	d.wantLines(t,
		`{"election":"gpu.1","leader":"ann","fencingToken":1,"ended":"released","inTime":true,"vacantMs":0,"successor":"bob","successorToken":2}`,
		`{"drills":1,"late":0,"longestMs":0}`)
}

func TestADrillIsSummedUp(t *testing.T) {
	t.Parallel()
	var d drill
	for n := range 101 {
		d.done = append(d.done, drillDocument{Ended: "released", InTime: n%10 > 0, VacantMs: int64(100 - n), Successor: "bob"})
	}
	d.done = append(d.done, drillDocument{Ended: "released", InTime: true}) // without a successor
	if diff := cmp.Diff(drillSummary{Drills: 102, Late: 11, LongestMs: 100, MedianMs: 50, P99Ms: 99}, d.sum()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
