package checker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

func ho(r checker.Recording) checker.Report { return checker.HO(r, 0) }

// handedOver is a term of ann that it hands over to bob, another of bob that ends unused because
// its successor has vanished, and one of dot.
func handedOver(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	config := leadership.Config{LeaseDuration: 30 * s, LockDelay: s, Promotion: true}
	p.at(s, checker.Call{Verb: checker.Configure, Config: config})                                                         // r1: revision 1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                                      // r2: revision 2, token 1, until 40 s
	p.at(11*s, checker.Call{Verb: checker.Check, Candidate: "ann", Token: 1, Write: true})                                 // r3: not ready
	p.at(12*s, checker.Call{Verb: checker.Ready, Candidate: "ann", Token: 1})                                              // r4: revision 3
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
	p.at(24*s, checker.Call{Verb: checker.Ready, Candidate: "bob", Token: 2})                                              // r16: revision 9
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

func TestHistoriesOfHandOversAreWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	r := handedOver(t)
	var got []string
	for _, e := range r.History {
		got = append(got, string(e.Type))
	}
	want := "configured acquired ready handingOver ready yielded released acquired ready handingOver ready yielded expired acquired"
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err := checker.All(r, 10*ms, 0).Err(); err != nil {
		t.Error(err)
	}
	if n := ho(r).Checked; n != 5 {
		t.Errorf("%d steps were checked, want 2 successors, 2 yields and a hand-over", n)
	}
}

func TestBrokenHandOversAreFound(t *testing.T) {
	t.Parallel()
	key := func(who leadership.CandidateID) leadership.KeyHash { k := keyOf(who); return k.Hash() }
	for _, c := range []wrongCase{
		{"handed over without a yield", ho, func(r *checker.Recording) { r.History[5].Type = leadership.EventUpdated }, kindsOf(checker.Unasked)},
		{"yielded before any successor is ready", ho, func(r *checker.Recording) { r.History[4].Type = leadership.EventUpdated }, kindsOf(checker.Unready)},
		{"yielded to another than the one that is ready", ho, func(r *checker.Recording) {
			r.History[5].Detail = strings.Replace(r.History[5].Detail, "bob", "cy", 1)
		}, kindsOf(checker.Unready, checker.Stolen)},
		{"ready without being named", ho, func(r *checker.Recording) { r.History[3].Type = leadership.EventUpdated }, kindsOf(checker.Stolen)},
		{"ready, and then another key is", ho, func(r *checker.Recording) {
			r.History[5] = r.History[4]
			r.History[5].Revision = 6
		}, kindsOf(checker.Stolen, checker.Unasked)},
		{"another key takes over", ho, func(r *checker.Recording) { call(*r, 15).Key = key("eve") }, kindsOf(checker.Stolen)},
		{"another candidate takes over", ho, func(r *checker.Recording) { r.History[7].LeaderID = "cy" }, kindsOf(checker.Gap)},
		{"a gap between the end and the grant", ho, func(r *checker.Recording) { r.History[7].At = r.History[7].At.Add(1) }, kindsOf(checker.Gap)},
		{"a reader that sees a vacancy", ho, func(r *checker.Recording) {
			c := call(*r, 14)
			c.Answer.State, c.Answer.Revision = leadership.Vacant, 7
		}, kindsOf(checker.Gap)},
		{"a watcher that sees a vacancy", ho, func(r *checker.Recording) {
			r.Readings = []checker.Reading{{Reader: "w", Election: "planner", Revision: 7, State: leadership.Vacant, Token: 1}}
		}, kindsOf(checker.Gap)},
		{"a leader that is renewed after its yield", ho, func(r *checker.Recording) {
			c := call(*r, 12)
			c.Code, c.Answer = "", new(*call(*r, 10).Answer)
			c.Answer.LastHeartbeat = begin.Add(20 * s)
		}, kindsOf(checker.Unstopped)},
		{"a token that is current after its yield", ho, func(r *checker.Recording) { call(*r, 13).Code = "" }, kindsOf(checker.Unstopped)},
		{"a grant to another in the successor's time", ho, func(r *checker.Recording) {
			r.History[12].At, r.History[13].At = begin.Add(37*s-1), begin.Add(39*s)
		}, kindsOf(checker.Stolen)},
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

func pa(r checker.Recording) checker.Report { return checker.PA(r, 0) }

func TestHistoriesOfParentsAreWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	r := underParent(t)
	if err := checker.All(r, 10*ms, 0).Err(); err != nil {
		t.Error(err)
	}
	var ends []string
	for _, n := range []int{5, 7, 9} {
		a := call(r, n).Answer
		ends = append(ends, fmt.Sprint(a.LeaseExpiration.Sub(begin).Round(time.Millisecond), a.EndsBecause))
	}
	if diff := cmp.Diff([]string{"12sparent", "16sparent", "16sparent"}, ends); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	if n := pa(r).Checked; n < 3 {
		t.Errorf("%d leases that stand on others were checked", n)
	}
}

func TestLeasesThatOutliveTheirParentsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"a lease beyond its parent's", limits, func(r *checker.Recording) {
			a := call(*r, 9).Answer
			a.LeaseExpiration, a.EndsBy = begin.Add(17*s), begin.Add(17*s)
		}, kindsOf(checker.Unlimited)},
		{"a parent's end that was not promised", pa, func(r *checker.Recording) { call(*r, 9).Answer.Parent.Until = begin.Add(16*s + 1) }, kindsOf(checker.Unlimited)},
		{"a parent's end after a lost renewal", pa, func(r *checker.Recording) {
			call(*r, 9).Answer.Parent.Until = begin.Add(16*s + 1)
			lost := *call(*r, 6)
			lost.Answer, lost.Code = nil, leadership.OutcomeUnknown
			r.Calls = append(r.Calls, lost)
		}, nil},
		{"a parent that was never granted", pa, func(r *checker.Recording) { call(*r, 5).Answer.Parent.Token = 2 }, kindsOf(checker.Phantom)},
		{"a parent that another candidate leads", pa, func(r *checker.Recording) { call(*r, 5).Answer.LeaderID = "bob" }, kindsOf(checker.Untrue)},
		{"a belief beyond the parent's end", me2, func(r *checker.Recording) { r.Beliefs[0].Until = 16*s + 16*ms }, kindsOf(checker.Outlived)},
		{"a lease that moves on without its parent", linear, func(r *checker.Recording) {
			a := call(*r, 9).Answer
			a.LeaseExpiration, a.EndsBy = begin.Add(17*s), begin.Add(17*s)
		}, kindsOf(checker.Illegal)},
	} {
		c.runOn(t, underParent)
	}
}

// overParent is a lease of ann that is shorter than the one that it stands on. The parent has a new
// epoch, and then is released.
func overParent(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	region, via := leadership.Election("region"), leadership.Via{Election: "region", Token: 1}
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 10 * s, LeadersOf: "reg"}}) // r1
	p.at(s, checker.Call{Verb: checker.Configure, Election: region, Config: leadership.Config{LeaseDuration: 30 * s}}) // r2
	p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Election: region})                                 // r3: until 32 s
	p.at(3*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Via: via})                                         // r4: until 13 s
	epoch := leadership.OrderCommand{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true, Reason: "a new prompt", Actor: "dan"}
	p.at(4*s, checker.Call{Verb: checker.Order, Election: region, Order: epoch})                 // r5: token 2, until 34 s
	p.at(5*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                     // r6: until 15 s
	p.at(6*s, checker.Call{Verb: checker.Release, Candidate: "ann", Election: region, Token: 2}) // r7
	p.at(7*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                     // r8: until 17 s, its last end
	p.at(12*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                    // r9: until 17 s
	p.at(18*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                    // r10: refused
	return p.recording()
}

func TestHistoriesOfParentsThatAreOverAreWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	r := overParent(t)
	if err := checker.All(r, 10*ms, 0).Err(); err != nil {
		t.Error(err)
	}
	var ends []string
	for _, n := range []int{4, 6, 8, 9} {
		a := call(r, n).Answer
		ends = append(ends, fmt.Sprint(a.Parent.Token, " ", a.LeaseExpiration.Sub(begin).Round(time.Millisecond)))
	}
	if diff := cmp.Diff([]string{"1 13s", "2 15s", "2 17s", "2 17s"}, ends); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	wrongCase{"a grant on a lease that was released before", pa, func(r *checker.Recording) {
		i := slices.IndexFunc(r.History, func(e leadership.Event) bool { return e.Election == "region" && e.Type == leadership.EventReleased })
		r.History[i].At = begin.Add(3*s - ms)
		call(*r, 4).Answer.Parent.Token = 2
	}, kindsOf(checker.Outlived)}.runOn(t, overParent)
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

func TestHistoriesOfDelegationsAreWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	r := parts(t)
	if err := checker.All(r, 10*ms, 0).Err(); err != nil {
		t.Error(err)
	}
	for n, want := range map[int]leadership.Code{5: leadership.LimitExceeded, 7: leadership.LimitExceeded, 11: leadership.LeaseHeld, 12: leadership.LeaseLost} {
		if c := call(r, n); c.Code != want {
			t.Errorf("%v: want %s", c, want)
		}
	}
	if end := call(r, 9).Answer.LeaseExpiration.Sub(begin); end != 12*s {
		t.Errorf("a part's lease lasts until %v, and that of the whole until 12s", end)
	}
	if n := pa(r).Checked; n < 4 {
		t.Errorf("%d delegations and leases were checked", n)
	}
}

func TestDelegationsBeyondTheirLimitsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"a child beyond the budget", pa, says(4, `"budget":4`, `"budget":5`), kindsOf(checker.Unlimited)},
		{"a child that is too deep", pa, says(4, `"depth":0`, `"depth":1`), kindsOf(checker.Unlimited)},
		{"one more child", pa, func(r *checker.Recording) {
			call(*r, 1).Config.Delegation.Children = 1
			call(*r, 1).Answer.Config.Delegation.Children = 1
			for i := range r.Calls {
				if a := r.Calls[i].Answer; a != nil {
					a.Config.Delegation.Children = 1
				}
			}
		}, kindsOf(checker.Unlimited)},
	} {
		c.runOn(t, parts)
	}
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
