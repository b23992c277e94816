package checker_test

import (
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

func ch(r checker.Recording) checker.Report { return checker.CH(r, 0) }

// said is a candidacy with that priority.
func said(priority int64, capabilities ...string) leadership.Candidacy {
	return leadership.Candidacy{Priority: priority, Capabilities: leadership.NewNames(capabilities...)}
}

// elected is three terms: of cy, the best of three that bid; of ann, because bob, which is better,
// has crashed; and of dot, which has preempted ann.
func elected(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	ballot := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: s, Require: "gpu", Preempt: true, MinTerm: 5 * s}
	asks := func(at time.Duration, who leadership.CandidateID, priority int64) {
		p.at(at, checker.Call{Verb: checker.Acquire, Candidate: who, Candidacy: said(priority, "gpu")})
	}
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s, Ballot: ballot}}) // r1: revision 1
	asks(10*s, "ann", 1)                                                                                            // r2: refused until 11 s
	asks(10*s+20*ms, "bob", 2)                                                                                      // r3: refused until 11 s
	asks(10*s+40*ms, "cy", 3)                                                                                       // r4: refused until 11 s
	p.at(10*s+60*ms, checker.Call{Verb: checker.Acquire, Candidate: "eve"})                                         // r5: not eligible
	asks(11*s+200*ms, "ann", 1)                                                                                     // r6: refused
	asks(11*s+300*ms, "cy", 3)                                                                                      // r7: revision 2, token 1
	p.at(15*s, checker.Call{Verb: checker.Release, Candidate: "cy", Token: 1})                                      // r8: revision 3
	asks(16*s, "bob", 2)                                                                                            // r9: refused until 17 s
	asks(16*s+20*ms, "ann", 1)                                                                                      // r10: refused until 17.2 s
	asks(17*s+300*ms, "ann", 1)                                                                                     // r11: revision 4, token 2, until 25.3 s
	asks(18*s, "dot", 4)                                                                                            // r12: refused: ann is safe
	asks(23*s, "dot", 4)                                                                                            // r13: revision 5: ann's term ends at 25.3 s
	p.at(24*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 2})                                       // r14: until 25.3 s
	asks(26*s, "dot", 4)                                                                                            // r15: revision 6, refused until 27 s
	asks(27*s+100*ms, "dot", 4)                                                                                     // r16: revision 7, token 3
	r := p.recording()
	r.Present = []checker.Present{
		{Member: "ann", Election: "planner", From: 10 * s, Until: 30 * s},
		{Member: "bob", Election: "planner", From: 10 * s, Until: 20 * s},
	}
	return r
}

// counted is two terms of an election that asks for two of three members: of ann, with a witness,
// and by the draw.
func counted(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	ballot := leadership.BallotPolicy{Strategy: leadership.StrategyRandom, Quorum: leadership.QuorumPolicy{Electorate: "ann bob wit"}}
	wit := leadership.Candidacy{Role: leadership.RoleWitness}
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s, Ballot: ballot}}) // r1: revision 1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                               // r2: refused
	p.at(11*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                               // r3: refused for want of a quorum
	p.at(11*s+100*ms, checker.Call{Verb: checker.Acquire, Candidate: "wit", Candidacy: wit})                        // r4: refused
	p.at(12*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                               // r5: revision 2, token 1
	p.at(15*s, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})                                     // r6: revision 3
	p.at(16*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                               // r7: refused
	p.at(16*s+100*ms, checker.Call{Verb: checker.Acquire, Candidate: "wit", Candidacy: wit})                        // r8: refused
	p.at(17*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                               // r9: revision 4, token 2
	r := p.recording()
	r.Present = []checker.Present{
		{Member: "ann", Election: "planner", From: 10 * s, Until: 30 * s},
		{Member: "wit", Election: "planner", From: 10 * s, Until: 30 * s},
	}
	return r
}

// says rewrites the detail of a revision.
func says(revision int, old, now string) func(*checker.Recording) {
	return func(r *checker.Recording) {
		d := &r.History[revision-1].Detail
		if !strings.Contains(*d, old) {
			panic(*d)
		}
		*d = strings.ReplaceAll(*d, old, now)
	}
}

func TestWrongChoicesAreFound(t *testing.T) {
	t.Parallel()
	at := func(r *checker.Recording, revision int, d time.Duration) { r.History[revision-1].At = begin.Add(d) }
	all := func(r *checker.Recording, who leadership.CandidateID, change func(*leadership.Candidacy)) {
		for i := range r.Calls {
			if c := &r.Calls[i]; c.Candidate == who {
				change(&c.Candidacy)
			}
		}
	}
	// The grants are revision 2 of cy, 4 of ann in the second place, and 7 of dot.
	for _, c := range []wrongCase{
		{"a witness leads", ch, func(r *checker.Recording) {
			all(r, "cy", func(c *leadership.Candidacy) { c.Role = leadership.RoleWitness })
		}, kindsOf(checker.Witness)},
		{"the winner lacks what is required", ch, func(r *checker.Recording) {
			all(r, "cy", func(c *leadership.Candidacy) { c.Capabilities = "" })
		}, kindsOf(checker.Ineligible)},
		{"a grant that does not tell why", ch, func(r *checker.Recording) { r.History[1].Detail = "" }, kindsOf(checker.Untrue)},
		{"another strategy than the policy's", ch, says(2, "priority\",\"w", "random\",\"w"), kindsOf(checker.Misranked)},
		{"the winner is not where it is said to be", ch, says(2, `"place":1`, `"place":2`), kindsOf(checker.Misranked)},
		{"one that is worse stands before", ch, says(2, `"priority":2`, `"priority":0`), kindsOf(checker.Misranked)},
		{"one that is better stands behind", ch, says(2, `"priority":2`, `"priority":4`), kindsOf(checker.Misranked)},
		{"the winner counts for more than it said", ch, says(2, `"priority":3`, `"priority":9`), kindsOf(checker.Untrue)},
		{"a bid before the last one is left out", ch, says(4, `"others":[{"candidateId":"bob","priority":2}],"place":2`, `"place":1`), kindsOf(checker.Misranked)},
		{"a better candidate that waits is passed over", ch, says(4, `"bids":2,"others":[{"candidateId":"bob","priority":2}],"place":2`, `"bids":1,"place":1`), nil}, // it did not ask again
		{"a better candidate that asks later, as it was told, is passed over", ch, func(r *checker.Recording) {
			says(4, `"bids":2,"others":[{"candidateId":"bob","priority":2}],"place":2`, `"bids":1,"place":1`)(r)
			call(*r, 9).Again = 2 * s
		}, kindsOf(checker.Passed)},
		{"a better candidate that asked again is passed over", ch, func(r *checker.Recording) {
			says(4, `"bids":2,"others":[{"candidateId":"bob","priority":2}],"place":2`, `"bids":1,"place":1`)(r)
			again := *call(*r, 9)
			again.Request, again.Asked, again.Answered, again.Because = "again", 17*s, 18*s, leadership.ReasonHeld
			again.Answer = new(*call(*r, 11).Answer)
			r.Calls = append(r.Calls, again)
		}, kindsOf(checker.Passed)},
		{"a better candidate that had gone and came back is passed over", ch, func(r *checker.Recording) {
			says(4, `"bids":2,"others":[{"candidateId":"bob","priority":2}],"place":2`, `"bids":1,"place":1`)(r)
			call(*r, 9).Again = 2 * s
			before := *call(*r, 9)
			before.Request, before.Waited, before.Asked, before.Answered = "before", s, before.Asked-2*s, before.Asked-s
			r.Calls = append(r.Calls, before)
		}, nil},
		{"a grant before the window is over", ch, func(r *checker.Recording) { at(r, 4, 15*s+900*ms) }, kindsOf(checker.TooSoon)},
		{"a grant before the turn of the second", ch, func(r *checker.Recording) { at(r, 4, 16*s+199*ms) }, kindsOf(checker.TooSoon)},
		{"a grant in the turn of the second", ch, func(r *checker.Recording) { at(r, 4, 16*s+200*ms) }, nil},

		{"a leader is preempted within its minimum term", ch, func(r *checker.Recording) { at(r, 5, 22*s) }, kindsOf(checker.TooSoon)},
		{"a leader is preempted by an equal", ch, func(r *checker.Recording) {
			all(r, "dot", func(c *leadership.Candidacy) { c.Priority = 1 })
			says(7, `"priority":4`, `"priority":1`)(r)
		}, kindsOf(checker.Needless)},
		{"a leader is preempted by a lower id", ch, func(r *checker.Recording) {
			for i := range r.Calls {
				if c := &r.Calls[i]; c.Candidate == "dot" {
					c.Candidate, c.Candidacy.Priority = "abe", 1
				}
			}
			r.History = r.History[:5]
			says(5, "dot", "abe")(r)
		}, kindsOf(checker.Needless)},
		{"a witness preempts the leader", ch, func(r *checker.Recording) {
			all(r, "dot", func(c *leadership.Candidacy) { c.Role = leadership.RoleWitness })
			r.History = r.History[:5]
		}, kindsOf(checker.Needless)},
		{"a leader is preempted that the policy protects", ch, func(r *checker.Recording) { call(*r, 1).Config.Ballot.Preempt = false }, kindsOf(checker.Needless)},
		{"a preempted leader that does not lead", ch, func(r *checker.Recording) { r.History[4].LeaderID = "bob" }, kindsOf(checker.Untrue)},
		{"a preempted term ends before what was promised", ch, func(r *checker.Recording) { at(r, 6, 25*s) }, kindsOf(checker.Shortened)},
		{"a leader goes on that was not to stop", ch, func(r *checker.Recording) { r.History[4].Type = leadership.EventGoesOn }, kindsOf(checker.Untrue)},
	} {
		c.runOn(t, elected)
	}
}

func TestWrongDrawsAndQuorumsAreFound(t *testing.T) {
	t.Parallel()
	secret := func(r *checker.Recording, revision int) string {
		_, text, _ := strings.Cut(r.History[revision-1].Detail, `"secret":"`)
		return text[:16]
	}
	for _, c := range []wrongCase{
		{"a draw without the secret", ch, func(r *checker.Recording) { says(2, secret(r, 2), "0123456789abcdef")(r) }, kindsOf(checker.Misranked)},
		{"a secret that was told before", ch, func(r *checker.Recording) { says(4, secret(r, 4), secret(r, 2))(r) }, kindsOf(checker.Twice, checker.Misranked)},
		{"too few members", ch, says(2, `"present":2`, `"present":1`), kindsOf(checker.Few)},
		{"one member that is counted twice", ch, func(r *checker.Recording) { r.Present = r.Present[:1] }, kindsOf(checker.Phantom, checker.Phantom)},
		{"a member that has gone", ch, func(r *checker.Recording) { r.Present[1].Until = 14 * s }, kindsOf(checker.Phantom)},
		{"members that are not recorded", ch, func(r *checker.Recording) { r.Present = nil }, nil},
		{"another last leader than with round robin", ch, says(4, `{"bids"`, `{"last":"bob","bids"`), kindsOf(checker.Misranked)},
	} {
		c.runOn(t, counted)
	}
}
