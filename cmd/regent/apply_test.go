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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"regent/cmd/regent/internal/apply"
	"regent/leadership"
)

// fileOf writes a file and returns its name.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "elections.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestElectionsBecomeWhatFilesDeclare(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	const files = `
elections:
  orders.eu: {leaseDuration: 1m}
  orders.us: {policy: {maxTerm: 8h}}
`
	for _, step := range []struct {
		file, flags string
		code        int
		out         string // "" if that does not matter
	}{
		{files, "--dry-run", exitDiffers, "+ orders.eu: to be created\n    leaseDuration  1m\n+ orders.us: to be created\n    leaseDuration   30s\n    policy.maxTerm  8h\n2 elections: 2 to be created\n"},
		{files, "", exitDone, "+ orders.eu: created\n    leaseDuration  1m\n+ orders.us: created\n    leaseDuration   30s\n    policy.maxTerm  8h\n2 elections: 2 created\n"},
		{files, "", exitDone, "2 elections: 2 as declared\n"},
		{files, "--dry-run", exitDone, "2 elections: 2 as declared\n"},
		{"elections: {orders.eu: {lockDelay: 5s}}", "", exitDone, "~ orders.eu: changed\n    leaseDuration  1m -> 30s\n    lockDelay      (none) -> 5s\n1 election: 1 changed\n"},
		{"elections: {orders.eu: {lockDelay: 5s}}", "--prune other", exitDone, "1 election: 1 as declared\n"},
		{"elections: {orders.eu: {lockDelay: 5s}}", "--prune orders. --dry-run", exitDiffers, "- orders.us: to be deleted\n    leaseDuration   30s\n    policy.maxTerm  8h\n2 elections: 1 to be deleted, 1 as declared\n"},
		{"elections: {orders.eu: {lockDelay: 5s}}", "--prune orders.", exitDone, "- orders.us: deleted\n    leaseDuration   30s\n    policy.maxTerm  8h\n2 elections: 1 deleted, 1 as declared\n"},
		{files, "", exitOther, ""},
		{files, "--restore --dry-run", exitDiffers, "~ orders.eu: to be changed\n    leaseDuration  30s -> 1m\n    lockDelay      5s -> (none)\n+ orders.us: to be restored\n    leaseDuration   30s\n    policy.maxTerm  8h\n2 elections: 1 to be restored, 1 to be changed\n"},
		{files, "--restore", exitDone, "~ orders.eu: changed\n    leaseDuration  30s -> 1m\n    lockDelay      5s -> (none)\n+ orders.us: restored\n    leaseDuration   30s\n    policy.maxTerm  8h\n2 elections: 1 restored, 1 changed\n"},
		{"elections: {}", "", exitDone, "0 elections: nothing is declared\n"},
	} {
		r := regent(t, env, "apply "+step.flags+" -f", fileOf(t, step.file)).want(t, step.code)
		if step.out != "" && r.out != step.out {
			t.Errorf("apply %s prints (-want +got)\n%s", step.flags, gocmp.Diff(step.out, r.out))
		}
	}

	regent(t, env, "acquire orders.us --candidate ann").want(t, exitDone)
	r := regentReading(t, "elections: {}", env, "apply -f - --prune orders.").want(t, exitHeld)
	if !strings.Contains(r.err, `"ann" leads it; give --prune-held`) || !strings.Contains(r.out, "- orders.us: to be deleted\n    refused: election") {
		t.Errorf("a held election is refused with %s%s", r.out, r.err)
	}
	regent(t, env, "status orders.eu").want(t, exitDone) // nothing was deleted
	regentReading(t, "elections: {}", env, "apply -f - --prune orders.e --prune orders.u --prune-held").want(t, exitDone)
	regent(t, env, "status orders.us").want(t, exitOther)
}

func TestFilesOfAFolderAreApplied(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "elections: {a: {}}", "b.yml": "elections: {b: {}}", "c.json": `{"elections": {"c": {}}}`, "README.md": "elections: [", "d.yaml.off": "?",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "e.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("ann@host.1", filepath.Join(dir, ".#a.yaml")); err != nil { // as Emacs locks a file
		t.Fatal(err)
	}
	r := regentReading(t, "elections: {d: {}}", env, "apply -f - -f", dir).want(t, exitDone)
	if !strings.HasSuffix(r.out, "4 elections: 4 created\n") {
		t.Errorf("it prints %s", r.out)
	}
	if r := regent(t, nil, "apply -f", t.TempDir()).want(t, exitUsage); !strings.Contains(r.err, "has no *.yaml, *.yml or *.json file") {
		t.Errorf("an empty folder: %s", r.err)
	}
}

func TestEachMistakeInAFileIsALine(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	name := fileOf(t, "elections:\n  good: {}\n  Bad: {}\n  worse: {lease: 1m}\n")
	r := regent(t, env, "apply -f", name).want(t, exitUsage)
	lines := strings.Split(r.err, "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], name+":3: an election's name") || !strings.HasPrefix(lines[1], name+`:4: election "worse": unknown field "lease"`) || lines[2] != "regent: the files have 2 mistakes; nothing was applied" {
		t.Errorf("stderr is\n%s", r.err)
	}
	regent(t, env, "status good").want(t, exitOther)
	r = regent(t, env, "apply --output json -f", name).want(t, exitUsage)
	if !strings.Contains(r.err, `"code":"INVALID_ARGUMENT"`) || strings.Count(r.err, "\n") != 1 || strings.Count(r.err, name) != 2 {
		t.Errorf("as a document: %s", r.err)
	}
}

func TestTheSchemaIsPrintedWithoutAServer(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]any
		Defs       map[string]any `json:"$defs"`
	}
	r := regent(t, []string{"REGENT_SERVER=http://127.0.0.1:1"}, "apply --schema").want(t, exitDone)
	if err := json.Unmarshal([]byte(r.out), &schema); err != nil || schema.Properties["elections"] == nil || schema.Defs["Policy"] == nil {
		t.Errorf("%v in %s", err, r.out)
	}
}

// throughProxy puts a proxy before the server. It calls before with each request, which answers it
// if it returns true.
func throughProxy(t *testing.T, env []string, before func(http.ResponseWriter, *http.Request) bool) []string {
	t.Helper()
	target, err := url.Parse(strings.TrimPrefix(env[0], "REGENT_SERVER="))
	if err != nil {
		t.Fatal(err)
	}
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

func TestWhatWasAppliedBeforeAFailureIsSaid(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	proxy := throughProxy(t, env, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/b") {
			http.Error(w, "away", http.StatusBadGateway)
			return true
		}
		return false
	})
	r := regent(t, proxy, "apply --output json -f", fileOf(t, "elections: {a: {}, b: {}, c: {}}"))
	var results []string
	for _, o := range outcomes(t, r.out) {
		results = append(results, fmt.Sprintf("%s %s %s %d", o.Election, o.Action, o.Result, o.Revision))
	}
	want := []string{"a create done 1", "b create failed 0", "c create notTried 0"}
	if diff := gocmp.Diff(want, results); diff != "" || r.code != exitUnreachable {
		t.Errorf("exit code %d, %s (-want +got)\n%s", r.code, r.err, diff)
	}
}

func TestASignalEndsApplyWithASummary(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	for i := range 300 { // more than are created before the signal arrives
		fmt.Fprintf(&file, "\n  e%03d: {}", i)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "apply", "-f", fileOf(t, "elections:"+file.String()))
	var puts atomic.Int32
	proxy := throughProxy(t, startServer(t, newClock()), func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && puts.Add(1) == 3 {
			cmd.Process.Signal(os.Interrupt)
		}
		return false
	})
	cmd.Env = append(proxy, beRegent)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	done := int(puts.Load())
	want := fmt.Sprintf("300 elections: %d created, %d not tried\n", done, 300-done)
	if cmd.ProcessState.ExitCode() != exitOther || done >= 300 || !strings.HasSuffix(string(out), want) || !strings.Contains(stderr.String(), "interrupted; apply again") {
		t.Errorf("%v, %s\n%s\nwant %s", cmd.ProcessState, stderr.String(), out[max(0, len(out)-200):], want)
	}
}

func TestApplyWaitsWhenItCallsTooOften(t *testing.T) {
	t.Parallel()
	var puts atomic.Int32
	proxy := throughProxy(t, startServer(t, newClock()), func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || puts.Add(1) != 2 {
			return false
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"type":"urn:regent:problem:RATE_LIMITED","title":"x","status":429,"detail":"slower","code":"RATE_LIMITED","retryAfterMs":1}`)
		return true
	})
	regent(t, proxy, "apply -f", fileOf(t, "elections: {a: {}, b: {}, c: {}}")).want(t, exitDone)
	if puts.Load() != 4 {
		t.Errorf("%d writes, want 4", puts.Load())
	}
}

func outcomes(t *testing.T, out string) (all []outcome) {
	t.Helper()
	for line := range strings.Lines(out) {
		var o outcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
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
	blind    bool // the caller does not say what it has seen
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
