package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// seen is a part whose steps are remembered.
type seen struct {
	part
	mu    sync.Mutex
	seeds []uint64
}

// fake is a part with a unit for each step, which brings what does says; nil for a unit.
func fake(p part, does func(ctx context.Context, seed uint64) (tally, error)) *seen {
	s := &seen{part: p}
	s.unit = "things"
	s.step = func(ctx context.Context, seed uint64) (tally, error) {
		s.mu.Lock()
		s.seeds = append(s.seeds, seed)
		s.mu.Unlock()
		if does == nil {
			return tally{"things": 1}, nil
		}
		return does(ctx, seed)
	}
	return s
}

// made are the seeds of the steps that were made, in order.
func (s *seen) made() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.seeds))
}

func proofOf(t *testing.T, args []string, all ...part) *proof {
	t.Helper()
	p, err := begin(args, all...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func begin(args []string, all ...part) (*proof, error) {
	c, err := parse(args)
	if err != nil {
		return nil, err
	}
	return newProof(c, all)
}

func upTo(n uint64) (all []uint64) {
	for k := range n {
		all = append(all, k+1)
	}
	return all
}

func TestNoMoreStepsAreUnderWayThanAreWanted(t *testing.T) {
	t.Parallel()
	p := proofOf(t, []string{"-dir", t.TempDir()}, part{name: "runs", unit: "runs", quick: 2, each: 1})
	c := p.progress[0]
	for n := range uint64(2) {
		if got, more := p.next(c); !more || got != n+1 {
			t.Fatalf("%d, %t", got, more)
		}
	}
	if n, more := p.next(c); more {
		t.Errorf("step %d is begun while two are under way, and two are wanted", n)
	}
	if err := p.take(t.Context(), c, 1, nil, errNothing); err != nil {
		t.Fatal(err)
	}
	if n, more := p.next(c); !more || n != 3 {
		t.Errorf("%d, %t: a step that proved nothing is not made up for", n, more)
	}
}

func TestAStepThatWasCutOffHasNoVerdictWhateverItSays(t *testing.T) {
	t.Parallel()
	for _, says := range []error{context.Canceled, errors.New("killed"), errNothing, errors.ErrUnsupported} {
		ctx, stop := context.WithCancel(t.Context())
		s := fake(part{name: "cut", night: 2, each: 1, side: computes}, func(_ context.Context, seed uint64) (tally, error) {
			if seed == 2 {
				stop()
				return nil, says
			}
			return tally{"things": 1}, nil
		})
		p := proofOf(t, []string{"-night", "-dir", t.TempDir()}, s.part)
		if err := p.run(ctx); err == nil || err.Error() != "stopped before the end" {
			t.Errorf("%v: %v", says, err)
		}
		if c := p.progress[0]; c.figures["things"] != 1 || c.nothing > 0 || c.leftOut != "" || c.err != nil {
			t.Errorf("%v: %+v", says, c)
		}
	}
}

func TestTwentyFindingsEndAPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"-night", "-dir", dir}
	s := fake(part{name: "bad", night: 100, each: 1, side: computes}, func(_ context.Context, seed uint64) (tally, error) {
		if seed > 2*mostFindings {
			return tally{"things": 100}, nil
		}
		return nil, &finding{err: errors.New("two leaders")}
	})
	err := proofOf(t, args, s.part).run(t.Context())
	if err == nil || strings.Count(err.Error(), "two leaders") != mostFindings || !strings.Contains(err.Error(), "bad, seed 20: ") {
		t.Errorf("%v", err)
	}
	if got := s.made(); !slices.Equal(got, upTo(mostFindings)) {
		t.Errorf("%v", got)
	}
	report, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !strings.Contains(string(report), "| bad | 0 of 100 things | **20** |") {
		t.Errorf("%s, %v", report, err)
	}
}

func TestTheQuickSetEndsAPartAtItsFirstFindingButLooksAtAllThings(t *testing.T) {
	t.Parallel()
	bad := func(_ context.Context, seed uint64) (tally, error) {
		return tally{"things": 1}, &finding{err: fmt.Errorf("thing %d is bad", seed)}
	}
	seeds, things := fake(part{name: "seeds", quick: 9, side: computes}, bad), fake(part{name: "things", quick: 3, things: 3, side: computes}, bad)
	err := proofOf(t, []string{"-dir", t.TempDir()}, seeds.part, things.part).run(t.Context())
	want := "seeds, seed 1: thing 1 is bad\nthings: thing 1 is bad\nthings: thing 2 is bad\nthings: thing 3 is bad"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestAStepThatCannotBeMadeEndsItsPartAndNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := fake(part{name: "broken", night: 50, side: computes}, func(context.Context, uint64) (tally, error) { return nil, errors.New("no go.mod") })
	sound := fake(part{name: "sound", night: 3, each: 1, side: computes}, nil)
	err := proofOf(t, []string{"-night", "-dir", dir}, broken.part, sound.part).run(t.Context())
	if err == nil || err.Error() != "broken: no go.mod" {
		t.Errorf("%v", err)
	}
	if len(broken.made()) != 1 || len(sound.made()) != 3 {
		t.Errorf("%v, %v", broken.made(), sound.made())
	}
}

func TestWhatProvesNothingIsMadeUpForByOtherSeeds(t *testing.T) {
	t.Parallel()
	half := fake(part{name: "half", quick: 30, each: 1, side: computes}, func(_ context.Context, seed uint64) (tally, error) {
		if seed%2 == 0 {
			return nil, errNothing
		}
		return tally{"things": 1}, nil
	})
	if err := proofOf(t, []string{"-dir", t.TempDir()}, half.part).run(t.Context()); err != nil {
		t.Error(err)
	}
	none := fake(part{name: "none", night: 30, each: 1, side: computes}, func(context.Context, uint64) (tally, error) { return nil, errNothing })
	if err := proofOf(t, []string{"-night", "-dir", t.TempDir()}, none.part).run(t.Context()); err == nil || err.Error() != "none: 0 things, and 30 are wanted" {
		t.Error(err)
	}
	if got := len(none.made()); got != mostInVain {
		t.Errorf("%d steps", got)
	}
}

func TestOnlyAFailureOfATestIsAFinding(t *testing.T) {
	t.Parallel()
	ended := errors.New("exit status 1")
	for output, found := range map[string]bool{
		"--- FAIL: TestNoUpdateIsLost (0.1s)\nFAIL": true,
		"go: cannot find main module":               false,
		"FAIL	regent/test [build failed]":           false,
		"ok  	regent/test	0.1s [no tests to run]":   false,
	} {
		_, err := tested(tally{"updates": 1}, []byte(output), ended)
		if _, is := errors.AsType[*finding](err); is != found || err == nil {
			t.Errorf("%s: %v", output, err)
		}
	}
	if got, err := tested(tally{"updates": 1}, []byte("ok"), nil); err != nil || got["updates"] != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := tested(tally{"updates": 1}, []byte("testing: warning: no tests to run"), nil); err == nil {
		t.Error("no tests are taken for tests that pass")
	}
}

func TestEveryBugIsPlantedByOneStep(t *testing.T) {
	t.Parallel()
	for _, c := range []config{{night: true, share: 1}, {share: 1}, {share: 8}, {share: 10_000}} {
		names := map[string]int{}
		planted, err := bugs(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range byFolder(planted) {
			for _, m := range group {
				names[m.Name]++
			}
		}
		if len(names) != len(planted) || len(names) == 0 {
			t.Errorf("%+v: %d of %d", c, len(names), len(planted))
		}
	}
}

func TestAsManyDrawsAsSharesLookAtEverything(t *testing.T) {
	t.Parallel()
	all, got := []string{"a", "b", "c", "d", "e"}, []string{}
	for draw := 7; draw < 7+3; draw++ {
		got = append(got, drawn(config{share: 3, draw: draw}, all)...)
	}
	if slices.Sort(got); !slices.Equal(got, all) {
		t.Errorf("drawn: %v", got)
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
			if err != nil {
				t.Fatal(err)
			}
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
