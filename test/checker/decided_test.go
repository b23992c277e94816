package checker_test

import (
	"testing"
	"time"

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

// challenged is a term of bob, which ann challenges as soon as its cooldown is over, at 64 s.
func challenged(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	config := leadership.Config{
		LeaseDuration: 8 * s,
		Term:          leadership.TermPolicy{Budget: leadership.Counters{Calls: 1}, Cooldown: time.Minute},
		Ballot:        leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true},
	}
	better := leadership.Candidacy{Priority: 1}
	p.at(s, checker.Call{Verb: checker.Configure, Config: config})                                               // r1
	p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Candidacy: better})                          // r2
	p.at(4*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1, Report: `{"progress":0,"calls":2}`}) // r3: it trips
	p.at(12*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                            // r4
	for at := 18 * s; at < 64*s; at += 5 * s {
		p.at(at, checker.Call{Verb: checker.Renew, Candidate: "bob", Token: 2}) // r5 to r14
	}
	p.at(64*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Candidacy: better}) // r15: refused, and a challenge
	return p.recording()
}

func TestChallengeMayComeWhenTheBarIsOver(t *testing.T) {
	early := func(d time.Duration) func(*checker.Recording) {
		return func(r *checker.Recording) {
			last := &r.History[len(r.History)-1]
			last.At, last.RequestID = last.At.Add(-d), ""
			call(*r, 3).Answer.LockedFor += storeGuard
			without(r, 15)
		}
	}
	cases(t, challenged,
		wrongCase{"in time", guarded, early(0), nil},
		wrongCase{"by as much as the clocks differ", guarded, early(storeGuard), nil},
		wrongCase{"sooner", guarded, early(ms + storeGuard), kindsOf(checker.Illegal)},
	)
}
