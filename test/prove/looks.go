package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"regent/test/belief"
	"regent/test/checker"
	"regent/test/crash"
	"regent/test/faults"
	"regent/test/mutants"
	"regent/test/simulation"
)

// models returns the models to search.
func models(c config) []belief.Model {
	if c.night {
		return append(belief.Quick(), belief.Night()...)
	}
	return belief.Quick()
}

// searches returns the step that searches the model of that number.
func searches(models []belief.Model) func(context.Context, uint64) (tally, error) {
	return func(ctx context.Context, k uint64) (tally, error) {
		m := models[k-1]
		r, err := m.SearchContext(ctx)
		if err != nil {
			return nil, err
		}
		t := tally{"models": 1, "states": int64(r.States), "steps": int64(r.Steps)}
		if r.Broken != "" {
			return t, &finding{err: fmt.Errorf("%s: %s does not hold: %v", m.Name, r.Broken, r.Trace)}
		}
		return t, nil
	}
}

// A step of the simulation.
const (
	seedsAStep = 10
	leasesLong = 1_000
	// shorter ones are recorded, and checked by all checkers, including porcupine
	recordedLong = 30
)

func simulate(ctx context.Context, seed uint64) (tally, error) {
	var f simulation.Figures
	recorded := 0
	for n := range uint64(seedsAStep) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c := simulation.Config{Seed: (seed-1)*seedsAStep + n + 1, Leases: leasesLong}
		r := simulation.Run(c)
		if err := r.Err(); err != nil {
			return nil, &finding{seed: c.Seed, err: err}
		}
		f = f.Plus(r.Figures)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		calls, err := check(simulation.Config{Seed: c.Seed, Leases: recordedLong, Record: true})
		if err != nil {
			return nil, &finding{seed: c.Seed, err: err}
		}
		recorded += calls
	}
	return tally{
		"election-hours": int64(f.Elections / time.Hour), "seeds": seedsAStep, "renewals": int64(f.Renewals), "changes of leader": int64(f.Changes),
		"faults": int64(f.Faults), "stale writes refused": int64(f.Refused),
		"recorded calls checked": int64(recorded),
	}, nil
}

// check records a run, and runs every checker on it.
func check(c simulation.Config) (calls int, err error) {
	r := simulation.Run(c)
	if err := r.Err(); err != nil {
		return 0, err
	}
	if err := checker.All(r.Recording, r.Guard, r.Guard).Err(); err != nil {
		return 0, fmt.Errorf("recorded: %s: %w", r.Plan, err)
	}
	return len(r.Recording.Calls), nil
}

func crashes(ctx context.Context, seed uint64) (tally, error) {
	r, err := crash.Run(ctx, crash.Config{Seed: seed})
	if errors.Is(err, errors.ErrUnsupported) || ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return nil, &finding{err: err}
	}
	return tally{
		"images": int64(r.Images), "damaged folders": int64(r.Corrupted), "refused by name": int64(r.Refused), "failing calls": int64(r.Trials),
	}, nil
}

// bugs returns the bugs to plant.
func bugs(c config) ([]mutants.Mutant, error) {
	all, err := mutants.All()
	if c.night || err != nil {
		return all, err
	}
	return drawn(c, slices.DeleteFunc(all, func(m mutants.Mutant) bool { return !m.Quick })), nil
}

// drawn returns one in c.share of the things. So many draws that follow each other draw all.
func drawn[T any](c config, all []T) (chosen []T) {
	for n := c.draw % c.share; n < len(all); n += c.share {
		chosen = append(chosen, all[n])
	}
	return chosen
}

// byFolder groups bugs by the folder of their first tests, which are built and run without a bug
// once for a group.
func byFolder(all []mutants.Mutant) (groups [][]mutants.Mutant) {
	at := map[string]int{}
	for _, m := range all {
		n, known := at[m.By[0].Dir]
		if !known {
			n = len(groups)
			at[m.By[0].Dir], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], m)
	}
	return groups
}

// plants returns the step that plants the bugs of that number. All verdicts go to a file of the
// report's folder.
func plants(c config, groups [][]mutants.Mutant) func(context.Context, uint64) (tally, error) {
	return func(ctx context.Context, k uint64) (tally, error) {
		bugs := groups[k-1]
		kept, err := os.OpenFile(filepath.Join(c.dir, "mutants.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		defer kept.Close()
		heard := func(v mutants.Verdict) { fmt.Fprintln(kept, v) }
		verdicts, err := mutants.Run(ctx, mutants.Config{Built: slices.Concat(groups...), Mutants: bugs, Quick: !c.night, Emulators: c.night, Heard: heard})
		if err != nil {
			return nil, err
		}
		t := tally{"bugs": int64(len(bugs))}
		var failed []error
		for _, v := range verdicts {
			t[string(v.Outcome)]++
			if v.Failed() {
				failed = append(failed, errors.New(v.String()))
			}
		}
		if failed != nil {
			return t, &finding{err: errors.Join(failed...)}
		}
		return t, nil
	}
}

// longTests are the tests of real processes that have a long form, which only this command runs:
// make test runs the short one. Those of a group run in one go test. The fault runs on each store
// are parts of their own.
func longTests() []goTest {
	return []goTest{
		{"./test", "TestACommandIsGoneBeforeItsLeaseEnds|TestNoFencedUpdateIsLost"},
		{"./test", "TestACallCutAnywhereAndRepeatedIsDoneOnce|TestManyCandidatesAtTwoServersElectOneLeaderEach|" +
			"TestAnInstanceThatStopsLosesNoWaiterOrWatcher|TestACrowdCostsTheStoreNothingWhileItWaits|TestACrowdThatWaitsForSeatsHasNoLeaderMore"},
		{"./test", "TestAnInstanceUnderAttackServesOthers|TestTheBinaryIsTheSameWhereverItIsBuilt"},
		{"./leadership/client", "TestBeliefsNeverOverlapWhileClocksAreWithinTheDrift|TestBeliefsBeyondTheDriftOverlapByNoMoreThanIsPredicted"},
		{"./test/belief", "TestStatesThatDifferByPermutationAreOne"},
		{"./test/clients", "TestClientsLeadAndRelease|TestClientsBearLostReplies|TestClientsBearLateReplies|TestClientsTellAnswersApart|" +
			"TestClientsBearAbsence|TestClientsTrustNoWallClock|TestClientsBearBadHTTP|TestClientsWatchWithoutGaps|" +
			"TestClientsCanBeCancelled|TestClientsLeaveBehindWhatTheySay"},
		{"./store/firestore", "TestProtocol|TestProtocolOverHTTP"},
		{"./store/spanner", "TestProtocol"},
		{"./test/faults", "TestALieIsFound|TestNoLeaderIsKeptWaitingByAServerThatStops"},
	}
}

// goTest is some tests of a package.
type goTest struct{ dir, names string }

func (g goTest) count() int64 { return int64(strings.Count(g.names, "|") + 1) }

// runs returns the step that runs the group of that number.
func runs(groups []goTest) func(context.Context, uint64) (tally, error) {
	return func(ctx context.Context, k uint64) (tally, error) {
		g := groups[k-1]
		return g.run(ctx, tally{"tests": g.count()})
	}
}

// tests returns the step that runs tests of the package ./test for longer than they do otherwise:
// so much of a unit, each time.
func tests(n int64, unit, names string, args ...string) func(context.Context, uint64) (tally, error) {
	return func(ctx context.Context, _ uint64) (tally, error) {
		return goTest{"./test", names}.run(ctx, tally{unit: n}, args...)
	}
}

// run runs the tests, in their long form. It returns the tally if they pass.
func (g goTest) run(ctx context.Context, t tally, args ...string) (tally, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-timeout", "2h", "-run", "^(" + g.names + ")$", g.dir}, args...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) } // the tests would outlive go test
	command.WaitDelay = time.Second
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return tested(t, output, err)
}

// tested returns the result of a step that ran tests. It is a finding only if a test failed, and
// not if the tests could not be built or do not exist.
func tested(t tally, output []byte, err error) (tally, error) {
	switch {
	case err == nil && bytes.Contains(output, []byte("no tests to run")):
		return nil, errors.New("go test: there are no such tests")
	case err == nil:
		return t, nil
	}
	err = fmt.Errorf("go test: %w\n%s", err, output)
	if bytes.Contains(output, []byte("--- FAIL")) {
		return nil, &finding{err: err}
	}
	return nil, err
}

// faultRuns has what fault runs share, built when the first one needs it.
type faultRuns struct {
	dir   string
	setup func() (*faults.Setup, error)
}

func newFaultRuns(dir string) faultRuns {
	return faultRuns{dir, sync.OnceValues(func() (*faults.Setup, error) { return faults.NewSetup(faults.SetupConfig{}) })}
}

// breaks returns the step that makes a fault run on a store.
func (g faultRuns) breaks(store faults.Store) func(context.Context, uint64) (tally, error) {
	return func(ctx context.Context, seed uint64) (tally, error) {
		setup, err := g.setup()
		if err != nil {
			return nil, err
		}
		r, err := faults.Run(ctx, faults.Config{Store: store, Seed: seed, Dir: g.dir, Setup: setup})
		var violation *faults.Violation
		switch {
		case errors.As(err, &violation):
			return nil, &finding{err: err}
		case errors.Is(err, faults.ErrInvalid):
			return nil, fmt.Errorf("%w: %w", errNothing, err)
		case err != nil:
			return nil, err
		}
		t := tally{"runs": 1, "operations": int64(r.Operations), "unknown outcomes": int64(r.Unknown), "changes": int64(r.Changes), "changes of leader": int64(r.Leaders), "events delivered": int64(r.Deliveries), "effects": int64(r.Effects), "in doubt": int64(r.InDoubt), "decisions": int64(r.Decisions), "changes of leader at seats": int64(r.Seats), "lowered seats": int64(r.Lowered), "halted": int64(r.Halted), "excuses": int64(r.Late)}
		for _, n := range r.Faults {
			t["faults"] += int64(n)
		}
		return t, nil
	}
}
