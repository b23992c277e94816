package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// offers returns the completions that a shell would show.
func offers(t *testing.T, env []string, args ...string) []string {
	t.Helper()
	r := regent(t, env, "__complete", args...).want(t, exitDone)
	var names []string
	for line := range strings.Lines(r.out) {
		if !strings.HasPrefix(line, ":") {
			names = append(names, strings.TrimSuffix(line, "\n"))
		}
	}
	return names
}

func TestElectionsAreCompletedFromTheServer(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=agent-1")
	for _, args := range []string{"acquire reports", "acquire repairs", "acquire backups", "configure rest"} {
		regent(t, env, args).want(t, exitDone)
	}
	for _, command := range []string{"status", "acquire", "renew", "release", "check", "history", "watch", "configure", "delete", "members", "join", "hand-over", "ready", "yield", "delegate", "tree"} {
		want := []string{"repairs\tagent-1", "reports\tagent-1"}
		if diff := cmp.Diff(want, offers(t, env, command, "rep")); diff != "" {
			t.Errorf("%s rep (-want +got)\n%s", command, diff)
		}
	}
	for _, args := range [][]string{{"checkpoint", "get"}, {"journal", "read"}, {"journal", "append"}} {
		if got := offers(t, env, append(args, "rep")...); len(got) != 2 {
			t.Errorf("%s rep: %q, want the two elections", args, got)
		}
	}
	if diff := cmp.Diff([]string{"rest\tvacant"}, offers(t, env, "status", "res")); diff != "" {
		t.Errorf("status res (-want +got)\n%s", diff)
	}
	if got := offers(t, env, "status", "reports", ""); got != nil {
		t.Errorf("after an election: %q, want nothing", got)
	}
	if diff := cmp.Diff([]string{"table", "json"}, offers(t, env, "status", "--output", "")); diff != "" {
		t.Errorf("--output (-want +got)\n%s", diff)
	}
}

func TestCompletionReportsNoErrorOfTheServer(t *testing.T) {
	t.Parallel()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hang.Close)
	for _, env := range [][]string{
		{"REGENT_SERVER=" + hang.URL, "REGENT_TIMEOUT=50ms"},
		{"REGENT_SERVER=http://127.0.0.1:1"},
		{"REGENT_SERVER=nonsense"},
	} {
		if got := offers(t, env, "status", ""); got != nil {
			t.Errorf("%q: %q, want nothing", env, got)
		}
	}
}

func TestEachShellHasAScript(t *testing.T) {
	t.Parallel()
	for _, shell := range offers(t, nil, "completion", "") {
		if r := regent(t, nil, "completion", shell).want(t, exitDone); !strings.Contains(r.out, "__complete") || r.err != "" {
			t.Errorf("%s: %d bytes that never ask regent, stderr %q", shell, len(r.out), r.err)
		}
	}
	if n := len(offers(t, nil, "completion", "")); n != 4 {
		t.Errorf("%d shells, want 4", n)
	}
}
