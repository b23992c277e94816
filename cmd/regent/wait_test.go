package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/wire"
)

func TestACandidateThatWaitsLeadsOnceTheLeaderHasGone(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	regent(t, env, "acquire e --candidate agent-1 --key", testKey(1)).want(t, exitDone)
	w := start(t, env, "acquire e --candidate agent-2 --wait 1m --output json")
	regent(t, env, "release e --candidate agent-1 --token 1 --key", testKey(1)).want(t, exitDone)
	var grant wire.Grant
	if line := w.line(t); json.Unmarshal([]byte(line), &grant) != nil || grant.LeaderID != "agent-2" || grant.FencingToken != 2 {
		t.Errorf("%s; want that the second leads", line)
	}
	if r := w.end().want(t, exitDone); !strings.Contains(r.err, "Keep the key") {
		t.Errorf("stderr %q; want a word about the key", r.err)
	}
	regent(t, env, "renew e --candidate agent-2 --token 2 --key", grant.Key).want(t, exitDone)
}

type requests struct {
	mu  sync.Mutex
	all []wire.AcquireRequest // guarded by mu
}

func (q *requests) then(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body wire.AcquireRequest
		if b, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(b, &body) != nil {
			return
		}
		q.mu.Lock()
		q.all = append(q.all, body)
		q.mu.Unlock()
		answer(w, r)
	}
}

func granted(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", wire.ContentType)
	fmt.Fprint(w, `{"election":"e","state":"held","leaderId":"a","fencingToken":1,"revision":1,"leaseDuration":"30s","expiresInMs":30000,"waitedMs":1500,"configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`)
}

func TestAWaitGoesOnAfterErrorsThatPassAndReportsAnOutageOnce(t *testing.T) {
	t.Parallel()
	for wait, first := range map[string]string{"30s": "30s", "forever": "60s"} {
		var q requests
		held, draining := q.then(refused(409, leadership.LeaseHeld)), q.then(refused(503, wire.Draining))
		broken := q.then(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		env := scripted(t, held, draining, q.then(refused(503, leadership.StoreUnavailable)), held, draining, broken, q.then(refused(429, wire.RateLimited)), q.then(granted))
		r := regent(t, env, "acquire e --candidate a --wait "+wait+" --key", testKey(1)).want(t, exitDone)
		if want := "regent: still waiting: Draining: not now\n"; r.err != want+want || strings.Contains(r.out, testKey(1)) {
			t.Errorf("stdout\n%s, stderr\n%swant a line for each of the two times, and the key nowhere", r.out, r.err)
		}
		if len(q.all) != 8 || q.all[0].Wait.String() != first {
			t.Errorf("%d calls, want 8, and the first to wait for %s: %v", len(q.all), first, q.all)
		}
		for i, body := range q.all {
			if body.Key == nil || *body.Key != testKey(1) || body.Wait > wire.Duration(leadership.MaxWait) {
				t.Errorf("call %d waits for %v, or has another key", i, body.Wait)
			}
		}
	}
}

func TestPausesGrowAfterEarlyAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := waiter{end: time.Now().Add(time.Hour)}
		pause := func(patient bool) time.Duration {
			began := time.Now()
			w.pause(t.Context(), patient)
			return time.Since(began)
		}
		const kept = 5 * time.Second // how long the server keeps a place in line
		most := 100 * time.Millisecond
		for range 20 {
			if got := pause(false); got < most/2 || got > most || got >= kept {
				t.Errorf("a pause of %v, want %v to %v", got, most/2, most)
			}
			most = min(2*most, 4*time.Second)
		}
		if got := pause(true); got != 0 {
			t.Errorf("after a call that has waited, a pause of %v", got)
		}
		if got := pause(false); got > 100*time.Millisecond {
			t.Errorf("after one that has not, a pause of %v", got)
		}
		w.end = time.Now().Add(time.Millisecond)
		if got := pause(false); got != time.Millisecond {
			t.Errorf("before the end of the wait, a pause of %v", got)
		}
	})
}

func TestAnApprovalOfUnknownOutcomeSaysHowItIsRepeated(t *testing.T) {
	t.Parallel()
	server := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			refused(504, leadership.OutcomeUnknown)(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"election":"e","state":"vacant","fencingToken":1,"revision":7,"leaseDuration":"30s","readAt":"2026-11-30T08:00:00Z"}`)
	})
	if r := regent(t, server, "approve e --token 1 --reason ok").want(t, exitUnreachable); !strings.Contains(r.err, "--if-revision 7") {
		t.Errorf("got %q", r.err)
	}
}

func TestWaitEndsWithAPermanentError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    string
		handler http.HandlerFunc
		code    int
		want    string
	}{
		{"--wait forever", refused(409, leadership.ElectionDeleted), exitOther, "not now"},
		{"--wait forever", refused(403, wire.PermissionDenied), exitOther, "not now"},
		{"--wait 10ms", refused(503, leadership.StoreUnavailable), exitUnreachable, "Store unavailable: not now"},
		{"--wait 10ms", refused(504, leadership.OutcomeUnknown), exitUnreachable, "It may have been done"},
		{"--wait 10ms", refused(409, leadership.LeaseHeld), exitTimedOut, "not now"},
		{"--wait 10ms --timeout 20ms", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, exitUnreachable, "did not answer"},
	} {
		if r := regent(t, scripted(t, c.handler), "acquire e --candidate a "+c.args).want(t, c.code); !strings.Contains(r.err, c.want) {
			t.Errorf("%s: %q, want %q", c.args, r.err, c.want)
		}
	}
}

func TestInterruptLeavesTheLine(t *testing.T) {
	t.Parallel()
	waits, left := make(chan struct{}), make(chan struct{})
	env := scripted(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(waits)
		<-r.Context().Done()
		close(left)
	})
	cmd := itself(t, "acquire", "e", "--candidate", "a", "--wait", "forever")
	var printed strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cmd.Env, env...), &printed, &printed
	require.NoError(t, cmd.Start())
	<-waits
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	<-left
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT || printed.Len() > 0 {
		t.Errorf("%v, it prints %q; want that the signal ended it, as a shell that loops expects", cmd.ProcessState, printed.String())
	}
}
