package checker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// region is a lease of ann until 16 s, and another one that stands on it: until 12 s, and from its
// renewal at 7 s on for as long as the region's.
func region(tb testing.TB, lease time.Duration) *play {
	p := newPlay(tb)
	p.configured("region")
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: lease, LockDelay: s, LeadersOf: "reg"}}) // r1
	p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Election: "region", Lease: 10 * s})                             // r2
	p.at(5*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Via: leadership.Via{Election: "region", Token: 1}})             // r3
	p.at(6*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Election: "region", Token: 1})                                    // r4
	p.at(7*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                                                        // r5
	return p
}

func TestLostRenewalMayHaveMovedTheEndOnWithTheParent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lease time.Duration
		then  func(*play) // r6 and on
	}{
		{"a release after the known end", 30 * s, func(p *play) {
			p.at(14*s, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})
		}},
		{"a lock that is longer", 30 * s, func(p *play) {
			p.at(16*s+ms, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})
			p.at(16*s+100*ms, checker.Call{Verb: checker.Get})
		}},
		{"an end by itself", 8 * s, func(p *play) {
			p.at(17*s, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})
		}},
	} {
		p := region(t, c.lease)
		c.then(p)
		r := p.recording()
		if err := linear(r).Err(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		lose(&r, 5)
		if err := linear(r).Err(); err != nil {
			t.Errorf("%s, the renewal being lost: %v", c.name, err)
		}
		without(&r, 5)
		if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(linear(r))); diff != "" {
			t.Errorf("%s, without a renewal: (-want +got):\n%s", c.name, diff)
		}
	}
}

// Two calls of ann with one key were waiting, and asked for leases of different lengths.
func TestAnswerToTwoWaitingCallsIsThatOfOne(t *testing.T) {
	t.Parallel()
	r := fourTerms(t)
	joined := *call(r, 15)
	joined.Request, joined.Lease = "joined", 20*s
	r.Calls = append(r.Calls, joined)
	if err := checker.All(r, 10*ms, 0).Err(); err != nil {
		t.Error(err)
	}
	a := *joined.Answer
	a.LastHeartbeat, a.LeaseExpiration = a.LastHeartbeat.Add(1), a.LeaseExpiration.Add(1)
	r.Calls[len(r.Calls)-1].Answer = &a
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(linear(r))); diff != "" {
		t.Errorf("another heartbeat, which is no longer: (-want +got):\n%s", diff)
	}
}

func TestWaitingCandidateMayRecordTheEndsOfSeveralTerms(t *testing.T) {
	t.Parallel()
	r := fourTerms(t)
	r.History[4].Type, r.History[4].RequestID = leadership.EventExpired, "r5"
	r.History[5].RequestID = "r5" // after a grant that it found over, unheard of
	r.History[1].RequestID, r.History[2].RequestID = "r5", "other"
	if err := checker.ID(r).Err(); err != nil {
		t.Error(err)
	}
	r.History[4].Token = 1
	if got := kinds(checker.ID(r)); len(got) == 0 || got[0] != checker.Twice {
		t.Errorf("the same end twice: %v", got)
	}
}

// ann's renewal at the end of her term is committed by a clock that is ahead, and too late. A read
// by one that is behind shows her lease, with the start that it then has.
func TestReadMayShowAHeartbeatThatCameTooLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  time.Duration // the end, the read
		start   time.Duration
		without []int
		want    []checker.Kind
	}{
		{"just before the end", storeGuard, 14 * s, nil, nil},
		{"sooner than the clocks differ", storeGuard + 1, 14 * s, nil, kindsOf(checker.Illegal)},
		{"another start", storeGuard, 14*s - 1, nil, kindsOf(checker.Illegal)},
		{"without a renewal", storeGuard, 14 * s, []int{4}, kindsOf(checker.Illegal)},
	} {
		p := newPlay(t)
		config := leadership.Config{LeaseDuration: 8 * s, Term: leadership.TermPolicy{MaxTerm: 12 * s}}
		p.at(s, checker.Call{Verb: checker.Configure, Config: config})                  // r1
		p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})               // r2: until 22 s at the latest
		p.at(16*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})       // r3: until 22 s
		p.at(22*s-60*ms, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r4
		p.at(22*s-c.before, checker.Call{Verb: checker.Get})                            // r5
		p.at(23*s, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})     // r6
		r := p.recording()
		lose(&r, 4)
		a := call(r, 5).Answer
		a.LastHeartbeat = begin.Add(c.start)
		without(&r, c.without...)
		if diff := cmp.Diff(c.want, kinds(guarded(r))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s%v", c.name, diff, guarded(r).Err())
		}
	}
}

// A call of ann is granted a lease that is over when it would be told, and asks again. The answer
// to its second grant is that of another call with the same key.
func TestCallMayBeGrantedAgainWhatWasOver(t *testing.T) {
	t.Parallel()
	p := kept(t)
	p.at(19*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})         // r3: token 2
	p.at(20*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 2}) // r4
	r := p.recording()
	joined := *call(r, 3)
	joined.Request = "joined"
	r.Calls = append(r.Calls, joined)
	call(r, 3).Asked = call(r, 2).Asked
	lose(&r, 3)
	without(&r, 2)
	r.History[1].RequestID = "r3"
	if err := linear(r).Err(); err != nil {
		t.Error(err)
	}
	call(r, 3).Key = keyOf("bob").Hash()
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(linear(r))); diff != "" {
		t.Errorf("with another key: (-want +got):\n%s", diff)
	}
}

// The replies to ann's last renewal and to bob's grant are lost. How much of the time without an
// approval was left for bob is known from the answer to a call that asks again.
func TestTimeWithoutAnApprovalIsThatWhichAnAnswerShows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		sooner time.Duration
		want   []checker.Kind
	}{
		{"as it was", 0, nil},
		{"had the term lasted until the grant", 3 * s, nil},
		{"had it lasted longer", 3*s + time.Microsecond, kindsOf(checker.Illegal)},
		{"had it ended before it was seen", -5 * s, kindsOf(checker.Illegal)},
	} {
		p := newPlay(t)
		config := leadership.Config{LeaseDuration: 4 * s, Term: leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 20 * s, Need: 1}}}
		p.at(s, checker.Call{Verb: checker.Configure, Config: config})           // r1
		p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})         // r2: until 6 s, and 22 s at the latest
		p.at(5*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r3: until 9 s
		p.at(12*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})        // r4: until 25 s at the latest
		p.at(13*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})        // r5: the same
		r := p.recording()
		lose(&r, 3)
		call(r, 5).Asked = call(r, 4).Asked
		without(&r, 4)
		for i, e := range r.History {
			if e.RequestID == "r4" {
				r.History[i].RequestID = "r5"
			}
		}
		a := call(r, 5).Answer
		a.EndsBy = a.EndsBy.Add(-c.sooner)
		if diff := cmp.Diff(c.want, kinds(linear(r))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s%v", c.name, diff, linear(r).Err())
		}
	}
}

// challengedUnderParent is a lease of ann that stands on one that bob challenges, as is to be known
// from the answers to her renewals alone.
func challengedUnderParent(tb testing.TB) *play {
	p := newPlay(tb)
	p.configured("region")
	p.configured("regent")
	config := leadership.Config{
		LeaseDuration: 30 * s, LeadersOf: "reg",
		Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true},
	}
	via := func(e leadership.Election) leadership.Via { return leadership.Via{Election: e, Token: 1} }
	p.at(s, checker.Call{Verb: checker.Configure, Config: config})                                                                     // r1
	p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Election: "region", Lease: 10 * s})                                // r2
	p.at(3*s, checker.Call{Verb: checker.Acquire, Candidate: "bob", Election: "regent", Lease: time.Minute})                           // r3
	p.at(4*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Via: via("region")})                                               // r4: until 12 s
	p.at(6*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Election: "region", Token: 1})                                       // r5: until 16 s
	p.at(7*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                                                           // r6: until 16 s
	p.at(8*s, checker.Call{Verb: checker.Acquire, Candidate: "bob", Via: via("regent"), Candidacy: leadership.Candidacy{Priority: 1}}) // r7: challenged, at 16 s
	p.at(10*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Election: "region", Token: 1})                                      // r8: until 20 s
	p.at(11*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                                                          // r9: until 16 s
	return p
}

func TestChallengeMayEndWithAParentThatNoAnswerShows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		breakIt func(*checker.Recording)
		want    []checker.Kind
	}{
		{"a renewal that had moved it on", func(r *checker.Recording) { lose(r, 6) }, nil},
		{"an end before the one that was known", func(r *checker.Recording) {
			lose(r, 6)
			a := call(*r, 9).Answer
			a.EndsBy, a.LeaseExpiration, a.ExpiresIn = begin.Add(12*s-ms), begin.Add(12*s-ms), s-ms
		}, kindsOf(checker.Illegal)},
		{"an end beyond the parent's", func(r *checker.Recording) {
			lose(r, 6)
			a := call(*r, 9).Answer
			a.EndsBy, a.LeaseExpiration, a.ExpiresIn = begin.Add(20*s+ms), begin.Add(20*s+ms), 9*s+ms
		}, kindsOf(checker.Illegal)},
	} {
		r := challengedUnderParent(t).recording()
		lose(&r, 7)
		c.breakIt(&r)
		if diff := cmp.Diff(c.want, kinds(linear(r))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s%v", c.name, diff, linear(r).Err())
		}
	}
}

func TestLostRenewalMayHaveFoundTheParentOver(t *testing.T) {
	t.Parallel()
	p := challengedUnderParent(t)
	p.at(12*s, checker.Call{Verb: checker.Release, Candidate: "ann", Election: "region", Token: 1}) // r10
	p.at(13*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                       // r11: it ends with the parent
	p.at(17*s, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})                     // r12
	r := p.recording()
	lose(&r, 11)
	if err := linear(r).Err(); err != nil {
		t.Error(err)
	}
	for i, e := range r.History {
		r.History[i].Detail = strings.Replace(e.Detail, `{"endsBecause":"parent"}`, `{"endsBecause":"maxTerm"}`, 1)
	}
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(linear(r))); diff != "" {
		t.Errorf("another end: (-want +got):\n%s", diff)
	}
}
