package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"regent/test/machine"
)

// part is one way to look for bugs: some tests in their long form.
type part struct {
	name     string
	computes bool // all the time, while the others wait for real processes most of the time
	runs     []goTest
	result   result
}

// goTest is some tests of a package, separated by "|", and what they get.
type goTest struct {
	dir, names string
	args       []string
	env        []string
}

// frugal lets garbage grow to many times the live memory: searches make much of it and keep little.
// The limit is for the seconds in which a checker keeps a gigabyte.
var frugal = []string{"GOGC=800", "GOMEMLIMIT=1280MiB"}

// parts returns all parts of a set, in the order of the report.
func parts(c config) []*part {
	size := func(quick, night int) string {
		if c.night {
			return fmt.Sprint(night)
		}
		return fmt.Sprint(max(quick/c.share, 1))
	}
	kept, _ := filepath.Abs(c.dir)
	seed := fmt.Sprint(c.seed)
	drawn := []string{"-share", fmt.Sprint(c.share), "-draw", fmt.Sprint(c.draw)}
	faults := func(on string, quick, night int) []goTest {
		return []goTest{{dir: "./test/faults", names: "TestNoFaultBreaksAPromiseOn" + on, args: []string{"-runs", size(quick, night), "-seed", seed, "-keep", kept}}}
	}
	states, mutants, crashes := drawn, append(slices.Clone(drawn), "-quick"), 5
	if c.night {
		states, mutants, crashes = []string{"-large"}, []string{"-named", "-", "-cloud"}, 500
	}
	all := []*part{
		{name: "states", computes: true, runs: []goTest{{"./test/belief", "TestNoCandidateBelievesInAnEndedLease", states, frugal}}},
		{name: "crash", computes: true, runs: []goTest{{dir: "./test/crash", names: "TestStoreSurvives", args: []string{"-seed", seed, "-images", fmt.Sprint(200 * crashes), "-corrupted", fmt.Sprint(40 * crashes)}}}},
		{name: "mutants", computes: true, runs: []goTest{{dir: "./test/mutants", names: "TestPlantedBugsAreCaught", args: mutants}}},
		{name: "simulation", computes: true, runs: []goTest{{
			"./test/simulation", "TestAllHoldsWhateverGoesWrong|TestWhatWasRecordedPassesEveryChecker",
			[]string{"-parallel", "1", "-seed", seed, "-seeds", size(1_300, 13_000), "-leases", "1000"},
			frugal,
		}}},
		{name: "file", runs: faults("File", 30, 1_200)},
		{name: "firestore", runs: faults("Firestore", 10, 400)},
		{name: "spanner", runs: faults("Spanner", 10, 400)},
		{name: "tests", runs: machine.Draw(longTests(), c.share, c.draw)},
	}
	if c.night {
		all = append(all,
			&part{name: "lock", runs: []goTest{{dir: "./test", names: "TestNoFencedUpdateIsLost", args: []string{"-updates", "100000"}}}},
			&part{name: "command", runs: []goTest{{dir: "./test", names: "TestACommandIsGoneBeforeItsLeaseEnds", args: []string{"-trials", "1000"}}}})
	}
	return all
}

// longTests are the tests of real processes that have a long form, which only this command runs:
// make test runs the short one. Those of a group run in one go test. The fault runs on each store
// are parts of their own.
func longTests() []goTest {
	return []goTest{
		{dir: "./test", names: "TestACommandIsGoneBeforeItsLeaseEnds|TestNoFencedUpdateIsLost"},
		{dir: "./test", names: "TestACallCutAnywhereAndRepeatedIsDoneOnce|TestManyCandidatesAtTwoServersElectOneLeaderEach|" +
			"TestAnInstanceThatStopsLosesNoWaiterOrWatcher|TestACrowdCostsTheStoreNothingWhileItWaits|TestACrowdThatWaitsForSeatsHasNoLeaderMore"},
		{dir: "./test", names: "TestAnInstanceUnderAttackServesOthers|TestTheBinaryIsTheSameWhereverItIsBuilt"},
		{dir: "./leadership/client", names: "TestBeliefsNeverOverlapWhileClocksAreWithinTheDrift|TestBeliefsBeyondTheDriftOverlapByNoMoreThanIsPredicted"},
		{dir: "./test/belief", names: "TestStatesThatDifferByPermutationAreOne"},
		{dir: "./test/clients", names: "TestClientsLeadAndRelease|TestClientsBearLostReplies|TestClientsBearLateReplies|TestClientsTellAnswersApart|" +
			"TestClientsBearAbsence|TestClientsTrustNoWallClock|TestClientsBearBadHTTP|TestClientsWatchWithoutGaps|" +
			"TestClientsCanBeCancelled|TestClientsLeaveBehindWhatTheySay"},
		{dir: "./store/firestore", names: "TestProtocol|TestProtocolOverHTTP"},
		{dir: "./store/spanner", names: "TestProtocol"},
		{dir: "./test/faults", names: "TestALieIsFound|TestNoLeaderIsKeptWaitingByAServerThatStops"},
	}
}
