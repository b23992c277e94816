package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyTestsThatPassedProveAnything(t *testing.T) {
	t.Parallel()
	ended := errors.New("exit status 1")
	for _, c := range []struct {
		output string
		err    error
		failed string
	}{
		{"--- PASS: TestNoUpdateIsLost (0.1s)\nPASS", nil, ""},
		{"--- SKIP: TestNoUpdateIsLost (0.1s)\nPASS", nil, ""},
		{"    --- FAIL: TestRuns/seed_7 (0.1s)\n--- FAIL: TestRuns (0.1s)\nFAIL", ended, "TestRuns/seed_7, TestRuns"},
		{"go: cannot find main module", ended, "exit status 1"},
		{"ok  	regent/test	0.1s [no tests to run]", nil, "there are no such tests"},
	} {
		if r := results([]byte(c.output), c.err); strings.Join(r.failed, ", ") != c.failed {
			t.Errorf("%s: failed: %q, want %q", c.output, r.failed, c.failed)
		}
	}
}

func TestFiguresAreSummedUp(t *testing.T) {
	t.Parallel()
	r := results([]byte("a_test.go:1: looked at: 3 models, 7 steps taken\n--- PASS: TestA (1s)\n    --- PASS: TestB/b (1s)\n--- PASS: TestB (1s)\n"+
		"    b_test.go:2: looked at: 4 models\n--- SKIP: TestC (0s)\n"), nil)
	if want := map[string]int{"tests": 2, "models": 7, "steps taken": 7}; !maps.Equal(r.figures, want) || !slices.Equal(r.skipped, []string{"TestC"}) {
		t.Errorf("%v, skipped %v; want %v, and TestC", r.figures, r.skipped, want)
	}
}

func TestPartsRunTheirTestsAndReport(t *testing.T) {
	t.Parallel()
	good := &part{name: "good", runs: []goTest{{dir: ".", names: "TestFiguresAreSummedUp"}}}
	none := &part{name: "none", computes: true, runs: []goTest{{dir: ".", names: "TestOfNothing"}}}
	r := report{config: config{share: 1, seed: 1, dir: t.TempDir()}, parts: []*part{good, none}}
	r.do(t.Context())
	if err := r.err(t.Context()); err == nil || err.Error() != "none: there are no such tests; see "+r.file("none.txt") {
		t.Errorf("%v", err)
	}
	said, err := os.ReadFile(r.file("report.md"))
	for _, line := range []string{"| good | 1 tests | nothing |", "| none |  | **there are no such tests** |"} {
		if err != nil || !strings.Contains(string(said), line) {
			t.Errorf("no %q in the report, %v:\n%s", line, err, said)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	later := &part{name: "later", runs: good.runs}
	r.parts = []*part{later}
	r.do(stopped)
	if err := r.err(stopped); later.result.done || err == nil || err.Error() != "stopped before the end" {
		t.Errorf("stopped: %+v, %v", later.result, err)
	}
}

func TestOnlyReportsOfAllPartsArePublished(t *testing.T) {
	for _, c := range []config{{share: 0, seed: 1}, {share: 1}, {share: 1, seed: 1, draw: -1}, {share: 4, seed: 1, night: true}, {share: 1, seed: 1, only: "lock"}, {share: 1, seed: 1, only: "states", page: "README.md"}} {
		if chosen, err := choose(c); err == nil {
			t.Errorf("%+v: %d parts", c, len(chosen))
		}
	}
	page := filepath.Join(t.TempDir(), "page.md")
	for text, want := range map[string]string{
		"a\n" + pageBegins + "old\n" + pageEnds + "z\n": "a\n" + pageBegins + "new\n" + pageEnds + "z\n",
		"a\nz\n": "a\nz\n", // has no place
	} {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
		err := publish(page, "new\n")
		if got, _ := os.ReadFile(page); string(got) != want || (err == nil) != (text != want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// A test of real processes that does less with -short must be in the table of long tests, or be a
// part of its own.
func TestEveryTestWithAShortFormHasItsLongForm(t *testing.T) {
	t.Parallel()
	own := []string{"TestNoCandidateBelievesInAnEndedLease", "TestNoFaultBreaksAPromiseOnFile", "TestNoFaultBreaksAPromiseOnFirestore", "TestNoFaultBreaksAPromiseOnSpanner"}
	known := map[string]bool{}
	for _, g := range longTests() {
		for name := range strings.SplitSeq(g.names, "|") {
			known[g.dir+" "+name] = true
		}
	}
	for _, dir := range []string{"./test", "./test/clients", "./test/faults", "./test/belief", "./leadership/client", "./store/firestore", "./store/spanner"} {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no tests: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, f := range strings.Split(string(text), "\nfunc ")[1:] {
				name, _, _ := strings.Cut(f, "(")
				short := regexp.MustCompile(`machine\.(Share|Size|LongOnly)\(|each\(t, |storetest\.RunProtocol|testing\.Short\(\) \{\n\t\tt\.Skip`).MatchString(f)
				if strings.HasPrefix(name, "Test") && !slices.Contains(own, name) && short != known[dir+" "+name] {
					t.Errorf("%s: %s: has a short form: %t, is among the long tests: %t", file, name, short, known[dir+" "+name])
				}
				delete(known, dir+" "+name)
			}
		}
	}
	for name := range known {
		t.Errorf("there is no test %s", name)
	}
}
