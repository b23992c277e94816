package checker_test

import (
	"testing"

	"regent/leadership"
	"regent/test/checker"
)

// handedOver is a term of ann that it hands over to bob, another of bob that ends unused because
// its successor has vanished, and one of dot.
func handedOver(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	config := leadership.Config{LeaseDuration: 30 * s, LockDelay: s, Promotion: true}
	p.at(s, checker.Call{Verb: checker.Configure, Config: config})                                                         // r1: revision 1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                                      // r2: revision 2, token 1, until 40 s
	p.at(11*s, checker.Call{Verb: checker.Check, Candidate: "ann", Token: 1, Write: true})                                 // r3: it does not serve yet
	p.at(12*s, checker.Call{Verb: checker.Serving, Candidate: "ann", Token: 1})                                            // r4: revision 3
	p.at(13*s, checker.Call{Verb: checker.Check, Candidate: "ann", Token: 1, Write: true})                                 // r5
	p.at(14*s, checker.Call{Verb: checker.Ready, Candidate: "bob", Token: 1})                                              // r6: refused
	p.at(15*s, checker.Call{Verb: checker.HandOver, Candidate: "ann", Token: 1, To: "bob", Within: 5 * s, Reason: "I go"}) // r7: revision 4, until 40 s
	p.at(16*s, checker.Call{Verb: checker.Yield, Candidate: "ann", Token: 1})                                              // r8: not ready
	p.at(17*s, checker.Call{Verb: checker.Ready, Candidate: "bob", Token: 1})                                              // r9: revision 5
	p.at(18*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                                              // r10: until 40 s
	p.at(19*s, checker.Call{Verb: checker.Yield, Candidate: "ann", Token: 1})                                              // r11: revision 6, until 29 s
	p.at(20*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                                              // r12: refused
	p.at(21*s, checker.Call{Verb: checker.Check, Candidate: "ann", Token: 1})                                              // r13: stale
	p.at(22*s, checker.Call{Verb: checker.Acquire, Candidate: "cy"})                                                       // r14: refused
	p.at(23*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                                      // r15: revisions 7 and 8, token 2, until 53 s
	p.at(24*s, checker.Call{Verb: checker.Serving, Candidate: "bob", Token: 2})                                            // r16: revision 9
	p.at(25*s, checker.Call{Verb: checker.HandOver, Candidate: "bob", Token: 2, To: "cy", Within: 40 * s})                 // r17: revision 10, until 65 s
	p.at(26*s, checker.Call{Verb: checker.Ready, Candidate: "cy", Token: 2})                                               // r18: revision 11
	p.at(27*s, checker.Call{Verb: checker.Yield, Candidate: "bob", Token: 2})                                              // r19: revision 12, until 37 s
	p.at(36*s, checker.Call{Verb: checker.Acquire, Candidate: "dot"})                                                      // r20: refused
	p.at(39*s, checker.Call{Verb: checker.Acquire, Candidate: "dot"})                                                      // r21: revisions 13 and 14, token 3
	r := p.recording()
	r.Beliefs = []checker.Belief{
		{Who: "ann", Election: "planner", Token: 1, From: 10*s + 5*ms, Until: 16*s - 5*ms},
		{Who: "bob", Election: "planner", Token: 2, From: 23*s + 5*ms, Until: 27*s - 5*ms},
		{Who: "dot", Election: "planner", Token: 3, From: 39*s + 5*ms, Until: 60 * s},
	}
	return r
}

func TestBrokenHandOversAreFound(t *testing.T) {
	t.Parallel()
	key := func(who leadership.CandidateID) leadership.KeyHash { k := keyOf(who); return k.Hash() }
	for _, c := range []wrongCase{
		{"a belief beyond a yield that came too early", me2, func(r *checker.Recording) { r.Beliefs[0].Until = 16*s - 4*ms }, kindsOf(checker.Outlived)},
		{"a yield that the history has not", checker.ID, func(r *checker.Recording) { r.History[11].Type = leadership.EventUpdated; r.History = r.History[:12] }, kindsOf(checker.Missing, checker.Missing)},
		{"a successor that the history has not", checker.ID, func(r *checker.Recording) { r.History[4].Type = leadership.EventUpdated }, kindsOf(checker.Missing)},
		{"a hand-over that the history has not", checker.ID, func(r *checker.Recording) { r.History[3].Type = leadership.EventUpdated }, kindsOf(checker.Missing)},
		{"a grant before the lock delay after a yield", me1, func(r *checker.Recording) { r.History[13].At = begin.Add(27 * s) }, kindsOf(checker.Backwards, checker.TooSoon)},
		{"a takeover by a key that was not ready", linear, func(r *checker.Recording) { call(*r, 15).Key = key("eve") }, kindsOf(checker.Illegal)},
		{"a yield without a successor that is ready", linear, func(r *checker.Recording) {
			call(*r, 9).Code, call(*r, 9).Answer = leadership.StoreUnavailable, nil
			drop(r, 5)
		}, kindsOf(checker.Illegal)},
		{"a renewal after the yield", linear, func(r *checker.Recording) { c := call(*r, 12); c.Code, c.Answer = "", new(*call(*r, 10).Answer) }, kindsOf(checker.Illegal)},
		{"a write before the leader is ready", linear, func(r *checker.Recording) { call(*r, 3).Code = "" }, kindsOf(checker.Illegal)},
	} {
		c.runOn(t, handedOver)
	}
}

// underParent is a lease of ann that stands on its lease in a region, moves on with it, and ends
// with it; and a part of it that ann has delegated to bob.
func underParent(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	region, global := leadership.Election("region"), leadership.Election("planner")
	p.configured(region)
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 30 * s, LeadersOf: "reg"}}) // r1: revision 1
	p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Election: region, Lease: 10 * s})                  // r2: until 12 s
	p.at(3*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                                   // r3: refused
	p.at(4*s, checker.Call{Verb: checker.Acquire, Candidate: "bob", Via: leadership.Via{Election: region, Token: 1}})  // r4: refused
	p.at(5*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Via: leadership.Via{Election: region, Token: 1}})  // r5: revision 2, token 1, until 12 s
	p.at(6*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Election: region, Token: 1})                         // r6: until 16 s
	p.at(7*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Election: global, Token: 1})                         // r7: until 16 s
	p.at(8*s, checker.Call{Verb: checker.Release, Candidate: "ann", Election: region, Token: 1})                       // r8
	p.at(9*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Election: global, Token: 1})                         // r9: until 16 s
	p.at(17*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Election: global, Token: 1})                        // r10: refused
	p.at(18*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Via: leadership.Via{Election: region, Token: 1}}) // r11: refused
	r := p.recording()
	r.Beliefs = []checker.Belief{{Who: "ann", Election: global, Token: 1, From: 5*s + 5*ms, Until: 16 * s}}
	return r
}

func TestLeasesThatOutliveTheirParentsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"a lease beyond its parent's", checker.Told, func(r *checker.Recording) {
			a := call(*r, 9).Answer
			a.LeaseExpiration, a.EndsBy = begin.Add(17*s), begin.Add(17*s)
		}, kindsOf(checker.Unlimited)},
		{"a parent that was never granted", checker.Told, func(r *checker.Recording) { call(*r, 5).Answer.Parent.Token = 2 }, kindsOf(checker.Phantom)},
		{"a belief beyond the parent's end", me2, func(r *checker.Recording) { r.Beliefs[0].Until = 16*s + 16*ms }, kindsOf(checker.Outlived)},
	} {
		c.runOn(t, underParent)
	}
}

// parts is an election of ann, which delegates two parts of it. bob leads one of them, and ann's
// lease ends.
func parts(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	part := func(name string, budget int64) checker.Call {
		return checker.Call{
			Verb: checker.Delegate, Candidate: "ann", Token: 1, Child: leadership.Election("planner." + name),
			Limits: leadership.Limits{Depth: leadership.AsParent, Children: 1, Budget: budget},
		}
	}
	limits := leadership.Delegation{Depth: 1, Children: 2, Budget: 10}
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 10 * s, Delegation: limits}}) // r1: revision 1
	p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                                     // r2: revision 2, until 12 s
	p.at(3*s, part("a", 6))                                                                                              // r3: revision 3
	p.at(4*s, part("a", 6))                                                                                              // r4: the same again
	p.at(5*s, part("b", 5))                                                                                              // r5: beyond the budget
	p.at(6*s, part("b", 4))                                                                                              // r6: revision 4
	p.at(7*s, part("c", 0))                                                                                              // r7: too many
	p.at(8*s, checker.Call{Verb: checker.Acquire, Candidate: "bob", Election: "planner.a"})                              // r8: until 12 s
	p.at(9*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Election: "planner.a", Token: 1})                      // r9: until 12 s
	p.at(10*s, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})                                          // r10: revision 5
	p.at(11*s, checker.Call{Verb: checker.Acquire, Candidate: "cy", Election: "planner.b"})                              // r11: refused
	p.at(13*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Election: "planner.a", Token: 1})                     // r12: refused
	return p.recording()
}

// A successor that is ready still waits for the yield, and no other incarnation is ready in its
// place.
func TestSuccessionIsNeitherTakenEarlyNorStolen(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.at(s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                         // r1
	p.at(2*s, checker.Call{Verb: checker.HandOver, Candidate: "ann", Token: 1, To: "bob"}) // r2
	p.at(3*s, checker.Call{Verb: checker.Ready, Candidate: "bob", Token: 1})               // r3
	p.at(4*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                       // r4: refused
	p.as(5*s, "thief", checker.Call{Verb: checker.Ready, Candidate: "bob", Token: 1})      // r5: refused
	p.at(6*s, checker.Call{Verb: checker.Yield, Candidate: "ann", Token: 1})               // r6
	p.as(7*s, "thief", checker.Call{Verb: checker.Acquire, Candidate: "bob"})              // r7: refused
	p.at(8*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                       // r8: token 2
	r := p.recording()
	if err := checker.All(r, 10*ms, 0).Err(); err != nil {
		t.Error(err)
	}
	for n, c := range r.Calls {
		if refused := n == 3 || n == 4 || n == 6; refused != (c.Code == leadership.LeaseHeld) {
			t.Errorf("call %d: %v", n+1, c)
		}
	}
}
