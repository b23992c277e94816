package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/cmd/regent/internal/apply"
	"regent/leadership"
	"regent/leadership/wire"
)

// fileOf writes a file and returns its name.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "elections.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// throughProxy puts a proxy before the server. The proxy calls before with each request; if that
// returns true, it has answered the request.
func throughProxy(t *testing.T, env []string, before func(http.ResponseWriter, *http.Request) bool) []string {
	t.Helper()
	target, err := url.Parse(strings.TrimPrefix(env[0], "REGENT_SERVER="))
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !before(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return []string{"REGENT_SERVER=" + server.URL}
}

func TestAChangeOfAnotherCallerIsNotUndone(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	regent(t, env, "configure b --lock-delay 1s").want(t, exitDone)
	var once sync.Once
	proxy := throughProxy(t, env, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/b") {
			once.Do(func() { regent(t, env, "configure b --lock-delay 2s").want(t, exitDone) })
		}
		return false
	})
	name := fileOf(t, "elections: {a: {}, b: {lockDelay: 3s}, c: {}}")
	r := regent(t, proxy, "apply -f", name).want(t, exitConflict)
	if want := "+ a: created\n    leaseDuration  30s\n~ b: failed\n    lockDelay  1s -> 3s\n+ c: not tried\n    leaseDuration  30s\n3 elections: 1 created, 1 failed, 1 not tried\n"; r.out != want {
		t.Errorf("it prints (-want +got)\n%s", gocmp.Diff(want, r.out))
	}
	if !strings.Contains(r.err, `election "b" was configured since it was read; nothing was written to it; look at the difference with --dry-run`) {
		t.Errorf("the error is %s", r.err)
	}
	if r := regent(t, env, "status b").want(t, exitDone); !strings.Contains(r.out, "2s") {
		t.Errorf("the other caller's change is undone:\n%s", r.out)
	}
	regent(t, proxy, "apply -f", name).want(t, exitDone)
}

func TestASignalEndsApplyWithASummary(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	for i := range 300 { // more than are created before the signal arrives
		fmt.Fprintf(&file, "\n  e%03d: {}", i)
	}
	cmd := itself(t, "apply", "-f", fileOf(t, "elections:"+file.String()))
	var puts atomic.Int32
	proxy := throughProxy(t, startServer(t, newClock()), func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && puts.Add(1) == 3 {
			cmd.Process.Signal(os.Interrupt)
		}
		return false
	})
	cmd.Env = append(cmd.Env, proxy...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	done := int(puts.Load())
	want := fmt.Sprintf("300 elections: %d created, %d not tried\n", done, 300-done)
	if cmd.ProcessState.ExitCode() != exitOther || done >= 300 || !strings.HasSuffix(string(out), want) || !strings.Contains(stderr.String(), "interrupted; apply again") {
		t.Errorf("%v, %s\n%s\nwant %s", cmd.ProcessState, stderr.String(), out[max(0, len(out)-200):], want)
	}
}

func TestCommandsOfManyCallsWaitWhenTheyCallTooOften(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	proxy := throughProxy(t, startServer(t, newClock()), func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut && r.URL.Path != wire.PathElections || calls.Add(1) != 2 {
			return false
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"type":"urn:regent:problem:RATE_LIMITED","title":"x","status":429,"detail":"slower","code":"RATE_LIMITED","retryAfterMs":1}`)
		return true
	})
	regent(t, proxy, "apply -f", fileOf(t, "elections: {a: {}, b: {}, c: {}}")).want(t, exitDone)
	if calls.Load() != 4 {
		t.Errorf("%d writes, want 4", calls.Load())
	}
	for _, command := range []string{"list", "drill * --dry-run"} {
		calls.Store(1)
		regent(t, proxy, command).want(t, exitDone)
		if calls.Load() != 3 {
			t.Errorf("%s: %d calls, want 2", command, calls.Load()-1)
		}
	}
}

func outcomes(t *testing.T, out string) (all []outcome) {
	t.Helper()
	for line := range strings.Lines(out) {
		var o outcome
		require.NoError(t, json.Unmarshal([]byte(line), &o))
		all = append(all, o)
	}
	return all
}

// write is a change of an election's description by a caller that has seen another one, or ""
// where the election was not there.
type write struct {
	by       string
	revision leadership.Revision
	seen, to string
	blind    bool // the caller sends no condition
}

// Two callers apply files, which create, change, delete and restore elections; a third configures
// them by hand, and terms begin and end. Each description is written once, so each write must have
// seen the one before it.
func TestNoChangeIsUndoneByACallerThatHasNotSeenIt(t *testing.T) {
	t.Parallel()
	const rounds = 40
	elections := []leadership.Election{"e0", "e1", "e2"}
	env := startServer(t, newClock())
	var mu sync.Mutex
	writes := map[leadership.Election][]write{}
	codes := map[int]int{}
	note := func(e leadership.Election, w write) {
		mu.Lock()
		defer mu.Unlock()
		writes[e] = append(writes[e], w)
	}
	applies := func(by, flags string, declared []leadership.Election) func(int) {
		return func(round int) {
			var file strings.Builder
			fmt.Fprintln(&file, "elections:")
			for _, e := range declared {
				fmt.Fprintf(&file, "  %s: {description: %s-%d}\n", e, by, round)
			}
			r := regentReading(t, file.String(), env, "apply -f - --output json "+flags)
			mu.Lock()
			codes[r.code]++
			mu.Unlock()
			for _, o := range outcomes(t, r.out) {
				i := slices.IndexFunc(o.Changes, func(m apply.Member) bool { return m.Name == "description" })
				if o.Result == stepDone && i >= 0 {
					note(o.Election, write{by, o.Revision, string(o.Changes[i].From), string(o.Changes[i].To), false})
				}
			}
		}
	}
	everyone := []func(int){
		applies("A", "--restore", elections),
		applies("B", "--restore --prune e2 --prune-held", elections[:2]),
		func(round int) {
			e := elections[round%3]
			r := regent(t, env, fmt.Sprintf("configure %s --description C-%d --output json", e, round))
			var l struct{ Revision leadership.Revision }
			if r.code == exitDone && json.Unmarshal([]byte(r.out), &l) == nil {
				note(e, write{"C", l.Revision, "", fmt.Sprintf("%q", fmt.Sprintf("C-%d", round)), true})
			}
		},
		func(round int) {
			args := fmt.Sprintf("%s --candidate ann --key %s", elections[round%2], testKey(1))
			if r := regent(t, env, "acquire "+args+" --output json"); r.code == exitDone {
				var l struct{ FencingToken int }
				if err := json.Unmarshal([]byte(r.out), &l); err == nil {
					regent(t, env, fmt.Sprintf("release %s --token %d", args, l.FencingToken))
				}
			}
		},
	}
	var running sync.WaitGroup
	for _, act := range everyone {
		running.Go(func() {
			for round := range rounds {
				act(round)
			}
		})
	}
	running.Wait()
	t.Logf("exit codes of apply: %v", codes)
	if codes[exitDone] == 0 || codes[exitDone]+codes[exitConflict] != 2*rounds {
		t.Errorf("exit codes of apply are %v, want 0 and 8 only", codes)
	}
	for e, all := range writes {
		slices.SortFunc(all, func(a, b write) int { return cmp.Compare(a.revision, b.revision) })
		there := ""
		for _, w := range all {
			if !w.blind && w.seen != there {
				t.Errorf("%s: %s wrote %s at revision %d over %s, and had seen %q", e, w.by, w.to, w.revision, there, w.seen)
			}
			there = w.to
		}
	}
}
