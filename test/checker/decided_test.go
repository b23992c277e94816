package checker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// The servers of a store with a guard have clocks that differ, and a change is decided some time
// before its commit.
const storeGuard = 50 * ms

func guarded(r checker.Recording) checker.Report { return checker.Linear(r, storeGuard) }

// cases runs variants of a recording through a checker.
func cases(t *testing.T, recorded func(testing.TB) checker.Recording, all ...wrongCase) {
	t.Helper()
	t.Parallel()
	for _, c := range all {
		r := recorded(t)
		c.breakIt(&r)
		if diff := cmp.Diff(c.want, kinds(c.check(r))); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s%v", c.name, diff, c.check(r).Err())
		}
	}
}

// askedTwice is a lease of ann that starts anew at 14 s, because it has asked for it again.
func askedTwice(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s}}) // r1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                               // r2
	p.at(14*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                               // r3
	p.at(20*s, checker.Call{Verb: checker.Get})                                                     // r4
	p.at(21*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                               // r5
	p.at(28*s, checker.Call{Verb: checker.Get})                                                     // r6
	return p.recording()
}

func TestGrantWhoseReplyWasLostMayHaveBeenAskedForTwice(t *testing.T) {
	cases(t, askedTwice,
		wrongCase{"the second answer came", linear, func(r *checker.Recording) { lose(r, 2) }, nil},
		wrongCase{"no answer came", linear, func(r *checker.Recording) { lose(r, 2); without(r, 3) }, nil},
		wrongCase{"it was answered", linear, func(r *checker.Recording) { without(r, 3) }, kindsOf(checker.Illegal)},
		wrongCase{"three times", linear, func(r *checker.Recording) { lose(r, 2); without(r, 3, 5) }, kindsOf(checker.Illegal)},
		wrongCase{"with another key", linear, func(r *checker.Recording) {
			lose(r, 2)
			call(*r, 2).Key = keyOf("bob").Hash()
			without(r, 3)
		}, kindsOf(checker.Illegal)},
	)
}

func TestWaitingCandidateMayChallengeSeveralLeaders(t *testing.T) {
	by := func(request string, n ...int) func(*checker.Recording) {
		return func(r *checker.Recording) {
			for _, n := range n {
				r.History[n-1].RequestID = request
			}
		}
	}
	cases(t, handedOver, // the events 4 and 10 are handingOver, 5 and 11 ready; r20 is an acquire that was refused
		wrongCase{"two leaders", checker.ID, by("r20", 4, 10), nil},
		wrongCase{"two leaders by one hand-over", checker.ID, by("r7", 4, 10), kindsOf(checker.Twice)},
		wrongCase{"two successors by one acquire", checker.ID, by("r20", 5, 11), kindsOf(checker.Denied, checker.Denied, checker.Twice)},
	)
}

func TestSuccessorOfALeaderThatNamesNoneIsTheOneInTheHistory(t *testing.T) {
	to := func(who leadership.CandidateID, lost bool) func(*checker.Recording) {
		return func(r *checker.Recording) {
			if call(*r, 7).To = who; lost {
				lose(r, 7)
			}
		}
	}
	cases(t, handedOver, // r7 is a hand-over to bob
		wrongCase{"none", linear, to("", false), nil},
		wrongCase{"none, and the reply was lost", linear, to("", true), nil},
		wrongCase{"another one", linear, to("cy", false), kindsOf(checker.Illegal)},
		wrongCase{"another one, and the reply was lost", linear, to("cy", true), kindsOf(checker.Illegal)},
	)
}
