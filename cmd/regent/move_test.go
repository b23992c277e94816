package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store"
)

// fileWith returns the spec of a file in which "held" has a leader for an hour, and "free" had two
// leaders.
func fileWith(t *testing.T) string {
	t.Helper()
	spec := "file:" + filepath.Join(t.TempDir(), "leases")
	inFile(t, spec, func(s *service.Service) {
		for range 2 {
			g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "free", CandidateID: "ann"})
			require.NoError(t, err)
			if _, err := s.Do(t.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "free", CandidateID: "ann", Key: g.Key, Token: g.Token}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "held", CandidateID: "ann", LeaseDuration: time.Hour}); err != nil {
			t.Fatal(err)
		}
	})
	return spec
}

func inFile(t *testing.T, spec string, do func(*service.Service)) {
	t.Helper()
	s, err := store.Open(t.Context(), spec, store.Config{})
	require.NoError(t, err)
	defer s.Close()
	do(service.New(s))
}

func grantIn(t *testing.T, spec string, e leadership.Election) (token leadership.Token) {
	t.Helper()
	inFile(t, spec, func(s *service.Service) {
		g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "bob"})
		if err == nil {
			token = g.Token
		}
	})
	return token
}

func TestMigrateMovesAStoreIntoAnother(t *testing.T) {
	t.Parallel()
	from, to := fileWith(t), "file:"+filepath.Join(t.TempDir(), "new.db")
	plan := regent(t, nil, "admin migrate --dry-run --from "+from+" --store "+to).want(t, exitDone)
	want := "free: move, fencing token 2, revision 7, vacant\nheld: move, fencing token 1, revision 4, locked for 1h0m"
	if !strings.HasPrefix(plan.out, want) {
		t.Errorf("the plan is\n%swant\n%s", plan.out, want)
	}
	if _, err := os.Stat(strings.TrimPrefix(to, "file:")); err == nil {
		t.Error("a dry run has created a file")
	}
	done := regent(t, nil, "admin migrate --from "+from+" --store "+to).want(t, exitDone)
	for _, want := range []string{"2 elections of " + from + " are now in " + to + ", 0 of them deleted; 0 were there before", "all can be led in 1h0m"} {
		if !strings.Contains(done.out, want) {
			t.Errorf("%q does not say %q", done.out, want)
		}
	}
	again := regent(t, []string{"REGENT_STORE=" + to}, "admin migrate --from "+from).want(t, exitDone)
	if !strings.Contains(again.out, "2 were there before") {
		t.Errorf("again: %q", again.out)
	}
	there := regent(t, nil, "admin migrate --dry-run --from "+from+" --store "+to).want(t, exitDone)
	if !strings.Contains(there.out, "free: already there, fencing token 2") {
		t.Errorf("a plan for elections that exist already: %q", there.out)
	}
	moved := "the elections of this store were moved to " + to
	if r := regent(t, nil, "doctor --store "+from).want(t, exitOther); !strings.Contains(r.out, moved) {
		t.Errorf("doctor of the old store: %q", r.out)
	}
	if _, err := (&cli{}).openStore(t.Context(), slog.New(slog.DiscardHandler), serviceSettings{store: from}); err == nil || !strings.Contains(err.Error(), moved) {
		t.Errorf("serve of the old store: %v", err)
	}
	for e, want := range map[leadership.Election]leadership.Token{"free": 3, "held": 0} {
		if got := grantIn(t, to, e); got != want {
			t.Errorf("%s: granted %d, want %d", e, got, want)
		}
		if got := grantIn(t, from, e); got != 0 {
			t.Errorf("%s: the old store granted %d", e, got)
		}
	}
}

func TestRaiseRaisesAStoreThatWasRestored(t *testing.T) {
	t.Parallel()
	spec := fileWith(t)
	low := regent(t, nil, "admin raise --above 4 --store "+spec).want(t, exitUsage)
	if !strings.Contains(low.err, `"free" is at revision 4`) {
		t.Errorf("too low: %q", low.err)
	}
	first := regent(t, nil, "admin raise --above 1000 --lock 1s --store "+spec).want(t, exitDone)
	if want := "2 elections of " + spec + " are now at fencing token 1000; 0 already were; all can be led in 1h0m0s\n"; first.out != want {
		t.Errorf("got  %swant %s", first.out, want)
	}
	again := regent(t, []string{"REGENT_STORE=" + spec}, "admin raise --above 1000").want(t, exitDone)
	if !strings.Contains(again.out, "2 already were") {
		t.Errorf("again: %q", again.out)
	}
	for _, e := range []leadership.Election{"free", "held"} {
		if got := grantIn(t, spec, e); got != 0 {
			t.Errorf("%s: granted %d at once", e, got)
		}
	}
	p := startProcess(t, "--store", spec)
	regent(t, p.env, "configure late").want(t, exitDone)
	if r := regent(t, p.env, "history late").want(t, exitDone); !regexp.MustCompile(`(?m)^1002 .* configured .* 1000$`).MatchString(r.out) {
		t.Errorf("an election that the store has never seen:\n%swant it above the floor", r.out)
	}
	if r := regent(t, p.env, "acquire later --candidate ann").want(t, exitHeld); !strings.Contains(r.err, "cannot be led for another") {
		t.Errorf("another: %q", r.err)
	}
}

func TestRecordsThatWereNotRaisedAreNamedInTheError(t *testing.T) {
	t.Parallel()
	err := untrustedError{store.Raised{Untrusted: []leadership.Election{"free", "held"}, Logs: []string{"the journal of jobs"}}}
	if exitCode(err) != exitOther || !strings.Contains(err.Error(), `"free", "held"`) || !strings.Contains(err.Error(), `"the journal of jobs"`) {
		t.Errorf("exit code %d, %v", exitCode(err), err)
	}
}

func TestAStoreInUseIsNeitherMovedNorRaised(t *testing.T) {
	t.Parallel()
	spec, served := fileWith(t), "file:"+filepath.Join(t.TempDir(), "served.db")
	s, err := store.Open(t.Context(), served, store.Config{})
	require.NoError(t, err)
	defer s.Close()
	for _, args := range []string{"admin migrate --from " + served + " --store " + spec, "admin migrate --from " + spec + " --store " + served, "admin raise --above 10 --store " + served} {
		if r := regent(t, nil, args).want(t, exitOther); !strings.Contains(r.err, "in use by another process") {
			t.Errorf("%s: %q", args, r.err)
		}
	}
}

func TestEmulatorIsMentioned(t *testing.T) {
	t.Parallel()
	env := []string{"FILE_EMULATOR_HOST=127.0.0.1:1"} // no such emulator exists
	spec, to := fileWith(t), "file:"+filepath.Join(t.TempDir(), "new.db")
	for _, args := range []string{"admin migrate --store " + to, "admin migrate --dry-run --from " + spec + " --store " + to, "admin migrate --from " + spec + " --store " + to, "admin raise --above 100 --store " + to} {
		if r := regent(t, env, args).want(t, exitDone); !strings.HasPrefix(r.err, "FILE_EMULATOR_HOST is set: ") || !strings.Contains(r.err, "the emulator at 127.0.0.1:1\n") {
			t.Errorf("%s: %q", args, r.err)
		}
	}
}
