package checker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

func ov(r checker.Recording) checker.Report { return checker.OV(r, 0) }

// ordered is a history of orders: ann is evicted and banned, bob is assigned, the election is
// paused, and bob's work is ended by its budget, twice.
func ordered(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	config := leadership.Config{LeaseDuration: 8 * s, Term: leadership.TermPolicy{
		MaxTerm: 100 * s, StuckAfter: 20 * s, Cooldown: 10 * s, Budget: leadership.Counters{Tasks: 5},
	}}
	order := func(kind leadership.OrderKind, who leadership.CandidateID, d time.Duration) leadership.Order {
		return leadership.Order{Kind: kind, CandidateID: who, For: d, Reason: "it has to be", Actor: "dot"}
	}
	p.at(s, checker.Call{Verb: checker.Configure, Config: config}) // r1: revision 1
	// r2: revision 2, token 1, until 18 s
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	// r3: until 20 s
	p.at(12*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1, Report: `{"progress":2,"tasks":1}`})
	evict := order(leadership.OrderEvict, "", 0)
	evict.Ban = 15 * s
	p.at(14*s, checker.Call{Verb: checker.Order, Order: evict}) // r4: revision 3; ann is banned until 29 s
	// r5: until 20 s, and no longer
	p.at(15*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1, Report: `{"progress":3,"tasks":2}`})
	p.at(16*s, checker.Call{Verb: checker.Order, Order: order(leadership.OrderAssign, "bob", 20*s)}) // r6: revision 4; until 36 s
	p.at(21*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                // r7: refused
	p.at(22*s, checker.Call{Verb: checker.Acquire, Candidate: "cy"})                                 // r8: refused
	p.at(23*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                // r9: revisions 5 and 6, token 2
	p.at(24*s, checker.Call{Verb: checker.Order, Order: order(leadership.OrderPause, "", 30*s)})     // r10: revision 7; until 54 s
	// r11: revision 8, refused: bob is out until 35 s
	p.at(25*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Token: 2, Report: `{"tasks":6}`})
	p.at(26*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Token: 2, Report: `{"tasks":6}`}) // r12: refused
	p.at(40*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                // r13: refused
	p.at(41*s, checker.Call{Verb: checker.Order, Order: order(leadership.OrderResume, "", 0)})       // r14: revision 9
	p.at(42*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                // r15: revision 10, token 3
	// r16: revision 11, refused: bob is out until 63 s
	p.at(43*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Token: 3, Report: `{"tasks":7}`})
	p.at(45*s, checker.Call{Verb: checker.Acquire, Candidate: "cy"}) // r17: refused, for bob may believe until 50 s
	p.at(51*s, checker.Call{Verb: checker.Acquire, Candidate: "cy"}) // r18: revision 12, token 4
	// r19: revision 13; eve is banned until 111.5 s
	p.at(51*s+500*ms, checker.Call{Verb: checker.Order, Order: order(leadership.OrderBan, "eve", 60*s)})
	p.at(52*s, checker.Call{Verb: checker.Delete, Force: true})                                       // r20: revision 14
	p.at(53*s, checker.Call{Verb: checker.Configure, Config: config})                                 // r21: revision 15
	p.at(61*s, checker.Call{Verb: checker.Acquire, Candidate: "eve"})                                 // r22: refused
	p.at(62*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                 // r23: refused
	p.at(64*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                 // r24: revision 16, token 5
	p.at(65*s, checker.Call{Verb: checker.StepDown, Candidate: "bob", Token: 5, Reason: "x", For: s}) // r25: revision 17
	r := p.recording()
	r.Beliefs = []checker.Belief{
		{Who: "ann", Election: "planner", Token: 1, From: 10*s + 5*ms, Until: 20 * s}, // it was evicted
		{Who: "bob", Election: "planner", Token: 2, From: 23*s + 5*ms, Until: 31 * s}, // it was deposed, and missed that
		{Who: "cy", Election: "planner", Token: 4, From: 51*s + 5*ms, Until: 59 * s},
	}
	return r
}

// approved is a term of ann that two operators approve, and that goes on under the next token; and
// one of bob that no operator approves.
func approved(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	config := leadership.Config{LeaseDuration: 8 * s, Term: leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 10 * s, Need: 2}}}
	approve := func(token leadership.Token, actor, reason string) leadership.Order {
		return leadership.Order{Kind: leadership.OrderApprove, Token: token, NewEpoch: true, Reason: reason, Actor: actor}
	}
	p.at(s, checker.Call{Verb: checker.Configure, Config: config})                                        // r1: revision 1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                     // r2: revision 2, token 1, until 18 s
	p.at(14*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                             // r3: until 20 s
	p.at(15*s, checker.Call{Verb: checker.RequestApproval, Candidate: "ann", Token: 1, Reason: "go on?"}) // r4: revision 3
	p.at(16*s, checker.Call{Verb: checker.Order, Order: approve(1, "dot", "it does well")})               // r5: revision 4
	p.at(17*s, checker.Call{Verb: checker.Order, Order: approve(1, "dot", "I said so")})                  // r6
	p.at(18*s, checker.Call{Verb: checker.Order, Order: approve(1, "eve", "so I think")})                 // r7: revisions 5 and 6, token 2, until 26 s
	p.at(19*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                             // r8: refused
	p.at(20*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                     // r9: token 2, until 28 s
	p.at(27*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                     // r10: refused
	p.at(29*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                     // r11: refused: it awaits an approval or runs
	p.at(30*s, checker.Call{Verb: checker.Get})                                                           // r12
	r := p.recording()
	r.Beliefs = []checker.Belief{
		{Who: "ann", Election: "planner", Token: 1, From: 10*s + 5*ms, Until: 19*s + 5*ms}, // beside the next token, which is its own
		{Who: "ann", Election: "planner", Token: 2, From: 20*s + 5*ms, Until: 28 * s},
	}
	return r
}

// working is a term of ann, whose progress moves its end on until there is none; then bob's, which
// a pause only lets run out.
func working(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	config := leadership.Config{LeaseDuration: 8 * s, Term: leadership.TermPolicy{StuckAfter: 20 * s, Cooldown: 40 * s}}
	p.at(s, checker.Call{Verb: checker.Configure, Config: config})    // r1: revision 1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"}) // r2: revision 2, token 1
	// r3 to r7: by the last progress, until 42 s
	for i, report := range []leadership.ReportText{`{"progress":1}`, `{"progress":2}`, `{"progress":2}`, "", `{"progress":2}`} {
		p.at(time.Duration(16+6*i)*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1, Report: report})
	}
	p.at(43*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r8: refused
	p.at(44*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})         // r9: refused
	p.at(45*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})         // r10: revisions 3 and 4, token 2, until 53 s
	p.at(46*s, checker.Call{Verb: checker.Order, Order: leadership.Order{
		Kind: leadership.OrderPause, For: 10 * s, Reason: "it has to be", Actor: "dot",
	}}) // r11: revision 5
	p.at(54*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"}) // r12: refused, though it led last
	p.at(57*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"}) // r13: revisions 6 and 7, token 3
	r := p.recording()
	r.Beliefs = []checker.Belief{{Who: "ann", Election: "planner", Token: 1, From: 10*s + 5*ms, Until: 42 * s}}
	return r
}

func TestBrokenOrdersAreFound(t *testing.T) {
	t.Parallel()
	at := func(r *checker.Recording, revision int, d time.Duration) { r.History[revision-1].At = begin.Add(d) }
	leads := func(r *checker.Recording, revision int, who leadership.CandidateID) {
		r.History[revision-1].LeaderID = who
	}
	for _, c := range []wrongCase{
		{"a grant to a principal that is banned", ov, func(r *checker.Recording) {
			says(13, `"candidateId":"eve"`, `"principal":"eve@example.com"`)(r)
			r.History[15].Actor = "eve@example.com"
		}, kindsOf(checker.Barred)},
		{"a grant to a candidate of a pattern that is banned", ov, func(r *checker.Recording) {
			says(13, `"candidateId":"eve"`, `"candidateId":"eve*"`)(r)
			leads(r, 16, "eve-2")
		}, kindsOf(checker.Barred)},
		{"a grant to a candidate that is banned", ov, func(r *checker.Recording) { leads(r, 6, "ann") }, kindsOf(checker.Barred)},
		{"a grant to another than the assigned one", ov, func(r *checker.Recording) { leads(r, 6, "cy") }, kindsOf(checker.Barred)},
		{"a grant to another once the assignment is over", ov, func(r *checker.Recording) { leads(r, 6, "cy"); at(r, 6, 36*s) }, nil},
		{"a grant while paused", ov, func(r *checker.Recording) {
			r.History = r.History[:10]
			drop(r, 9)
			at(r, 9, 54*s-1)
		}, kindsOf(checker.Barred)},
		{"a grant once the pause is over", ov, func(r *checker.Recording) {
			r.History = r.History[:10]
			drop(r, 9)
			at(r, 9, 54*s)
		}, nil},
	} {
		c.runOn(t, ordered)
	}
	for _, c := range []wrongCase{
		{"an epoch without a token", checker.FT, func(r *checker.Recording) { r.History[5].Token = 1; r.Calls = r.Calls[:6] }, kindsOf(checker.NotNext)},
		{"an epoch of another leader", me1, func(r *checker.Recording) { leads(r, 6, "bob") }, kindsOf(checker.TwoLeaders)},
		{"an epoch after the end of the lease", me1, func(r *checker.Recording) {
			r.History[4].Type, r.History[4].PreviousLeaderID = leadership.EventReleased, "ann"
		}, kindsOf(checker.TwoLeaders)},
		{"a grant in its place", me2, func(r *checker.Recording) { r.History[5].Type = leadership.EventAcquired }, kindsOf(checker.Outlived)},
	} {
		c.runOn(t, approved)
	}
}

// A leader that was deposed may have missed the answer: it believes until the end that it was
// promised, and no lease is granted before.
func TestGrantsBeforeThePromisedEndOfADeposedLeaderAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"a grant right after", me1, func(r *checker.Recording) { r.History[8].At, r.History[9].At = begin.Add(29*s), begin.Add(31*s-1) }, kindsOf(checker.TooSoon)},
		{"a grant at the promised end", me1, func(r *checker.Recording) { r.History[8].At, r.History[9].At = begin.Add(29*s), begin.Add(31*s) }, nil},
		{"a belief beyond the promised end", me2, func(r *checker.Recording) { r.Beliefs[1].Until = 32 * s }, kindsOf(checker.Outlived)},
		{"another end that is no excuse", me2, func(r *checker.Recording) { r.History[7].Type = leadership.EventReleased }, kindsOf(checker.Outlived)},
	} {
		c.runOn(t, ordered)
	}
}

func (c wrongCase) runOn(t *testing.T, history func(testing.TB) checker.Recording) {
	t.Run(c.name, func(t *testing.T) {
		t.Parallel()
		r := history(t)
		c.breakIt(&r)
		if diff := cmp.Diff(c.want, kinds(c.check(r))); diff != "" {
			t.Errorf("violations (-want +got):\n%s%v", diff, c.check(r).Err())
		}
	})
}

func TestFallenCountersAreRefused(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	p.at(12*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1, Report: `{"tasks":2}`})
	p.at(13*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1, Report: `{"tasks":1}`})
	p.at(14*s, checker.Call{Verb: checker.Get})
	r := p.recording()
	if err := checker.All(r, 10*ms, 0).Err(); err != nil || call(r, 3).Code != leadership.InvalidArgument {
		t.Errorf("a report with a counter that has fallen: %q, %v", call(r, 3).Code, err)
	}
}
